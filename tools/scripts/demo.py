"""What `make demo` profiles: a small program of the standard library's own modules, which every Python has.

Parses the source of textwrap, writes it out again, compares both versions, and stores the result as JSON.
"""
import ast
import difflib
import inspect
import json
import textwrap


def rewrite(source):
    tree = ast.parse(source)
    # unparse() came with Python 3.9.
    return ast.unparse(tree) if hasattr(ast, "unparse") else textwrap.dedent(source).replace('"', "'")


def compare(before, after):
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [tuple(block) for block in matcher.get_matching_blocks()], matcher.ratio()


def main():
    before = inspect.getsource(textwrap)
    after = rewrite(before)
    blocks, ratio = compare(before.split(), after.split())
    text = json.dumps({"ratio": ratio, "blocks": blocks}, indent=1)
    changes = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    print("textwrap: %d words, %d equal blocks, %.0f %% equal, %d lines of differences, %d bytes of JSON"
          % (len(before.split()), len(blocks), 100 * ratio, len(changes), len(text)))


if __name__ == "__main__":
    main()
