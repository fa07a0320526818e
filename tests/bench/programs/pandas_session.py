"""pandas_session.py ROUNDS: tables that pandas reads, joins, groups, reshapes and writes."""
import io
import sys

import numpy
import pandas

ROWS = 4000


def main(rounds):
    random = numpy.random.default_rng(1)
    text = pandas.DataFrame({"shop": random.integers(0, 50, ROWS), "day": random.integers(0, 365, ROWS),
                             "price": random.random(ROWS).round(3), "kind": random.choice(list("abcde"), ROWS)}).to_csv(index=False)
    shops = pandas.DataFrame({"shop": range(50), "city": ["city %d" % (number % 7) for number in range(50)]})
    for _ in range(rounds):
        sales = pandas.read_csv(io.StringIO(text))
        joined = sales.merge(shops, on="shop")
        joined["month"] = pandas.to_datetime(joined.day, unit="D", origin="2025-01-01").dt.month
        totals = joined.groupby(["city", "month"]).price.agg(["sum", "mean", "count"])
        table = joined.pivot_table(index="city", columns="kind", values="price", aggfunc="sum")
        ranked = joined.sort_values("price").groupby("shop").head(3)
        rolled = joined.set_index("day").sort_index().price.rolling(30).mean()
        joined["label"] = joined.kind.str.upper() + joined.city.str[-1]
        assert totals["count"].sum() == len(rolled) == ROWS and len(ranked) == 150 and abs(table.sum().sum() - sales.price.sum()) < 1e-6
        totals.reset_index().to_json()


main(int(sys.argv[1]))
