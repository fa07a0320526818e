"""Trace functions of greenlet, as a program sets them: what gettrace() and settrace() return, what is called for which switch.
The last line is the number of switches."""
import threading

import greenlet
from greenlet import getcurrent, gettrace, settrace

seen = []
switches = 0


def back_and_forth(times):
    """One switch there and one back each time, and the last, when the greenlet ends."""
    global switches
    main = getcurrent()

    def run():
        for _ in range(times):
            main.switch()

    other = greenlet.greenlet(run)
    for _ in range(times + 1):
        other.switch()
        switches += 2


def log(event, pair):
    seen.append((event, len(pair), pair[1] is getcurrent()))


def other_log(event, pair):
    seen.append("other " + event)


def raises(event, pair):
    raise ValueError("from the trace function")


def show(*words):
    print(*words, seen, "now", getattr(gettrace(), "__name__", None))
    del seen[:]


def called(function, *arguments):
    try:
        result = function(*arguments)
        return getattr(result, "__name__", result)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def one_after_the_other():
    show("at first")
    back_and_forth(1)
    show("set:", called(settrace, log))
    back_and_forth(1)
    show("logged")
    show("set:", called(greenlet.settrace, other_log))
    back_and_forth(1)
    show("other")
    show("off:", called(settrace, None))
    back_and_forth(1)
    show("none")


def wrong():
    for arguments in (), (log, log):
        show(called(settrace, *arguments))
    show(called(gettrace, log))


def taken_off():
    pass


def raising():
    """greenlet takes it off; the greenlet in which it raised ends by that."""
    global switches
    show("set:", called(settrace, raises))
    show("raised:", called(back_and_forth, 1))
    switches += 2
    taken_off()
    back_and_forth(2)
    show("afterwards")
    show("set:", called(settrace, log))
    back_and_forth(1)
    show("logged")
    show("off:", called(settrace, None))


def in_a_thread():
    show("in a thread")
    back_and_forth(1)
    show("set:", called(settrace, log))
    back_and_forth(1)
    show("logged in a thread")


one_after_the_other()
wrong()
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
raising()
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
back_and_forth(100)
print(switches)
