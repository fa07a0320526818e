"""Work as programs have it, for calibrate.c: what hooks cost where functions of all kinds take turns.

Runs by exec in names of its own, in every Python from 3.6 on. It imports nothing, prints nothing and leaves nothing behind.
"""
__name__ = "evprof"


class Place:
    """Where a reader is in its text."""

    __slots__ = ("text", "at", "end")

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.end = len(text)

    @property
    def more(self):
        return self.at < self.end

    def peek(self):
        return self.text[self.at] if self.at < self.end else ""

    def skip(self, these):
        while self.at < self.end and self.text[self.at] in these:
            self.at += 1

    def until(self, these):
        begin = self.at
        for i in range(begin, self.end):
            if self.text[i] in these:
                self.at = i
                return self.text[begin:i]
        self.at = self.end
        return self.text[begin:]


class Scope:
    def __init__(self, names=None, outer=None):
        self.names = names if names is not None else {}
        self.outer = outer

    def find(self, name):
        scope = self
        while scope is not None:
            value = scope.names.get(name)
            if value is not None:
                return value
            scope = scope.outer
        raise LookupError(name)

    def __contains__(self, name):
        try:
            self.find(name)
        except LookupError:
            return False
        return True

    def __len__(self):
        return len(self.names)


def read_atom(place):
    word = place.until(" ()\n")
    if word.isdigit():
        return int(word)
    if word.startswith("'"):
        return word[1:].strip("'")
    return (word,)


def read_list(place):
    items = []
    place.at += 1
    while True:
        place.skip(" \n")
        if not place.more:
            raise LookupError(")")
        if place.peek() == ")":
            place.at += 1
            return items
        items.append(read_list(place) if place.peek() == "(" else read_atom(place))


def add(*values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def less(a, b):
    return 1 if a < b else 0


def work_out(form, scope):
    """The longest function: much of it is far from its beginning."""
    if isinstance(form, tuple):
        return scope.find(form[0])
    if not isinstance(form, list):
        return form
    if not form:
        return 0
    head = form[0]
    name = head[0] if isinstance(head, tuple) else ""
    if name == "let":
        inner = Scope({}, scope)
        for pair in form[1]:
            inner.names[pair[0][0]] = work_out(pair[1], inner)
        result = 0
        for part in form[2:]:
            result = work_out(part, inner)
        return result
    if name == "if":
        chosen = form[2] if work_out(form[1], scope) else form[3]
        return work_out(chosen, scope)
    if name == "sum":
        total = 0
        for i in range(work_out(form[2], scope)):
            scope.names[form[1][0]] = i + 1
            total += work_out(form[3], scope)
        return total
    if name == "text":
        parts = [str(work_out(part, scope)) for part in form[1:]]
        return "-".join(parts).upper()
    function = scope.find(name) if name in scope else less
    values = []
    for part in form[1:]:
        values.append(work_out(part, scope))
    if len(values) > 2 and function is less:
        values.sort()
        values.pop()
    return function(*values)


class Shape:
    count = 0

    def __init__(self, name, width, height=1):
        self.name = name
        self.width = width
        self.height = height
        Shape.count += 1

    @property
    def area(self):
        return self.width * self.height

    def __lt__(self, other):
        return (self.area, self.name) < (other.area, other.name)

    def __eq__(self, other):
        return isinstance(other, Shape) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def scaled(self, by, *, name=None):
        return type(self)(name or self.name, self.width * by, self.height)

    def describe(self):
        return "{} {}x{}".format(self.name, self.width, self.height)


class Square(Shape):
    def __init__(self, name, side, height=None):
        super().__init__(name, side, side)
        self.side = side

    def describe(self):
        text = super().describe()
        return text.replace("x", "*") if self.side > 3 else text


def write(value, level=0):
    """Pieces of text, by generators one in another."""
    if isinstance(value, dict):
        yield "{"
        first = True
        for key in sorted(value, key=str):
            if not first:
                yield ","
            first = False
            yield "%s:" % key
            for piece in write(value[key], level + 1):
                yield piece
        yield "}"
    elif isinstance(value, (list, tuple)):
        yield "["
        for item in value:
            yield from write(item, level + 1)
        yield "]"
    elif isinstance(value, str):
        yield quoted(value)
    elif hasattr(value, "describe"):
        yield value.describe()
    else:
        yield str(value)


def quoted(text):
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text + '"'


def neighbours(edges, node):
    for a, b in edges:
        if a == node:
            yield b


def visit(edges, node, seen, order):
    if node in seen:
        return
    seen.add(node)
    for other in neighbours(edges, node):
        visit(edges, other, seen, order)
    order.append(node)


def in_order(edges):
    seen, order = set(), []
    for node, _ in edges:
        visit(edges, node, seen, order)
    order.reverse()
    return order


def settings(lines):
    """Sections of names and values, with what is wrong counted."""
    sections, current, wrong = {}, None, 0
    for number, line in enumerate(lines):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        if line[0] == "[" and line.endswith("]"):
            current = sections.setdefault(line[1:-1].lower(), {})
            continue
        name, found, value = line.partition("=")
        try:
            if not found:
                raise ValueError(number)
            current[name.rstrip()] = number_or_text(value.lstrip())
        except (ValueError, TypeError):
            wrong += 1
    sections["wrong"] = wrong
    return sections


def number_or_text(text):
    try:
        return int(text)
    except ValueError:
        return text


def total_of(shapes):
    return sum(shape.area for shape in shapes)


def columns(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for width, cell in zip(widths, row):
            text = str(cell)
            cells.append(text.rjust(width) if isinstance(cell, int) else text.ljust(width))
        lines.append(" | ".join(cells))
    return lines


SOURCE = """(let ((a 3) (b (add a 4)) (s 'some))
  (sum i 3 (if (less i b) (add i a) (add i 1 (less 7 i 2))))
  (text s (add 1 2 3) b))"""
LINES = ("[Main]", "name = value # that", "size=10", "broken", "", "[Other]", "path = /some/where", "deep=7", "x = y")
EDGES = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"))
GLOBAL = Scope({"add": add, "less": less})
times = 0, 1


def mix(times):
    for _ in times:
        place = Place(SOURCE)
        result = work_out(read_list(place), GLOBAL)
        shapes = [Shape("plank", 9), Square("tile", 2), Shape("door", 2, 4), Square("field", 5)]
        shapes.append(shapes[0].scaled(2, name="beam"))
        shapes.sort()
        sections = settings(LINES)
        sections["shapes"] = shapes
        sections["order"] = in_order(EDGES)
        text = "".join(write(sections))
        rows = [(shape.name, shape.area, shape in shapes[:2]) for shape in shapes]
        lines = columns(rows)
        known = {shape: index for index, shape in enumerate(shapes)}
        best = max(shapes, key=lambda shape: shape.width)
        lines.append("%s %d %r" % (result, total_of(shapes), known[best]))
        if text.find(best.name) < 0 or len(lines) != 6:
            raise LookupError(best.name)


# What the calls are, for the sum of their costs: by an instruction, by an operator, by an attribute, of __init__.
def codes_of(value, kind, found):
    if isinstance(value, property):
        return codes_of(value.fget, 2, found)
    if isinstance(value, type):
        for name, member in vars(value).items():
            dunder = name[:2] == "__"
            codes_of(member, 3 if name == "__init__" else 1 if dunder else 0, found)
    code = getattr(value, "__code__", None)
    if code is not None:
        add_code(code, kind, found)


def add_code(code, kind, found):
    found.append((code, kind))
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            add_code(constant, 0, found)


codes = []
for one in (Place, Scope, Shape, Square, read_atom, read_list, add, less, work_out, write, quoted, neighbours, visit,
            in_order, settings, number_or_text, total_of, columns, mix):
    codes_of(one, 0, codes)
codes = tuple(codes)
functions = (len, isinstance, hasattr, sorted, max, sum, hash)
