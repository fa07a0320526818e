"""sqlite3 with functions, aggregates, collations and row factories in Python: calls from C back into Python."""
NEEDS = ["sqlite3"]


def main():
    import sqlite3

    class Joining:
        def __init__(self):
            self.parts = []

        def step(self, value):
            self.parts.append(str(value))

        def finalize(self):
            return ",".join(self.parts)

    def collate(a, b):
        return (a > b) - (a < b)

    def factory(cursor, row):
        return dict(zip([column[0] for column in cursor.description], row))

    base = sqlite3.connect(":memory:")
    base.create_function("double", 1, lambda x: x * 2)
    base.create_aggregate("joined", 1, Joining)
    base.create_collation("plain", collate)
    base.execute("create table t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((i, "text%d" % (i % 9)) for i in range(60)))
    base.row_factory = factory
    rows = base.execute("select double(a) as d, b from t order by b collate plain, a").fetchall()
    groups = [row["j"] for row in base.execute("select joined(a) as j from t group by b")]
    try:
        base.execute("select nothing from t")
    except sqlite3.OperationalError:
        pass
    base.close()
    return rows[0], groups[0], len(rows)
