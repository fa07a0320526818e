"""matching.py COUNT: the package's patterns against fnmatch() and regcomp() of the C library, on random patterns and names.

For test_table.c; the seed is fixed. In the locale C, as evprof reads. Prints how many patterns meant the same; status 1 and the
first that did not. "[.x.]" and "[=x=]" in brackets are left out of globs, and names with a line's end out of expressions:
there the C library does not do what it says.
"""
import ctypes
import locale
import random
import sys

from evprof import patterns

NAMES = [b"", b"a", b"ab", b"abc", b"b a", b"a-b", b"]", b"[", b"a.b", b"a{1}", b"{", b"}", b"\xc3\xa9", b"aab", b"abab",
         b"\\", b"^a", b"a$", b"(", b")", b"*", b"aaa", b"!", b"-", b"foo.py", b"/x/y.py", b"_a1", b"<lambda>", b"~"]
EXPRESSIONS = ["a", "b", "1", ".", "*", "+", "?", "(", ")", "|", "[", "]", "^", "$", "{", "}", "{1}", "{0,2}", "{,1}",
               "{2,}", "-", "\\", "\\.", "\\w", "\\<", "\\>", "\\b", "\\1", "[[:alpha:]]", "[^a]", "[a-c]", ",", "\udcc3",
               "[:digit:]", "[]a]", "\\'", "\\`", "\\S", "\\s", "[[.a.]]", "[[=b=]1]", "\\W", "\\B"]
GLOBS = ["a", "b", "*", "?", "[", "]", "!", "^", "-", "\\", "[a-c]", "[!a]", "[[:alpha:]]", "[]a]", ".", "/", "[:digit:]",
         "[^b]", "\udcc3", ":", "[a\\]]", "[![:digit:]]"]
REG_EXTENDED, REG_NOSUB = 1, 8
ROOM_BYTES = 256  # for a regex_t

libc = ctypes.CDLL(None)


def glob_of_libc(pattern):
    return lambda name: libc.fnmatch(pattern, name, 0) == 0


def expression_of_libc(pattern):
    """None: it means nothing."""
    room = ctypes.create_string_buffer(ROOM_BYTES)
    if libc.regcomp(room, pattern, REG_EXTENDED | REG_NOSUB):
        return None
    found = [libc.regexec(room, name, 0, None, 0) == 0 for name in NAMES]
    libc.regfree(room)
    return dict(zip(NAMES, found)).__getitem__


def ours(pattern):
    try:
        return patterns.matcher(pattern)
    except patterns.PatternError:
        return None


def compare(pattern, theirs, mine):
    if (theirs is None) != (mine is None):
        sys.exit("%r means %s, to the C library %s" % (pattern, mine and "something", theirs and "something"))
    for name in NAMES if theirs else ():
        if theirs(name) != bool(mine(name)):
            sys.exit("%r and %r: the C library says %s" % (pattern, name, theirs(name)))


def main(count):
    locale.setlocale(locale.LC_ALL, "C")
    random.seed(20260102)
    meant = 0
    for _ in range(count):
        text = "".join(random.choice(EXPRESSIONS) for _ in range(random.randrange(1, 8)))
        theirs = expression_of_libc(text.encode("utf-8", "surrogateescape"))
        compare("re:" + text, theirs, ours("re:" + text))
        meant += theirs is not None
        text = "".join(random.choice(GLOBS) for _ in range(random.randrange(1, 8)))
        if not text.startswith("re:"):
            compare(text, glob_of_libc(text.encode("utf-8", "surrogateescape")), ours(text))
    print("%d globs and %d expressions mean the same" % (count, meant))


main(int(sys.argv[1]))
