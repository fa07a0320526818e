"""A text of JSON and what it means; scale: MB of text."""


def main(scale):
    import json

    one = '{"id": 123456, "name": "a name of some length", "tags": ["x", "y", 1.5, null], "more": {"a": 1, "b": [true, 2]}}'
    text = "[" + ",".join([one] * (scale * 1000000 // (len(one) + 1))) + "]"
    kept = json.loads(text)
    assert len(kept) > 1
