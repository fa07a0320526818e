"""sympy: simplification, derivatives, integrals, equations, series.

No matrices: they go through a set of classes until one fits, in the order of addresses, which is another in each run.
"""
NEEDS = ["sympy"]


def main():
    import random
    import sympy
    from sympy.core.random import seed
    from sympy.core.cache import clear_cache

    clear_cache()
    random.seed(1)
    seed(1)
    x, y = sympy.symbols("x y")
    results = [sympy.expand((x + y + 1) ** 5), sympy.factor(x ** 4 - y ** 4),
               sympy.diff(sympy.sin(x) * sympy.exp(x ** 2), x, 2), sympy.solve(x ** 2 - 3 * x + 2, x),
               sympy.simplify((x ** 2 - 1) / (x - 1)), sympy.integrate(x ** 2 + x, x),
               sympy.limit(sympy.sin(x) / x, x, 0), sympy.series(sympy.cos(x), x, 0, 6)]
    return [str(result) for result in results]
