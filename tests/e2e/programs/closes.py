"""Closes every descriptor, as daemons do, takes the numbers for files of its own, and works on."""
import os

import known


def after():
    known.work(500)


def main():
    known.work(500)
    os.closerange(0, 1024)
    files = [os.open("own%d" % i, os.O_RDWR | os.O_CREAT) for i in range(12)]
    after()
    for i, fd in enumerate(files):
        os.write(fd, b"%d" % i)
        os.close(fd)
    after()
    good = all(open("own%d" % i).read() == str(i) for i in range(12))
    with open("verdict", "w") as file:
        file.write("%s %s" % (good, files == list(range(12))))


if __name__ == "__main__":
    main()
