"""One thread, whose every event is known, does a thing N times: `many_names.py THING N`. Its id goes to the file "threads".

names   makes two functions, with names of their own, and calls one in the other
memory  takes and gives back blocks of several sizes
"""
import _thread
import os
import sys
import threading
import time


def template(call):
    if call:
        call(None)
        call(None)


def names(count):
    new, code = type(template), template.__code__
    for i in range(count):
        file = "a_file_with_a_name_of_some_length/number_%d.py" % i
        inner = new(code.replace(co_name="inner_%d" % i, co_filename=file), {})
        outer = new(code.replace(co_name="outer_%d" % i, co_filename=file), {})
        outer(inner)


def memory(count):
    for i in range(count):
        block = bytearray(600)
        block += bytes(i % 3000 + 40)
        [None] * 70


def worker(ended, ids, work, count):
    ids[0] = threading.get_native_id()
    work(count)
    ended.release()


def main(thing, count):
    ended = _thread.allocate_lock()
    ended.acquire()
    ids = [0]
    _thread.start_new_thread(worker, (ended, ids, globals()[thing], count))
    ended.acquire()
    with open("threads", "w") as file:
        file.write("%d %d %d %d" % tuple(ids * 4))
    while os.path.exists("/proc/self/task/%d" % ids[0]):
        time.sleep(0.001)


if __name__ == "__main__":
    with open("oracle", "r+b") as file:
        file.write(os.getpid().to_bytes(8, "little"))
    main(sys.argv[1], int(sys.argv[2]))
    print("did", sys.argv[1:])
