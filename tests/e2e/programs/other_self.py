"""A named thread that calls methods of an object which has a name too: `other_self.py N`."""
import os
import sys
import threading


class Other:
    def __init__(self):
        self._name = "of another object"
        self._native_id = 1

    def leaf(self):
        pass


def work(count):
    other = Other()
    for _ in range(count):
        other.leaf()


if __name__ == "__main__":
    with open("oracle", "r+b") as file:
        file.write(os.getpid().to_bytes(8, "little"))
    thread = threading.Thread(target=work, args=(int(sys.argv[1]),), name="its own")
    thread.start()
    thread.join()
    with open("threads", "w") as file:
        file.write("%d %d %d %d" % ((thread.native_id,) * 4))
