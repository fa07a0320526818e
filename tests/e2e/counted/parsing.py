"""Parses, walks and prints source texts of the standard library."""
import ast
import io
import textwrap
import token
import tokenize

SOURCES = [textwrap.__file__, token.__file__]


class Counting(ast.NodeVisitor):
    def __init__(self):
        self.seen = {}

    def generic_visit(self, node):
        name = type(node).__name__
        self.seen[name] = self.seen.get(name, 0) + 1
        ast.NodeVisitor.generic_visit(self, node)


class Renaming(ast.NodeTransformer):
    def visit_Name(self, node):
        return ast.copy_location(ast.Name(id=node.id.upper(), ctx=node.ctx), node)


def one(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tree = ast.parse(text)
    counting = Counting()
    counting.visit(tree)
    ast.fix_missing_locations(Renaming().visit(tree))
    ast.dump(tree)
    if hasattr(ast, "unparse"):
        ast.unparse(tree)
    compile(tree, path, "exec")
    kinds = [kind.type for kind in tokenize.generate_tokens(io.StringIO(text).readline)]
    return counting.seen, len(kinds)


def main():
    return [one(path) for path in SOURCES]
