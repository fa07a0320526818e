"""Threads one after the other, so that what each does is the same in every run; by the raw interface, because the
waiting of threading.Thread.start() does more or less by chance."""
import _thread
import queue

wrap = None  # what the runner puts around a thread's function


def leaf(n):
    return n + 1


def work(n):
    return sum(leaf(i) for i in range(n))


def worker(items, results, done):
    while True:
        try:
            item = items.get_nowait()
        except queue.Empty:
            break
        results.append(work(item))
    done.release()


def main():
    results = []
    for count in range(4):
        items = queue.Queue()
        for i in range(10 + count):
            items.put(i)
        done = _thread.allocate_lock()
        done.acquire()
        _thread.start_new_thread(wrap(worker), (items, results, done))
        done.acquire()
    return sum(results)
