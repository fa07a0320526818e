"""Code of one life of lives.c, for a budget: calls a function for some time in the main interpreter, and prints how often."""
import time


def tiny(x):
    return x


def work(seconds):
    calls, end = 0, time.process_time() + seconds
    while time.process_time() < end:
        for i in range(1000):
            tiny(i)
        calls += 1000
    return calls


if life.startswith("main"):
    print(work(0.5), flush=True)
