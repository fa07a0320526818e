"""Nothing but allocations: a list, a string and a dict a round. Stands in for shared/workloads/alloc.py."""


def make(i):
    return [i, str(i), {"a": i}]


def main():
    kept = []
    for i in range(1000000):
        kept.append(make(i))
        if len(kept) > 5000:
            kept.clear()
