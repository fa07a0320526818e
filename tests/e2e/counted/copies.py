"""pickle by its Python half, copy, struct, base64, zlib, hashing."""
import base64
import copy
import hashlib
import io
import pickle
import struct
import zlib


class Node:
    def __init__(self, value, next_node=None):
        self.value, self.next, self.extra = value, next_node, {"k": [value] * 3}

    def __reduce__(self):
        return Node, (self.value, self.next)


class Slotted:
    __slots__ = ("a", "b")

    def __getstate__(self):
        return self.a, self.b

    def __setstate__(self, state):
        self.a, self.b = state


def chain(n):
    node = None
    for i in range(n):
        node = Node(i, node)
    return node


def slotted(i):
    one = Slotted()
    one.a, one.b = i, str(i)
    return one


def main():
    data = {"chain": chain(20), "slots": [slotted(i) for i in range(20)],
            "mixed": [1, 2.5, "x", b"y", None, (1, 2), {3}]}
    sizes = []
    for protocol in range(5):
        stream = io.BytesIO()
        pickle._Pickler(stream, protocol).dump(data)
        stream.seek(0)
        again = pickle._Unpickler(stream).load()
        twin = pickle.loads(pickle.dumps(data, protocol))
        sizes.append((len(stream.getvalue()), again["chain"].value, twin["slots"][3].b))
    twin = copy.deepcopy(data)
    shallow = copy.copy(data["slots"][0])
    packed = b"".join(struct.pack("<iHd", i, i, i) for i in range(50))
    text = base64.b64encode(zlib.compress(packed))
    assert zlib.decompress(base64.b64decode(text)) == packed
    return sizes, twin["chain"].value, shallow.a, hashlib.sha256(packed).hexdigest()
