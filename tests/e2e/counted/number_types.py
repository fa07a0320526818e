"""Fractions, decimals by the Python half of the library, statistics, and random numbers of a seed."""
import _pydecimal
import fractions
import random
import statistics


def decimals():
    context = _pydecimal.Context(prec=40)
    _pydecimal.setcontext(context)
    value = _pydecimal.Decimal(2)
    results = [value.sqrt(), _pydecimal.Decimal("1.5").exp(), _pydecimal.Decimal(10).ln()]
    total = sum((_pydecimal.Decimal(1) / n for n in range(1, 20)), _pydecimal.Decimal(0))
    try:
        _pydecimal.Decimal(1) / 0
    except ZeroDivisionError:
        pass
    return [str(result) for result in results], str(total.quantize(_pydecimal.Decimal("0.001")))


def main():
    harmonic = sum((fractions.Fraction(1, n) for n in range(1, 60)), fractions.Fraction(0))
    generator = random.Random(7)
    values = [generator.randint(0, 1000) for _ in range(100)]
    generator.shuffle(values)
    numbers = [generator.gauss(0, 1) for _ in range(50)]
    return (harmonic.limit_denominator(1000), decimals(), statistics.median(values), statistics.mean(values),
            statistics.pstdev(values), round(sum(numbers), 6), generator.choice(values), generator.sample(values, 5))
