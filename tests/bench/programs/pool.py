"""pool.py REQUESTS: ten processes that answer REQUESTS requests each: parsing, sorting, templates. Used by lib/scale.py, which makes many
traces of one of its."""
import json
import os
import sys


def parse(text):
    return json.loads(text)


def price(item, number):
    return item["price"] * number % 97


def total(items, number):
    return sum(price(item, number) for item in items)


def render(items):
    return "".join("<li>%s</li>" % name.title() for name in sorted(item["name"] for item in items))


def page(number, text):
    items = parse(text)
    return len(render(items)) + total(items, number)


def work(requests):
    text = json.dumps([{"name": "item %d" % i, "price": 3 * i} for i in range(40)])
    for number in range(requests):
        page(number, text)


def main():
    requests = int(sys.argv[1])
    children = []
    for _ in range(9):
        child = os.fork()
        if not child:
            work(requests)
            os._exit(0)
        children.append(child)
    work(requests)
    for child in children:
        os.waitpid(child, 0)


main()
