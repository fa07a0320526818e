"""flask_load.py REQUESTS: a service of flask that answers that many requests, one after the other: routes, JSON, a template, errors."""
import sys

from flask import Flask, abort, jsonify, render_template_string, request

app = Flask(__name__)
TEMPLATE = "<ul>{% for item in items %}<li>{{ item.name }}: {{ item.price }}</li>{% endfor %}</ul>"
ITEMS = [{"name": "item %d" % i, "price": 3 * i} for i in range(20)]


@app.route("/")
def index():
    return render_template_string(TEMPLATE, items=ITEMS)


@app.route("/items/<int:number>")
def item(number):
    if number >= len(ITEMS):
        abort(404)
    return jsonify(ITEMS[number])


@app.route("/total", methods=["POST"])
def total():
    return jsonify(total=sum(ITEMS[number]["price"] for number in request.get_json()["numbers"]))


def main(requests):
    client = app.test_client()
    for number in range(requests):
        assert client.get("/").status_code == 200
        assert client.get("/items/%d" % (number % 25)).status_code == (200 if number % 25 < 20 else 404)
        assert client.post("/total", json={"numbers": [1, 2, 3]}).get_json() == {"total": 18}


main(int(sys.argv[1]))
