"""About ten million events with 37000: tokens, sums and recursion, in two threads and the child of a fork."""
import os, sys, threading, random, time

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def tokenize(text):
    out = []
    for word in text.split():
        out.append(word.strip().lower())
    return out

def score(words):
    total = 0
    for w in words:
        total += len(w)
    return total

def parse(text):
    return score(tokenize(text))

def step(i):
    if i % 7 == 0:
        return fibonacci(8)
    return parse("The quick brown fox jumps over the lazy dog " * 3)

def work(n):
    for i in range(n):
        step(i)

def main(n):
    t = threading.Thread(target=work, args=(n // 3,), name="worker")
    t.start()
    work(n)
    t.join()

if __name__ == "__main__":
    pid = os.fork()
    if pid == 0:
        work(int(sys.argv[1]) // 10)
        os._exit(0)
    main(int(sys.argv[1]))
    os.waitpid(pid, 0)
