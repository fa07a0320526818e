"""The json package without its C accelerator, there and back: generators, methods, regular expressions."""
import json.decoder
import json.encoder
import json.scanner

ROUNDS = 40


def document(size):
    return {
        "rows": [
            {"id": i, "name": "row %d" % i, "price": i / 7, "tags": ["a", "b\n", "\u00e9"], "next": None, "ok": i > 9}
            for i in range(size)
        ],
        "nested": {"deep": {"deeper": {"deepest": list(range(50))}}},
    }


class Decoder(json.decoder.JSONDecoder):
    def __init__(self):
        super().__init__()
        self.parse_string = json.decoder.py_scanstring
        self.scan_once = json.scanner.py_make_scanner(self)


def main():
    json.encoder.c_make_encoder = None
    json.encoder.encode_basestring_ascii = json.encoder.py_encode_basestring_ascii
    value = document(250)
    for _ in range(ROUNDS):
        text = json.encoder.JSONEncoder(indent=1).encode(value)
        assert Decoder().decode(text) == value
