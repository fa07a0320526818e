"""Compiles regular expressions, without the cache, and applies them."""
import fnmatch
import re

PATTERNS = [r"(\w+)@(\w+)\.com", r"(?P<year>\d{4})-(?P<month>\d\d)", r"(a|b|cd)*e?", r"[^\W\d_]+(?=\s)",
            r"(?i)hello|wor[lk]d",
            r"^\s*#.*?$", r"(?:x{2,5}y+?)+", r"\b(?!no)[a-z]+\b", r"((?:[0-9]{1,3}\.){3}[0-9]{1,3})"]
TEXT = "joe@example.com 2024-05 abcde Hello work xxyy 10.0.0.1 # comment\n" * 20


def upper(match):
    return match.group(0).upper()


def main():
    re.purge()
    counts = []
    for pattern in PATTERNS:
        compiled = re.compile(pattern, re.MULTILINE)
        counts.append(len(compiled.findall(TEXT)))
        compiled.sub(upper, TEXT)
        counts.append(sum(1 for _ in compiled.finditer(TEXT)))
    re.split(r"\s+", TEXT)
    re.sub(r"(\d+)", r"<\1>", TEXT)
    fnmatch.filter(["a.py", "b.c", "c.py"], "*.p?")
    try:
        re.compile("(unbalanced")
    except re.error as error:
        counts.append(str(error))
    return counts
