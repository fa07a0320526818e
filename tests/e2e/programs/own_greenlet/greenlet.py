"""Has greenlet's name and the names of its functions; they are not greenlet's."""
trace = None


def settrace(function):
    global trace
    before, trace = trace, function
    return before


def gettrace():
    return trace


def switch(origin, target):
    if trace:
        trace("switch", (origin, target))
