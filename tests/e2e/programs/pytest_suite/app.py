"""What the suite tests. It counts its own calls."""
import collections
import os

calls = collections.Counter()
kept = []


def query(caller):
    calls[caller] += 1
    return caller


def load_users(count):
    return [query("load_users") for _ in range(count)]


def page(users):
    return sorted(load_users(users) + [query("page")], key=lambda user: query("<lambda>"))


class Session:
    def query(self, caller):
        calls[caller] += 1


def rows(count):
    yield from (query("rows") for _ in range(count))


def allocate(blocks, size):
    return [bytearray(size) for _ in range(blocks)]


def leak(size):
    kept.append(bytearray(size))


def nothing():
    pass


def child(count):
    """Calls in a child of fork."""
    pid = os.fork()
    if not pid:
        for _ in range(count):
            query("child")
        os._exit(0)
    os.waitpid(pid, 0)
    calls["child"] += count
