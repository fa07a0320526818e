"""`compared.py N`: N calls of leaf(), each with one block of 10033 bytes; then a peak of known height.
`compared.py N peak` prints the peak that tracemalloc saw, which must have been started by -X tracemalloc."""
import sys


def leaf(n):
    return b"x" * n


def main(count):
    for _ in range(count):
        leaf(10000)


def peak():
    kept = [b"x" * size for size in range(100000, 400000, 1000)]
    kept = None
    return [b"x" * 50000 for _ in range(20)]


main(int(sys.argv[1]))
peak()
if "peak" in sys.argv:
    import tracemalloc
    print(tracemalloc.get_traced_memory()[1])
