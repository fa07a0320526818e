"""Medians, spreads and ratios of paired measurements."""
import statistics


def spread(values):
    """{"median", "low", "high"}: the quartiles, or the extremes of fewer than four values."""
    values = sorted(values)
    if not values:
        return None
    if len(values) < 4:
        low, high = values[0], values[-1]
    else:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": statistics.median(values), "low": low, "high": high}


def added_ratio(bare, measured, reference):
    """Of each round: what `measured` adds to bare, as a multiple of what `reference` adds."""
    ratios = []
    for b, m, r in zip(bare, measured, reference):
        if r > b:
            ratios.append((m - b) / (r - b))
    return spread(ratios)


def ratio(values, reference):
    return spread([v / r for v, r in zip(values, reference)])


BUDGET_ALLOWED = 1.2  # times the budget: it counts from Python's start to its end


def budget_limit(name):
    """The share that a budget such as "5%" may add."""
    return BUDGET_ALLOWED * float(name.rstrip("%")) / 100
