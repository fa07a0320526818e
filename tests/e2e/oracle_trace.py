"""oracle_trace.py TRACE [spans]: a reader of traces that was written from docs/trace.md and docs/wire.md alone. Used by
test_events.c and test_spans.c.

With "spans": a JSON object for each line, of a span, counter or mark; "lossy": likewise, and events may be lost. Otherwise it prints a line for each thread and kind of event ("TID KIND COUNT"), and one for each Python function ("NAME CALLS NS", the last
from its first call to its last return). Status 1 and one line where the trace is not as the pages say.
"""
import ctypes
import functools
import json
import struct
import sys
import zlib

NOBODY = 2**32 - 1
WORDS = {11: 1, 12: 1, 13: 2, 14: 1, 15: 1, 16: 1, 20: 1, 26: 1, 27: 1, 29: 2, 30: 1}
BOOKKEEPING = set(range(15, 19)) | set(range(20, 25)) | set(range(53, 58)) | {0, 31, 46, 52}
MARK, SPAN_BEGIN, SPAN_END, COUNTER, ARGUMENT = 39, 43, 44, 45, 52


def need(holds, what):
    if not holds:
        sys.exit("the trace is not as docs/trace.md says: " + what)


@functools.lru_cache(None)
def zstd():
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    return library


def decompress(payload, size):
    library = zstd()
    out = ctypes.create_string_buffer(size)
    n = library.ZSTD_decompress(out, ctypes.c_size_t(size), payload, ctypes.c_size_t(len(payload)))
    need(n == size, "a zstd frame of %d bytes has %d" % (size, n))
    return out.raw


def columns(payload, n, width):
    words = bytearray(n * width)
    for plane in range(width):
        words[plane::width] = payload[plane * n:(plane + 1) * n]
    return struct.unpack("<%d%s" % (n, {4: "I", 8: "Q"}[width]), words)


class Trace:
    def __init__(self, data, lossy):
        self.data, self.lossy, self.clock, self.codes, self.names = data, lossy, [], {}, {}
        self.spans, self.ends, self.rows = {}, {}, []
        self.kinds, self.threads, self.metas, self.chunks, self.indexed = {}, {}, [], [], []
        magic, version, size, _, incompatible = struct.unpack_from("<8s4I", data)
        need(magic == b"\x89EVP\r\n\x1a\n" and version == 3 and size == 64 and not incompatible, "header")
        need(zlib.crc32(data[:60]) == struct.unpack_from("<I", data, 60)[0], "CRC of the header")
        at = 64
        while data[at:at + 4] == b"EVCK":
            at = self.chunk(at)
        self.end(at)

    def chunk(self, at):
        (_, kind, codec, stored, raw, process, thread, first, last, events, extras, previous, payload_crc,
         crc) = struct.unpack_from("<4sHHIIIIQQIIQII", self.data, at)
        payload = self.data[at + 64:at + 64 + stored]
        need(zlib.crc32(self.data[at:at + 60]) == crc and zlib.crc32(payload) == payload_crc, "CRC of a chunk")
        payload = decompress(payload, raw) if codec else payload
        need(len(payload) == raw <= 2**24, "size of a payload")
        if kind == 1:
            self.meta(json.loads(payload.decode()))
        elif kind == 2:
            self.definitions(payload, process)
        elif kind == 3:
            self.events(payload, process, thread, first, last, events, extras)
        elif kind == 4:
            self.clock += [struct.unpack_from("<IIQQQ", payload, i) for i in range(0, raw, 32)]
        elif kind == 5:
            self.indexed += [struct.unpack_from("<QQQIIIHH", payload, i)[0] for i in range(0, raw, 40)]
            self.last_index = at
        if kind != 5:
            self.chunks.append(at)
        return at + 64 + (stored + 7) // 8 * 8

    def end(self, at):
        magic, _, index, events, lost, processes, crc = struct.unpack_from("<4sIQQQII", self.data, at)
        need(magic == b"EEND" and len(self.data) == at + 40, "end")
        need(zlib.crc32(self.data[at:at + 36]) == crc, "CRC of the end")
        need(index == self.last_index and self.indexed == self.chunks, "index")
        need(events == sum(sum(thread["counts"].values()) for thread in self.threads.values()), "number of events")
        need(processes == sum(meta["type"] == "process" for meta in self.metas), "number of processes")
        counted = sum(sum(meta.get("lost", {}).values()) for meta in self.metas if meta["type"].endswith("_end"))
        need(lost == counted and (not lost or self.lossy), "number of lost events")

    def meta(self, meta):
        need(self.metas or meta["type"] == "kinds", "the first META object")
        self.metas.append(meta)
        if meta["type"] == "kinds":
            self.kinds = {kind["kind"]: kind for kind in meta["kinds"]}
            need(all(kind.get("words", 0) == WORDS.get(n, 0) for n, kind in self.kinds.items() if n < 32 and n != 19), "words")
        elif meta["type"] == "thread":
            self.threads[meta["thread"]] = {"tid": meta["tid"], "now": None, "counts": {}, "calls": {},
                                            "arguments": []}
        elif meta["type"] == "thread_end":
            need(meta["events"] == self.threads[meta["thread"]]["counts"], "events of thread %d" % meta["thread"])

    def definitions(self, payload, process):
        at = 0
        while at < len(payload):
            size, kind, _, number, line, _, *lengths = struct.unpack_from("<IHHIIQ4I", payload, at)
            need(size == (40 + sum(lengths) + 7) // 8 * 8, "size of a definition")
            strings, place = [], at + 40
            for length in lengths:
                strings.append(payload[place:place + length] if kind == 10 else
                               payload[place:place + length].decode("utf-8", "surrogatepass"))
                place += length
            if kind == 1:
                self.codes[process, number] = strings[0].rsplit("/", 1)[-1] + ":" + strings[1]
            elif kind == 5:
                self.names[process, number] = strings[1]
            at += size
        need(at == len(payload), "end of the definitions")

    def events(self, payload, process, number, now, last, n, m):
        thread = self.threads[number]
        need(n <= 131072 and len(payload) == 8 * n + 8 * m, "size of the events")
        need(thread["now"] in (None, now), "time between two chunks")
        heads = struct.unpack_from("<%dI" % n, payload)
        ticks, extras, used = columns(payload[4 * n:], n, 4), columns(payload[8 * n:], m, 8), 0
        counts = [0] * 64
        for head, delta in zip(heads, ticks):
            kind, argument = head & 31, head >> 5
            words = argument >> 5 & 15 if kind == 19 else WORDS.get(kind, 0)
            kind = 32 + (argument & 31) if kind == 19 else kind
            now = extras[used] if kind in (15, 20) else now + delta
            used += words
            if kind in (MARK, SPAN_BEGIN, SPAN_END, COUNTER, ARGUMENT):
                self.span_event(process, thread, kind, head >> 14, extras[used - words:used], now)
            elif kind == 16:
                thread["arguments"] = []
            if kind in (1, 4):
                self.call(thread["calls"], self.codes[process, argument] if argument else None, kind, now)
            counts[kind] += 1
        for kind, count in enumerate(counts):
            if count and kind not in BOOKKEEPING:
                name = self.kinds[kind]["name"]
                thread["counts"][name] = thread["counts"].get(name, 0) + count
        need(used == m and now == last, "words and time of a chunk")
        thread["now"] = now

    def argument(self, process, arguments, value, words):
        kind, cut = value & 7, value & 8
        if kind != 1:
            need(len(words) == 2 and words[0], "words of an argument")
            word = struct.pack("<Q", words[1])
            shown = {2: words[1] - 2**63, 3: struct.unpack("<d", word)[0], 4: bool(words[1])}[kind]
            arguments.append([self.names[process, words[0]], shown])
            return
        text = struct.pack("<%dQ" % (len(words) - 1), *words[1:]).rstrip(b"\0")
        need(len(words) <= 12 and not (cut and len(text) < 80), "words of a text")
        if words[0]:
            arguments.append([self.names[process, words[0]], b""])
        arguments[-1][1] += text

    def span_event(self, process, thread, kind, value, words, now):
        arguments = thread["arguments"]
        if kind == ARGUMENT:
            self.argument(process, arguments, value, words)
            return
        number = words[0] if words else value
        row = {"process": process, "tid": thread["tid"], "begin": now}
        if kind == SPAN_END:
            need((process, number) not in self.ends, "a span ends once")
            self.ends[process, number] = {"end": now, "end_tid": thread["tid"]}
            return
        need((process, number) in self.names, "the name of a span, mark or counter")
        row.update(what={MARK: "mark", SPAN_BEGIN: "span", COUNTER: "counter"}[kind], name=self.names[process, number])
        if kind == COUNTER:
            row["value"] = struct.unpack("<d", struct.pack("<Q", words[1]))[0]
        else:
            row["arguments"] = [[key, text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text]
                                for key, text in arguments]
            thread["arguments"] = []
        if kind == SPAN_BEGIN:
            need((process, words[1]) not in self.spans, "a span's number comes once")
            self.spans[process, words[1]] = row
        self.rows.append(row)

    def monotonic(self, ticks):
        return self.clock[0][3] + self.ns(ticks - self.clock[0][2])

    def call(self, calls, name, kind, now):
        count, first, last = calls.get(name, (0, now, now))
        calls[name] = (count + (kind == 1), first, now if kind == 4 else last)

    def ns(self, ticks):
        first, last = self.clock[0], self.clock[-1]
        return (last[3] - first[3]) * ticks // (last[2] - first[2])


def print_spans(trace):
    pids = {meta["process"]: meta["pid"] for meta in trace.metas if meta["type"] == "process"}
    for span, row in trace.spans.items():
        row.update(trace.ends.get(span, {}))
    for row in trace.rows:
        row["pid"] = pids[row.pop("process")]
        for when in ("begin", "end"):
            if when in row:
                row[when] = trace.monotonic(row[when])
        print(json.dumps(row))


def main(path, what=None):
    with open(path, "rb") as file:
        trace = Trace(file.read(), what == "lossy")
    if what in ("spans", "lossy"):
        print_spans(trace)
        return
    for thread in trace.threads.values():
        for name, count in sorted(thread["counts"].items()):
            print(thread["tid"], name, count)
        for name, (count, first, last) in sorted(thread["calls"].items(), key=str):
            print(name, count, trace.ns(last - first))


if __name__ == "__main__":
    main(*sys.argv[1:])
