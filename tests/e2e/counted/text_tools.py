"""difflib, textwrap, templates, shlex, pprint, dates."""
import calendar
import datetime
import difflib
import pprint
import shlex
import string
import textwrap

LINES = ["line %d of %s" % (i, "abc"[i % 3] * (i % 5)) for i in range(60)]


def main():
    changed = [line for i, line in enumerate(LINES) if i % 7] + ["a new one"]
    difference = list(difflib.unified_diff(LINES, changed, lineterm=""))
    ratio = difflib.SequenceMatcher(None, " ".join(LINES), " ".join(changed)).ratio()
    close = difflib.get_close_matches("line 7", LINES)
    compared = list(difflib.ndiff(LINES[:12], changed[:12]))
    wrapped = textwrap.fill(" ".join(LINES), 60) + textwrap.dedent("   a\n   b") + textwrap.indent("a\nb", "> ")
    filled = string.Template("$a and ${b} $$").substitute(a=1, b=2) + "{0:>10} {1!r:.3}".format("x", "yyyyy")
    words = shlex.split("a 'b c' \"d e\" f\\ g # no", comments=True)
    shown = pprint.pformat({"k%d" % i: list(range(i)) for i in range(20)}, width=40)
    days = calendar.TextCalendar().formatmonth(2024, 2)
    day = datetime.date(2024, 1, 31) + datetime.timedelta(days=30)
    parsed = datetime.datetime.strptime("2024-02-03 04:05", "%Y-%m-%d %H:%M").isoformat()
    return len(difference), round(ratio, 6), close, len(compared), len(wrapped), filled, words, len(shown), days, day, \
        parsed
