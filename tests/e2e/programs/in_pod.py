"""What the program's container of pod.py runs: leaf() 1000 times, in a child once more. Says what it sees of the pod."""
import os


def leaf():
    pass


def work():
    for _ in range(1000):
        leaf()


work()
print("pid", os.getpid(), "shared", sorted(os.listdir("/run/evprof")), flush=True)
child = os.fork()
if not child:
    work()
    os._exit(0)
os.waitpid(child, 0)
