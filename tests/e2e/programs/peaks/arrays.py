"""Arrays of numpy (1.26, or 2), products and sorted copies; scale: MB of an array."""

BEFORE = ["numpy"]


def main(scale):
    import numpy

    count = scale * 1000000 // 8
    first = numpy.arange(count, dtype=float)
    second = numpy.sqrt(first) * first[::-1]
    order = numpy.argsort(second)
    square = numpy.ones((500, 500))
    texts = numpy.array([str(number) for number in range(50000)])
    assert (square @ square)[0, 0] == 500 and len(order) == count and len(numpy.unique(texts)) == 50000
