"""Patterns over names, with the meaning that include/evprof/filter.h gives them: globs as fnmatch(3) has them, and "re:" with a
POSIX extended regular expression as regcomp(3) of the GNU C library has it, both of bytes. Used by filtering.py.

Both are written anew as expressions of Python's re. What re and POSIX match differs in length only, and here nobody asks
where or how much: a name has a match, or it has none.
"""
import re

_CLASSES = {
    b"alnum": rb"[0-9A-Za-z]", b"alpha": rb"[A-Za-z]", b"blank": rb"[ \t]", b"cntrl": rb"[\0-\x1f\x7f]", b"digit": rb"[0-9]",
    b"graph": rb"[!-~]", b"lower": rb"[a-z]", b"print": rb"[ -~]", b"punct": rb"[!-/:-@\[-`{-~]", b"space": rb"[ \t-\r]",
    b"upper": rb"[A-Z]", b"xdigit": rb"[0-9A-Fa-f]"}
#: GNU's operators, which Python has too, but for the edges of words.
_OPERATORS = {b"w": rb"[0-9A-Za-z_]", b"W": rb"[^0-9A-Za-z_]", b"s": rb"[ \t-\r]", b"S": rb"[^ \t-\r]", b"b": rb"\b",
              b"B": rb"(?!\b)", b"<": rb"\b(?=[0-9A-Za-z_])", b">": rb"\b(?<=[0-9A-Za-z_])",
              b"`": rb"\A", b"'": rb"\Z"}
_A_CLASS = re.compile(rb"\[:[a-z]+:\]")
_REPEATS_MAX = 32767
_NOTHING = rb"(?!)"


class PatternError(ValueError):
    """The pattern means nothing."""


def _members(name):
    """The bytes of a class such as alpha."""
    if name not in _CLASSES:
        raise PatternError("there is no class of characters named %s" % name.decode("utf-8", "replace"))
    return {byte for byte in range(256) if re.match(_CLASSES[name], bytes([byte]))}


class _Bracket:
    """The set of bytes that a bracket expression stands for; at: behind its "["."""

    def __init__(self, text, at, negations, escapes):
        self._text, self._at, self._escapes = text, at, escapes
        negated = text[at:at + 1] != b"" and text[at:at + 1] in negations
        self._at += negated
        self._bytes = set()
        self._first = True
        while self._first or self._peek() != b"]":
            self._item()
            self._first = False
        self.end = self._at + 1  # behind its "]"
        self.bytes = set(range(256)) - self._bytes if negated else self._bytes

    def _peek(self, more=1):
        return self._text[self._at:self._at + more]

    def _take(self, more=1):
        taken = self._peek(more)
        if len(taken) < more:
            raise PatternError("a [ has no ]")
        self._at += more
        return taken

    def _named(self, mark):
        """What stands between [: and :], or the like."""
        end = self._text.find(mark + b"]", self._at + 2)
        if end < 0:
            raise PatternError("a [ has no ]")
        name, self._at = self._text[self._at + 2:end], end + 2
        return name

    def _character(self):
        if self._peek(2) in (b"[.", b"[="):
            name = self._named(self._peek(2)[1:])
            if len(name) != 1:
                raise PatternError("there is no character named %s" % name.decode("utf-8", "replace"))
            return name[0]
        if self._escapes and self._peek() == b"\\":
            self._take()
        return self._take()[0]

    def _at_class(self):
        """In a glob, a [ that begins no class is literal."""
        if self._escapes:
            return _A_CLASS.match(self._text, self._at)
        return self._peek(2) == b"[:"

    def _item(self):
        if self._at_class():
            self._bytes |= _members(self._named(b":"))
            return
        begin = end = self._character()
        if self._peek() == b"-" and self._peek(2) not in (b"-", b"-]"):
            self._take()
            backwards = self._peek(2) == b"[:"
            end = self._character()
            if not self._escapes and (backwards or end < begin):
                raise PatternError("a range has no end, or ends before it begins")
        self._bytes.update(range(begin, end + 1))


def _one_of(members):
    """An expression for one of these bytes."""
    if not members:
        return _NOTHING
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]"


# --- globs ---

def _glob_bracket(text, at):
    """(expression, place behind it) of the "[" before at."""
    try:
        bracket = _Bracket(text, at, b"!^", True)
    except PatternError:
        return rb"\[", at
    return _one_of(bracket.bytes), bracket.end


def of_glob(text):
    """A glob as an expression that is to match all of a name."""
    parts, at = [], 0
    while at < len(text):
        byte = text[at:at + 1]
        at += 1
        if byte == b"*":
            parts.append(b".*")
        elif byte == b"?":
            parts.append(b".")
        elif byte == b"[":
            part, at = _glob_bracket(text, at)
            parts.append(part)
        elif byte == b"\\":
            # Nothing can be escaped at the end, and no name ends with what is not there.
            parts.append(re.escape(text[at:at + 1]) if at < len(text) else _NOTHING)
            at += 1
        else:
            parts.append(re.escape(byte))
    return b"(?:" + b"".join(parts) + rb")\Z"


# --- regular expressions ---

class _Expression:
    """A POSIX extended regular expression, read from the left to the right."""

    def __init__(self, text):
        self._text, self._at = text, 0
        self._groups, self._open = 0, []
        self._closed = set()        # groups that a back reference may name
        self._levels = [(set(), set())]  # of each open group: those before it, those of its alternatives so far
        self._parts = []   # what was read
        self._atom = None  # where in parts the last atom begins, which an operator may repeat
        self._begun = []   # of the open groups: where in parts they begin
        while self._at < len(text):
            self._piece(self._take())
        if self._open:
            raise PatternError("a ( has no )")
        self.result = b"".join(self._parts)

    def _take(self):
        self._at += 1
        return self._text[self._at - 1:self._at]

    def _add(self, part, is_atom=True):
        self._atom = len(self._parts) if is_atom else None
        self._parts.append(part)

    def _piece(self, byte):
        if byte == b"(":
            self._groups += 1
            self._open.append(self._groups)
            self._begun.append(len(self._parts))
            self._levels.append((set(self._closed), set()))
            self._add(b"(", False)
        elif byte == b")" and self._open:
            self._closed |= self._levels.pop()[1] | {self._open.pop()}
            self._parts.append(b")")
            self._atom = self._begun.pop()
        elif byte == b"[":
            bracket = _Bracket(self._text, self._at, b"^", False)
            self._at = bracket.end
            self._add(_one_of(bracket.bytes))
        elif byte == b"|":
            before, alternatives = self._levels[-1]
            alternatives |= self._closed
            self._closed = set(before)
            self._add(b"|", False)
        elif byte in (b"^", b"$"):
            self._add(rb"\A" if byte == b"^" else rb"\Z", False)
        elif byte in (b"*", b"+", b"?", b"{"):
            self._repeat(byte)
        elif byte == b"\\":
            self._escaped()
        else:
            self._add(b"." if byte == b"." else re.escape(byte))

    def _escaped(self):
        if self._at == len(self._text):
            raise PatternError("a \\ stands at the end")
        byte = self._take()
        if byte in b"123456789":
            if int(byte) not in self._closed:
                raise PatternError("there is no group \\%s" % byte.decode())
            self._add(b"(?:\\" + byte + b")")
        else:
            self._add(_OPERATORS.get(byte) or re.escape(byte), byte not in (b"b", b"B", b"<", b">", b"`", b"'"))

    def _repeat(self, byte):
        if self._atom is None:
            raise PatternError("nothing stands before %s" % byte.decode())
        how = self._interval() if byte == b"{" else byte
        # An operator behind another repeats all of it: to Python the second would mean something else.
        self._parts[self._atom:] = [b"(?:" + b"".join(self._parts[self._atom:]) + b")" + how]

    def _interval(self):
        found = re.compile(rb"([0-9]*)(,?)([0-9]*)\}").match(self._text, self._at)
        if not found or found.group(0) == b"}":
            raise PatternError("a { is not a repetition")
        self._at = found.end()
        low, comma, high = found.groups()
        low = int(low or 0)
        high = (int(high) if high else None) if comma else low
        if max(low, high or 0) > _REPEATS_MAX or (high is not None and high < low):
            raise PatternError("a { is not a repetition")
        return b"{%d,%s}" % (low, b"" if high is None else b"%d" % high)


def _bytes(text):
    return text.encode("utf-8", "surrogateescape")


def matcher(pattern):
    """A function that says whether a name (bytes) has a match of the pattern. Raises PatternError."""
    if not pattern.startswith("re:"):
        return re.compile(of_glob(_bytes(pattern)), re.DOTALL).match
    expression = _Expression(_bytes(pattern[3:])).result
    try:
        return re.compile(expression, re.DOTALL).search
    except (re.error, OverflowError) as error:
        raise PatternError(str(error)) from None
