"""Blocks that stay alive, made by stacks of many shapes. `alive_by_stack.py LIBRARY FRAMES [GREENLETS]` starts tracemalloc, and then
evprof, which so stands above it: both see the same blocks of the same run. A forked child prints what tracemalloc says of them:
JSON, [[[file, line], ...], bytes, blocks] for each stack, outermost frame first. The parent ends at once, so what it held at the
fork is what it holds at the end of its trace."""
import ctypes
import json
import os
import random
import sys
import threading
import tracemalloc

kept = []


def keep(size):
    kept.append(bytes(size))
    kept.append(bytearray(
        size)); kept.append(bytes(size))


# Frames of the same size at the same address, at the same instruction, with other callers.
def left(size):
    keep(size)


def right(size):
    keep(size)


def either():
    for i in range(30):
        (left if i % 3 else right)(1000)
        if i % 2:
            left(1000)
        else:
            left(1000)


def down(depth, size):
    if depth:
        down(depth - 1, size)
        if depth % 5 == 0:
            more = size + depth  # an int of a free list, from 3.14 on: of a line that is not compared
            kept.append(bytes(more))
    else:
        keep(size)


def ping(depth):
    if depth:
        pong(depth - 1)
    keep(300)


def pong(depth):
    ping(depth)
    keep(400)


def numbers(count):
    for i in range(count):
        size = 2000 + i
        yield bytes(size)
        kept.append(bytes(100))


def delegated(count):
    made = yield from numbers(count)
    kept.append(bytearray(501))
    return made


def first_consumer(generator):
    kept.append(next(generator))


def second_consumer(generator):
    kept.append(next(generator))


def generators():
    ones = [delegated(9) for _ in range(4)]
    for i in range(8):
        for generator in ones:
            (first_consumer if i % 2 else second_consumer)(generator)
    for generator in (numbers(3), numbers(3)):
        try:
            payload = bytes(900)
            generator.throw(KeyError(payload))
        except KeyError as error:
            kept.append(error)
    kept.append(ones)


class Kept(Exception):
    def __init__(self, size):
        super().__init__(size)
        self.payload = bytearray(size)


def raises(depth):
    if depth:
        raises(depth - 1)
    raise Kept(700)


def exceptions():
    for depth in (0, 3, 3, 7):
        try:
            raises(depth)
        except Kept as error:
            kept.append(error)
        finally:
            kept.append(bytes(81))


def closures(size):
    def inner(*arguments, **others):
        kept.append(bytes(size))
        return arguments, others

    class Local(dict):
        held = bytes(610)

        def __del__(self):
            kept.append(bytearray(size))

    kept.append(inner(1, a=2))
    kept.append([inner(i) for i in range(5)])
    kept.append({i:
                 bytes(50) for i in range(20)})
    Local(a=1)
    kept.append(Local)
    return sorted(range(6), key=lambda i:
                  kept.append(bytes(60)) or -i)


def short_lived(turn):
    names = {"kept": kept}
    exec(compile("def made():\n" + "\n" * (turn % 4) + "    kept.append(bytes(1100))\nmade()\nmade()", "<made>", "exec"), names)


class Turn:
    def __await__(self):
        kept.append(bytes(90))
        yield self


async def waits(size):
    kept.append(bytes(size))
    await Turn()
    kept.append(bytearray(size))
    return size


async def several(size):
    for i in range(3):
        await waits(size + i)


def coroutines():
    running = [several(1200 + i) for i in range(4)]
    while running:
        for one in running[:]:
            try:
                one.send(None)
            except StopIteration:
                running.remove(one)


def in_thread():
    for i in range(20):
        down(i % 6, 800)


def threads():
    running = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def in_greenlet(switch_to):
    for i in range(10):
        down(i % 4, 650)
        switch_to()
        left(1000)


def greenlets(count):
    import greenlet
    parent = greenlet.getcurrent()
    ones = [greenlet.greenlet(lambda: in_greenlet(parent.switch)) for _ in range(count)]
    for _ in range(11):
        for one in ones:
            one.switch()
        right(1000)


def deep():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20000)
    down(900, 1400)
    for i in range(20):
        down(40 + i, 1500)
    sys.setrecursionlimit(before)


class Walk:
    """Random walks through calls of all kinds, which return, raise, and come back to the same place from elsewhere."""

    def __init__(self, seed, steps):
        self.random, self.steps = random.Random(seed), steps
        self.ways = [value for name, value in sorted(vars(Walk).items()) if name.startswith("by_")]

    def step(self, depth):
        self.steps -= 1
        choice = self.random.random()
        if choice < 0.3:
            kept.append(bytes(70))
        if depth and self.steps > 0:
            for _ in range(self.random.choice((1, 1, 2, 3))):
                try:
                    self.random.choice(self.ways)(self, depth - 1)
                except LookupError:
                    if choice < 0.5:
                        kept.append(bytearray(71))
                    else:
                        raise
        if choice > 0.8:
            raise LookupError
        kept.append(bytes(72))
        return 1

    def by_call(self, depth):
        self.step(depth)

    def by_same_call(self, depth):
        self.step(depth)

    def by_calls(self, depth):
        for _ in range(3):
            self.step(depth)

    def by_keyword(self, depth):
        self.step(depth=depth)

    def by_star(self, depth):
        self.step(*(depth,))

    def by_stars(self, depth):
        self.step(**{"depth": depth})

    def by_function(self, depth):
        Walk.step(self, depth)

    def by_lambda(self, depth):
        (lambda: self.step(depth))()

    def by_argument(self, depth):
        max(self.step(depth), self.step(depth), len("one"))

    def by_sorted(self, depth):
        sorted((1, 2), key=lambda one: self.step(depth))

    def by_map(self, depth):
        list(map(self.step, (depth, depth)))

    def by_comprehension(self, depth):
        return [self.step(depth) for _ in range(2)]

    def by_handler(self, depth):
        try:
            self.step(depth)
            self.step(depth)
        except LookupError:
            self.step(depth)
        finally:
            kept.append(bytes(73))

    def by_property(self, depth):
        self.depth = depth
        return self.walked

    @property
    def walked(self):
        return self.step(self.depth)

    def __getitem__(self, depth):
        return self.step(depth)

    def by_item(self, depth):
        return self[depth]

    def __call__(self, depth):
        self.step(depth)

    def by_object(self, depth):
        self(depth)

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError
        return self.step(self.depth)

    def by_missing(self, depth):
        self.depth = depth
        return self.missing

    def __add__(self, depth):
        return self.step(depth)

    def by_sum(self, depth):
        return self + depth

    def by_class(self, depth):
        walk = self

        class Made:
            def __init__(self, depth):
                walk.step(depth)

        Made(depth), Made(depth)

    def by_with(self, depth):
        self.depth = depth
        with self:
            kept.append(bytes(74))
            self.depth = 0  # until 3.9 __exit__() is called from the last line

    def __enter__(self):
        self.step(self.depth)

    def __exit__(self, *error):
        kept.append(bytes(75))

    def yields(self, depth):
        yield self.step(depth)
        kept.append(bytes(76))
        yield self.step(depth)

    def by_generator(self, depth):
        for _ in self.yields(depth):
            kept.append(bytes(77))

    def delegates(self, depth):
        yield from self.yields(depth)

    def by_delegation(self, depth):
        generator = self.delegates(depth)
        next(generator)
        sum(generator)

    def by_generator_again(self, depth):
        generator = self.delegates(depth)
        for _ in range(2):
            for _ in generator:
                break

    async def waits(self, depth):
        self.step(depth)
        await waits(78)
        return self.step(depth)

    async def awaits(self, depth):
        await self.waits(depth)

    def by_coroutine(self, depth):
        coroutine = self.awaits(depth)
        coroutine.send(None)
        coroutine.close()


def walks():
    for seed in range(10):
        walk = Walk(seed, 150)
        for _ in range(3):
            try:
                walk.step(14)
            except LookupError:
                kept.append(bytes(79))


def main():
    either()
    ping(6)
    generators()
    exceptions()
    closures(1600)
    for turn in range(40):
        short_lived(turn)
    coroutines()
    threads()
    if len(sys.argv) > 3:
        greenlets(int(sys.argv[3]))
    deep()
    walks()


def report():
    sums = {}
    for trace in tracemalloc.take_snapshot().traces:
        frames = [(frame.filename, frame.lineno) for frame in trace.traceback]
        if sys.version_info < (3, 7):
            frames.reverse()
        one = sums.setdefault(tuple(frames), [0, 0])
        one[0] += trace.size
        one[1] += 1
    print(json.dumps([[stack, size, blocks] for stack, (size, blocks) in sums.items()]))
    sys.stdout.flush()


for length in 1, 2, 3:  # the lists of free tuples and ints are full: arguments come from them
    del [(10 ** 6 + i,) * length for i in range(3000)][:]
del [kept.append for _ in range(300)][:]  # bound methods, which a profile function gets
library = ctypes.PyDLL(sys.argv[1])
tracemalloc.start(int(sys.argv[2]))
library.evprof_start()
main()
child = os.fork()
if not child:
    report()
    os._exit(0)
os.waitpid(child, 0)
os._exit(0)
