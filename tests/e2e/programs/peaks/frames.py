"""pandas: groups, a join, a table as text and back; scale: thousands of rows."""

BEFORE = ["numpy"]


def main(scale):
    import io

    import pandas

    rows = scale * 1000
    table = pandas.DataFrame({"key": [number % 1000 for number in range(rows)], "value": range(rows),
                              "name": ["name %d" % (number % 5000) for number in range(rows)]})
    sums = table.groupby("key")["value"].agg(["sum", "mean", "max"]).reset_index()
    joined = table.merge(sums, on="key")
    text = joined.head(20000).to_csv()
    assert len(pandas.read_csv(io.StringIO(text))) == min(rows, 20000)
