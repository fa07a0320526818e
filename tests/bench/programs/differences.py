"""difflib and textwrap of the standard library on made-up texts: dictionaries, string methods, generators."""
import difflib
import textwrap

ROUNDS = 50
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards vex their bold queen".split()


def text(lines, seed):
    result = []
    for i in range(lines):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        result.append(" ".join(WORDS[(seed >> shift) % len(WORDS)] for shift in range(3, 27, 3)) + " %d" % (i % 7))
    return result


def changed(lines):
    return [line if i % 5 else line.replace("the", "some").title() for i, line in enumerate(lines) if i % 11]


def main():
    for seed in range(1, ROUNDS + 1):
        before = text(60, seed)
        after = changed(before)
        difference = list(difflib.ndiff(before, after))
        assert list(difflib.restore(difference, 2)) == after
        list(difflib.unified_diff(before, after))
        for width in range(20, 60, 4):
            textwrap.fill(" ".join(before), width)
