"""JSON by the C and the Python halves of the library."""
import json
import json.decoder
import json.encoder
import json.scanner

DATA = {"list": [1, 2.5, None, True, "text \u00fc \"quoted\" \\"] * 20,
        "nested": {"k%d" % i: {"v": [i] * 3} for i in range(40)}}


class Point:
    def __init__(self, x):
        self.x = x


def fallback(value):
    return {"x": value.x}


def hook(pairs):
    return dict(pairs)


def by_python(text):
    decoder = json.JSONDecoder(object_pairs_hook=hook)
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    decoder.parse_string = json.decoder.py_scanstring
    return decoder.decode(text)


def main():
    text = json.dumps(DATA, sort_keys=True)
    pretty = json.dumps(DATA, indent=2, default=fallback)
    points = json.dumps([Point(i) for i in range(30)], default=fallback)
    parts = list(json.JSONEncoder(indent=1).iterencode(DATA))
    assert json.loads(text) == by_python(text) == DATA
    json.loads(points, object_hook=lambda d: d)
    try:
        json.loads("[1, 2")
    except ValueError:
        pass
    return len(text), len(pretty), len(parts)
