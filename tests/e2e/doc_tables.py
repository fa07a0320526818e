"""doc_tables.py DOCS TRACE EVPROF MORE...: compares the tables of trace.md, wire.md, table.md and formats.md in the folder DOCS with a
trace, and with what the tool EVPROF and the package have. TRACE has all types of META, MORE need not. Used by test_docs.c; PYTHONPATH
has the package.

Prints a line for each thing that differs; "as the tables say" where nothing does.
"""
import csv
import inspect
import io
import os
import re
import struct
import subprocess
import sys
import zlib

import evprof
import oracle_trace

wrong = []


def same(what, written, found):
    if written != found:
        wrong.append("%s: the document has %r, it is %r" % (what, written, found))


def document(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def tables(text):
    """[(heading, first row, other rows)]: rows are lists of cells."""
    found, heading, rows = [], "", []
    for line in text.split("\n") + [""]:
        if line.startswith("|"):
            rows.append([cell.strip().replace("\0", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")])
        elif rows:
            same("second row of a table, %s" % rows[0], "", "".join(rows[1]).strip("-"))
            found.append((heading, rows[0], rows[2:]))
            rows = []
        if line.startswith("#"):
            heading = line.strip("# ")
    return found


def marked(text):
    return re.findall(r"`([^`]+)`", text)


# ---- trace.md, wire.md ----


def layouts(found):
    """{heading: {first words of a field: (at, size)}}. Fields follow each other without gaps up to the size of the heading."""
    every = {}
    for heading, first, rows in found:
        if first[:2] != ["at", "size"]:
            continue
        at = 0
        for row in rows:
            same("%s, place of %s" % (heading, row[2]), int(row[0]), at)
            at += int(row[1] or 0)
        same(heading + ", size", int(re.search(r"\d+", heading).group()), at)
        every[heading.split(":")[0]] = {row[2]: (int(row[0]), int(row[1] or 0)) for row in rows}
    return every


def field(fields, data, start, words):
    at, size = next(place for name, place in fields.items() if name.startswith(words))
    return int.from_bytes(data[start + at:start + at + size], "little")


def check_crc(what, fields, data, start):
    at = next(place for name, place in fields.items() if name == "CRC of the bytes before")[0]
    same(what + ", CRC", field(fields, data, start, "CRC of the bytes before"), zlib.crc32(data[start:start + at]))


def check_trace(folder, path, all_types):
    found = tables(document(folder, "trace.md"))
    with open(path, "rb") as file:
        data = file.read()
    trace, fields = oracle_trace.Trace(data, lossy=False), layouts(found)
    header, chunk, definition = fields["Header"], fields["Chunk"], fields["Definition"]
    same("magic", bytes.fromhex(marked(next(iter(header)))[0]), data[:8])
    for name in header:
        if re.search(r": \d+$", name):
            same(name, int(name.split(": ")[1]), field(header, data, 0, name))
    check_crc("header", header, data, 0)
    types = {int(row[0]): row[1] for heading, first, rows in found if first[:2] == ["type", "name"] for row in rows}
    strings = {int(row[0]) for heading, first, rows in found if heading.startswith("Definition") and first[0] == "type" for row in rows}
    seen, at = set(), sum(next(reversed(list(header.values()))))
    while data[at:at + 4] == bytes.fromhex(marked(next(iter(chunk)))[0]):
        stored, raw = field(chunk, data, at, "bytes of the payload in"), field(chunk, data, at, "bytes of the payload once")
        kind, start = field(chunk, data, at, "type"), at + sum(chunk["CRC of the bytes before"])
        check_crc("chunk", chunk, data, at)
        same("CRC of a payload", field(chunk, data, at, "CRC of the payload"), zlib.crc32(data[start:start + stored]))
        payload = data[start:start + stored]
        payload = oracle_trace.decompress(payload, raw) if field(chunk, data, at, "codec") else payload
        if types.get(kind) == "DEFINITIONS":
            place = 0
            while place < raw:
                same("the type of a definition is known", True, field(definition, payload, place, "type") in strings)
                place += field(definition, payload, place, "bytes of the record")
        seen.add(kind)
        at = start + (stored + 7) // 8 * 8
    same("types of chunks", sorted(types), sorted(seen))
    check_meta(found, trace, all_types)
    check_kinds(folder, trace)


def check_meta(found, trace, all_types):
    rows = next(rows for heading, _, rows in found if heading == "META")
    members = {marked(row[0])[0]: set(marked(row[1])) | {"type"} for row in rows}
    if all_types:
        same("types of META", sorted(set(members) - {"title", "events"}), sorted({meta["type"] for meta in trace.metas} - {"title"}))
    for meta in trace.metas:
        if meta["type"] in ("process_end", "thread_end"):  # their counts are a part of the text
            continue
        same("members of META %s that are not there" % meta["type"], [], sorted(set(meta) - members.get(meta["type"], set())))


def check_kinds(folder, trace):
    written = {}
    for _, first, rows in tables(document(folder, "wire.md")):
        if first[:2] == ["kind", "name"]:
            for row in rows:
                written.update(zip(map(int, row[0].split(",")), marked(row[1])))
    same("kinds", written, {kind: value["name"] for kind, value in trace.kinds.items()})


# ---- table.md ----


def check_table(folder, path, tool):
    text = document(folder, "table.md")
    found = tables(text)
    columns = next(rows for _, first, rows in found if first == ["column", "holds"])
    text_csv = subprocess.run([tool, "export", "--format", "csv", path, "-o", "-"], check=True, stdout=subprocess.PIPE).stdout.decode()
    rows = list(csv.DictReader(io.StringIO(text_csv)))
    names = [name for row in columns for name in marked(row[0])]
    same("columns, in any order", sorted(names), sorted(rows[0]))
    same("columns of to_numpy()", sorted(names), sorted(evprof.load(path).to_numpy()))
    events = next(marked(row[1]) for row in columns if row[0] == "`event`")
    same("events", sorted(events), sorted(evprof.EVENTS))
    same("events that are not written", [], sorted({row["event"] for row in rows} - set(events)))
    numbers = re.search(r"events have EventProfiler's numbers: (.*?)\n\n", text, re.S).group(1)
    same("numbers of events", {name: int(number) for name, number in re.findall(r"\b([a-z_]+) (\d+)", numbers)}, dict(evprof.EVENTS))
    help_of_csv = subprocess.run([tool, "export", "--help"], check=True, stdout=subprocess.PIPE).stdout.decode()
    options = {option for heading, _, rows in found if heading in ("csv", "The package") for row in rows for cell in row[:2]
               for option in re.findall(r"`(--[a-z-]+)", cell)}
    same("options that are not there", [], sorted(option for option in options if option not in help_of_csv))
    check_package(found, tool)


def has_option(tool, verb, argument):
    option = {"start": "from", "end": "to"}.get(argument, argument.replace("_", "-"))
    help_of_verb = subprocess.run([tool, verb, "--help"], check=True, stdout=subprocess.PIPE).stdout.decode()
    return re.search("--%s\\b" % option, help_of_verb) is not None


def check_package(found, tool):
    from evprof.trace import _OPTIONS
    for heading, first, rows in found:
        if heading != "The package":
            continue
        if first[0] == "argument":
            same("filters", sorted(_OPTIONS), sorted(set(re.findall(r"`([a-z_]+)=", " ".join(row[0] for row in rows)))))
            continue
        for row in rows:
            for call in marked(row[0]):
                owner, _, rest = call.partition(".")
                if owner in ("pyarrow", "polars"):
                    continue
                thing = {"trace": evprof.Trace, "process": evprof.Process, "evprof": evprof}[owner]
                name, _, arguments = rest.partition("(")
                if not hasattr(thing, name) and name not in ("processes", "threads"):
                    wrong.append("the package has no " + call)
                    continue
                known = inspect.signature(getattr(thing, name)).parameters if arguments else {}
                any_name = any(one.kind is one.VAR_KEYWORD for one in known.values())
                for argument in re.findall(r"(\w+)=", arguments):
                    there = argument in known or any_name and has_option(tool, name, argument)
                    same("%s has %s" % (call, argument), True, there)


def check_formats(folder, tool):
    text = document(folder, "formats.md")
    help_of_export = subprocess.run([tool, "export", "--help"], check=True, stdout=subprocess.PIPE).stdout.decode()
    formats = set(re.findall(r"^ {26}([a-z-]+)  *[A-Za-z]", help_of_export, re.M))
    first = tables(text)[0]
    written = set(re.findall(r"--format ([a-z-]+)", " ".join(row[0] for row in first[2])))
    written |= {name for row in first[2] for name in marked(row[0])[1:]} | {"html"}
    same("formats", sorted(written & formats), sorted(formats))
    for verb, options in re.findall(r"`evprof ([a-z]+) ([^`]*)`", text):
        help_of_verb = subprocess.run([tool, verb, "--help"], stdout=subprocess.PIPE).stdout.decode()
        for option in re.findall(r"--[a-z-]+", options):
            same("evprof %s has %s" % (verb, option), True, option in help_of_verb)


def main(folder, path, tool, *more):
    check_trace(folder, path, True)
    for one in more:
        check_trace(folder, one, False)
    check_table(folder, path, tool)
    check_formats(folder, tool)
    print("\n".join(wrong) or "as the tables say")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
