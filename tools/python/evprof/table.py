"""The table of events, by numpy: what `evprof export --format csv` writes, as arrays. Called by model.Trace.

    Functions      all functions of all processes as numbers; names and files as codes
    Kinds, _Rows   which rows are asked for; rows thread after thread (threads.py makes them)
    make           all threads in one order of time, sizes of freed blocks
    dataframe      for pandas; parquet: for pyarrow

A function's number is base of its process + 2 * code id, or + 2 * C function id + 1, so that odd ones are C functions;
0 is nobody. Where the table follows a rule of evprof's tools, tools/replay/event_stream.c and tools/export/csv.c are the models.
"""
import numpy as np

from .source import Source
from .threads import FREED, KEEPS, MADE, REALLOC_FREE, Reader


# --- names ---

class _Codes:
    """Texts as numbers, in the order in which they are met."""

    def __init__(self):
        self.texts = []
        self._numbers = {}

    def of(self, text):
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


class Functions:
    """name, mod and line of all functions of a trace, by their numbers."""

    def __init__(self, trace):
        names, mods = _Codes(), _Codes()
        self.base = {}
        columns = [(names.of(""), mods.of(""), -1)] * 2
        for process in trace.processes:
            self.base[process.number] = len(columns)
            for number in range(max(process.code_limit, process.c_function_limit, 1)):
                columns.append(self._code(process, number, names, mods))
                columns.append(self._c_function(process, number, names, mods))
        self.names, self.mods = names.texts, mods.texts
        self.name, self.mod, self.line = (np.array(column, np.int32) for column in zip(*columns))

    @staticmethod
    def hidden(process, filters):
        """Which functions of a process are hidden, by their number less the base of the process. None: all are shown."""
        if not filters:
            return None
        shown = []
        for number in range(max(process.code_limit, process.c_function_limit, 1)):
            shown.append(filters.shows_code(process.codes.get(number)))
            shown.append(filters.shows_c_function(process.c_functions.get(number)))
        return ~np.array(shown, np.bool_)

    @staticmethod
    def _code(process, number, names, mods):
        code = process.codes.get(number)
        if code is None:
            return names.of("<unknown function %d>" % number), mods.of("?"), 0
        return names.of(_storable(code.name)), mods.of(_storable(code.file)), code.line & 0x7fffffff

    @staticmethod
    def _c_function(process, number, names, mods):
        function = process.c_functions.get(number)
        if function is None:
            return names.of("<unknown C function %d>" % number), mods.of(""), -1
        cls = function.cls.rpartition(".")[2]
        name = cls + "." + function.name if cls else function.name
        return names.of(_storable(name)), mods.of(_storable(function.module)), -1


def _storable(text):
    return text.replace("\0", "\ufffd")


# --- rows ---

class Kinds:
    """Which rows are asked for, by the numbers of their events."""

    def __init__(self, kinds):
        from . import EVENTS
        kinds = list(EVENTS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
        unknown = [kind for kind in kinds if kind not in EVENTS]
        if unknown:
            raise ValueError("evprof: there is no kind %s; kinds are %s" % (unknown[0], ", ".join(EVENTS)))
        self.wanted = {EVENTS[kind] for kind in kinds}
        self.all = len(self.wanted) == len(EVENTS)
        # The size of a freed block is known from its allocation.
        frees = self.wanted & {FREED, REALLOC_FREE}
        self.read = self.wanted | (set(range(MADE, REALLOC_FREE + 1)) if frees else set())


class _Rows:
    """Rows thread after thread, in arrays that grow. Numbers of functions instead of their names."""

    kept = (("time", np.int64), ("value1", np.int64), ("value2", np.int64), ("event", np.int16), ("running", np.int32),
            ("caller", np.int32))

    _BELIEVED = 1 << 27  # a damaged file may promise more than there can be

    def __init__(self, expected):
        # Reallocs take two rows, and other events none. What is not written costs no memory, and little time.
        self._room = min(expected + expected // 16, self._BELIEVED)
        self._columns = [np.zeros(self._room, dtype) for _, dtype in self.kept]
        self.count = 0

    def add(self, columns):
        """None is a column of zeros."""
        end = self.count + len(columns[0])
        if end > self._room:
            self._room = end + end // 2
            for column in self._columns:
                column.resize(self._room, refcheck=False)
        for column, fresh in zip(self._columns, columns):
            if fresh is not None:
                column[self.count:end] = fresh
        self.count = end

    def take(self):
        """The arrays by name. They are the caller's then."""
        return {name: column[:self.count] for (name, _), column in zip(self.kept, self._columns)}


# --- all threads ---

_PIECE = 1 << 16  # events of memory to match together, at most

def _find_freed_sizes(rows, process):
    """Fills value2 of what frees a block with minus the size that the block had."""
    event, address, size = rows["event"], rows["value1"], rows["value2"]
    memory = event >= MADE
    failed = (event == REALLOC_FREE) & (size == KEEPS)
    if failed.any():
        size[failed] = 0
        memory &= ~failed
    at = np.flatnonzero(memory & (address != 0))
    if process is None:
        _match_blocks(at, event, address, size)
        return
    numbers = process[at]
    for number in np.unique(numbers):
        _match_blocks(at[numbers == number], event, address, size)


def _match_blocks(at, event, address, size):
    """Gives each free the size of the event before with the same address, if that made a block.

    In pieces that fit the processor's caches; only the first and the last event of each address in a piece meet those of
    other pieces.
    """
    piece = _PIECE
    waits = event[at] >= FREED  # for its size
    while True:
        left = [_match_piece(at[i:i + piece], waits[i:i + piece], event, address, size)
                for i in range(0, len(at), piece)]
        if len(left) <= 1:
            return
        fewer, waits = np.concatenate([kept for kept, _ in left]), np.concatenate([kept for _, kept in left])
        if len(fewer) > len(at) * 3 // 4:  # hardly any address comes twice in a piece
            order = np.argsort(address[fewer], kind="stable")
            addresses = address[fewer[order]]
            _give_sizes(fewer[order], waits[order], addresses[1:] == addresses[:-1], event, size)
            return
        at = fewer


def _match_piece(at, waits, event, address, size):
    """Matches up to 2^16 events. Returns those that events of other pieces may match, in order, and which of them wait."""
    keys = address[at].astype(np.uint64)
    keys <<= np.uint64(16)
    keys |= np.arange(len(at), dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64(0xffff)).astype(np.intp)
    keys >>= np.uint64(16)
    same = keys[1:] == keys[:-1]
    waits = waits[order]
    _give_sizes(at[order], waits, same, event, size)
    waits[1:] &= ~same                # what comes first of its address may be made in a piece before
    edges = waits.copy()
    edges[:-1] |= ~same               # the last of each address may be freed in a later one, or has been
    edges[-1:] = True
    keep, waiting = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    keep[order[edges]] = True
    waiting[order[waits]] = True
    return at[keep], waiting[keep]


def _give_sizes(at, waits, same, event, size):
    """at: events sorted by address; same: whether it is that of the event before."""
    known = np.flatnonzero(waits[1:] & same)
    known = known[event[at[known]] < FREED]
    size[at[known + 1]] = -size[at[known]]


def _merged(trace, filters, kinds):
    """The rows of all threads in one order of time, and for each the number of its thread in the list of them."""
    threads = [thread for thread in trace.threads if thread.places and filters.wants(thread)]
    rows = _Rows(sum(place.events for thread in threads for place in thread.places))
    counts, hidden = [0], {}
    for thread in threads:
        process = thread.process
        if process.number not in hidden:
            hidden[process.number] = Functions.hidden(process, filters.functions)
        source = Source(trace, thread, filters, trace._functions().base[process.number], hidden[process.number])
        Reader(source, filters, kinds).read(rows)
        counts.append(rows.count)
    lengths = np.diff(counts)
    rows = rows.take()
    if len(threads) == 1:
        return threads, rows, np.zeros(counts[-1], np.int32)
    thread = np.repeat(np.arange(len(threads), dtype=np.int32), lengths)
    if np.count_nonzero(lengths) > 1:
        rows["thread"] = thread
        _reorder(rows, np.argsort(rows["time"], kind="stable"))
        thread = rows.pop("thread")
    return threads, rows, thread


def _reorder(rows, order):
    """Puts the rows in that order. Threads take turns, so it is made of long stretches, which are copied as they are."""
    breaks = np.flatnonzero(np.diff(order) != 1) + 1
    if len(breaks) * 64 > len(order):
        for name in rows:
            rows[name] = np.take(rows[name], order)
        return
    starts = order[np.concatenate(([0], breaks))].tolist()
    lengths = np.diff(breaks, prepend=0, append=len(order)).tolist()
    for name, column in rows.items():
        rows[name] = np.concatenate([column[start:start + length] for start, length in zip(starts, lengths)])


def _keep_small_blocks():
    """The C library gives blocks of a chunk's size back to the kernel with each chunk, and takes new ones, until it has
    seen a larger one go: half of all page faults."""
    block = np.empty(1 << 24, np.uint8)
    del block


def _spell_out(functions, threads, rows, who, whose, thread):
    """Fills in the names of functions, pid and tid. In pieces: what one needs stays in the processor's caches. who and whose are
    overwritten: fresh memory costs more than what is written to it."""
    block = 1 << 16
    pids = np.array([thread.process.pid for thread in threads], np.int64).astype(np.int32)
    tids = np.array([thread.tid for thread in threads], np.int64).astype(np.int32)
    ready = {"name": who, "from_name": whose}
    for name in ("name", "mod", "lineno", "from_name", "from_mod", "from_line", "pid", "tid"):
        rows[name] = ready[name] if name in ready else np.empty(len(who), np.int32)
    for at in range(0, len(who), block):
        part = slice(at, at + block)
        running, caller = who[part].astype(np.intp), whose[part].astype(np.intp)
        # A C function has no line of its own: it stands in that of its caller.
        placed = np.where(running & 1, caller, running)
        rows["name"][part], rows["mod"][part] = functions.name[running], functions.mod[running]
        rows["lineno"][part] = functions.line[placed]
        rows["from_name"][part], rows["from_mod"][part] = functions.name[caller], functions.mod[caller]
        rows["from_line"][part] = functions.line[caller]
        rows["pid"][part], rows["tid"][part] = pids[thread[part]], tids[thread[part]]


def make(trace, filters, kinds, since_start):
    """model.Trace.to_numpy(). filters: a filtering.Filter."""
    kinds = Kinds(kinds)
    functions = trace._functions()
    _keep_small_blocks()
    threads, rows, thread = _merged(trace, filters, kinds)
    process_of = np.array([thread.process.number for thread in threads], np.int32)
    _find_freed_sizes(rows, process_of[thread] if len(set(process_of.tolist())) > 1 else None)
    if kinds.read != kinds.wanted:
        keep = np.isin(rows["event"], np.array(sorted(kinds.wanted), np.int16))
        rows, thread = {name: column[keep] for name, column in rows.items()}, thread[keep]
    rows["time"] += -trace.start_ns if since_start else trace.realtime_offset_ns
    _spell_out(functions, threads, rows, rows.pop("running"), rows.pop("caller"), thread)
    return rows


# --- for others ---

def _event_names(numbers):
    """(codes, names): the events as categories."""
    from . import EVENTS
    code_of = np.zeros(max(EVENTS.values()) + 1, np.int8)
    for code, number in enumerate(EVENTS.values()):
        code_of[number] = code
    return code_of[numbers], list(EVENTS)


def _cleaned(codes, texts, clean):
    """The codes and texts after clean() of each text. Two texts may become one."""
    if clean is None:
        return codes, texts
    fresh = _Codes()
    code_of = np.array([fresh.of(clean(text)) for text in texts], np.int32)
    return code_of[codes], fresh.texts


def _categories(trace, columns, clean_file_name):
    """(name, codes, texts) of the columns that hold texts, in the order of the table; texts None: numbers."""
    # Modules of C functions and file names are both in mods, and a file name never is the name of a module.
    for name, column in columns.items():
        if name == "event":
            yield (name,) + _event_names(column)
        elif name in ("name", "from_name"):
            yield name, column, trace.names
        elif name in ("mod", "from_mod"):
            yield (name,) + _cleaned(column, trace.mods, clean_file_name)
        else:
            yield name, column, None


def dataframe(trace, columns, clean_file_name):
    import pandas
    return pandas.DataFrame({
        name: codes if texts is None else pandas.Categorical.from_codes(codes, categories=texts)
        for name, codes, texts in _categories(trace, columns, clean_file_name)}, copy=False)


def parquet(trace, columns, clean_file_name, path):
    import pyarrow
    from pyarrow import parquet as writer
    arrays = {name: pyarrow.array(codes) if texts is None else
              pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes), pyarrow.array(texts))
              for name, codes, texts in _categories(trace, columns, clean_file_name)}
    writer.write_table(pyarrow.table(arrays), path)
