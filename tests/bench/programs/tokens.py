"""A small language: a tokenizer of one big regular expression, a recursive parser, an evaluator. Many C calls."""
import re

ROUNDS = 80
TOKEN = re.compile(r"\s*(?:(?P<number>\d+\.?\d*)|(?P<name>[A-Za-z_]\w*)|(?P<operator>\*\*|[-+*/%()=,]))")
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 3}
FUNCTIONS = {"min": min, "max": max, "abs": abs}


def tokenize(text):
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise SyntaxError(text[position:])
        yield match.lastgroup, match.group(match.lastgroup)
        position = match.end()
    yield "end", ""


class Parser:
    def __init__(self, text):
        self.tokens = tokenize(text)
        self.kind, self.text = next(self.tokens)

    def advance(self):
        text = self.text
        self.kind, self.text = next(self.tokens)
        return text

    def expression(self, lowest=0):
        left = self.atom()
        while PRECEDENCE.get(self.text, 0) > lowest:
            operator = self.advance()
            left = (operator, left, self.expression(PRECEDENCE[operator]))
        return left

    def atom(self):
        if self.kind == "number":
            return float(self.advance())
        if self.text == "-":
            self.advance()
            return ("-", 0.0, self.atom())
        if self.text == "(":
            self.advance()
            inner = self.expression()
            self.advance()
            return inner
        name = self.advance()
        return self.call(name) if self.text == "(" else name

    def call(self, name):
        arguments = []
        while self.text in "(,":
            self.advance()
            arguments.append(self.expression())
        self.advance()
        return ("call", name, arguments)


def evaluate(tree, names):
    if isinstance(tree, float):
        return tree
    if isinstance(tree, str):
        return names.get(tree, 0.0)
    operator, left, right = tree
    if operator == "call":
        return FUNCTIONS[left](*[evaluate(argument, names) for argument in right])
    a, b = evaluate(left, names), evaluate(right, names)
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if operator == "/":
        return a / b if b else 0.0
    if operator == "%":
        return a % b if b else 0.0
    return min(abs(a), 9.0) ** min(abs(b), 3.0)


def program(lines):
    for i in range(lines):
        numbers = i, i // 2, i, i, i - 1, i // 3
        yield "v%d = max(v%d * %d + (3.5 - x) / 2, min(%d, v%d) %% 7) ** 2 - abs(-v%d)" % numbers


def main():
    source = list(program(150))
    for _ in range(ROUNDS):
        names = {"x": 1.25}
        for line in source:
            name, _, text = line.partition("=")
            names[name.strip()] = min(evaluate(Parser(text).expression(), names), 1e6)
