"""Allocates, clears, moves and frees blocks around 512 bytes, where pymalloc's end, and looks at each byte. Prints the
bytes that kept() has allocated and that are alive at the end."""
import sys

blocks = []


def byte_of(i):
    return bytes([i % 251 + 1])


def change():
    for i in range(6000):
        byte, size = byte_of(i), 1 + i * 37 % 800
        block = bytearray(byte * size)
        block.extend(byte * (i * 11 % 500))  # realloc to more
        assert block.count(byte) == len(block) == size + i * 11 % 500
        del block[1 + i * 53 % len(block):]  # and to less
        block.append(byte[0])
        assert block.count(byte) == len(block)
        cleared = bytes(size)  # calloc
        assert cleared.count(b"\0") == size
        blocks.append((block, byte))
        if len(blocks) > 300:
            old, byte = blocks.pop(i * 7 % 300)
            assert old.count(byte) == len(old)
    del blocks[:]


def kept():
    for i in range(8000):
        blocks.append(bytes(1 + i % 700))


before = sys.getallocatedblocks()
change()
assert abs(sys.getallocatedblocks() - before) < 2000
kept()
print(sum(map(sys.getsizeof, blocks)) + sys.getsizeof(blocks) - sys.getsizeof([]))
