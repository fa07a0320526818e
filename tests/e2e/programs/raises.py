"""One of each kind of event, whatever is recorded."""


def generator():
    try:
        yield 1
        yield 2
    except ValueError:
        yield 3


def unwinds():
    raise KeyError("x")


def work():
    it = generator()
    next(it)
    next(it)
    it.throw(ValueError("thrown"))
    try:
        unwinds()
    except KeyError:
        pass
    try:
        len(5)
    except TypeError:
        pass
    items = []
    for i in range(2000):
        items.append(b"x" * i)
    return len(items)


for _ in range(20):
    work()
print("raised")
