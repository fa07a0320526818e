"""Work between two blocks of known sizes, in which Python makes objects for whoever gets its events: methods that are bound,
frames, offsets above 256 and lines above it. Whether there is a hook or not, the program's own allocations are the same."""


def far(values, depth):
    """An instruction far from the beginning of the code, where everything below happens."""
    a = b = c = d = e = f = values
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    a = b; b = c; c = d; d = e; e = f; f = a; a = c; c = e; e = a; b = d; d = f; f = b
    values.append(near(len(a)))
    values.pop()
    values.sort(key=near)
    for value in upwards(values):
        near(value)
    try:
        values.index(failing)
    except ValueError:
        near(1)
    try:
        failing(values)
    except KeyError:
        near(2)
    if depth:
        far(values, depth - 1)
    return values.count(1)


def near(value):
    return value


def upwards(values):
    for value in values:
        yield near(value)


def failing(values):
    near(3)
    raise KeyError(values)


def work(rounds):
    values = [3, 1, 2]
    for _ in range(rounds):
        far(values, 3)


work(100)  # what is made once for each code object is there then
first = bytes(100003)
work(200)
last = bytes(200003)
