"""A session with sympy: simplify, factor, integrate, solve, series. Needs sympy; the bench asks before it runs this."""
import sympy


def main():
    x, y = sympy.symbols("x y")
    sympy.factor(sympy.expand((x + y + 1) ** 12))
    sympy.integrate(x**2 * sympy.exp(x) * sympy.cos(x), x)
    sympy.simplify(sympy.sin(x) ** 4 - 2 * sympy.cos(x) ** 2 * sympy.sin(x) ** 2 + sympy.cos(x) ** 4)
    sympy.solve(x**4 - 3 * x**2 + 2 * x - 1, x)
    sympy.series(sympy.tan(sympy.sin(x)), x, 0, 12)
    sympy.Matrix(5, 5, lambda i, j: x + i * j).det()
