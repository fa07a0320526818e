"""A server for profiles over HTTP, which checks and adds up what it gets, and answers as it is asked to: OTLP, and the forms of Pyroscope
and Parca, by the path.

push_server.py FOLDER [ANSWER...]: it listens at the port of FOLDER/port, or at any and writes that, and makes FOLDER/ready. After each
request FOLDER/received.json has what was accepted, also by an earlier server. With FOLDER/cert.pem and key.pem it speaks TLS, and
wants them of the client, too. The answers are given in turn, the last one again and again (default: 200): a status; 503+SECONDS with
Retry-After; slow+SECONDS, which answers 200 late; reset, which closes the connection; lost, which accepts the request and
closes the connection without an answer; partial+N, 200 with N rejected profiles.

The decoder is written after opentelemetry-proto's profiles/v1development, as of the Collector 0.165, pprof's profile.proto, Pyroscope's
push.v1 and Parca's profilestore.v1alpha1, and knows nothing of evprof. A message that is not valid is answered by 400, and the reason is in FOLDER/errors.
"""
import base64
import collections
import gzip
import http.server
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
import uuid


class Bad(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Bad("a number is cut")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, wire type, value) of each field of a message."""
    at = 0
    while at < len(data):
        head, at = varint(data, at)
        wire = head & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value = struct.unpack_from("<Q", data, at)[0]
            at += 8
        elif wire == 2:
            length, at = varint(data, at)
            value = data[at : at + length]
            if len(value) != length:
                raise Bad("a field is cut")
            at += length
        else:
            raise Bad("wire type %d" % wire)
        yield head >> 3, wire, value


WIRE = {"int": 0, "fixed64": 1, "text": 2, "bytes": 2, "ints": 2}


def message(data, schema):
    """A dict by the schema: name: (number, kind or schema, repeated)."""
    by_number = {number: (name, kind, many) for name, (number, kind, many) in schema.items()}
    found = {name: [] if many or kind == "ints" else None for name, (number, kind, many) in schema.items()}
    for number, wire, value in fields(data):
        if number not in by_number:
            raise Bad("field %d is not in the schema with %s" % (number, sorted(schema)))
        name, kind, many = by_number[number]
        if wire != (2 if isinstance(kind, dict) else WIRE[kind]):
            raise Bad("%s has wire type %d" % (name, wire))
        if isinstance(kind, dict):
            value = message(value, kind)
        elif kind == "text":
            value = value.decode()  # strict: fields of type string are UTF-8
        elif kind == "ints":
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                found[name].append(one)
            continue
        if many:
            found[name].append(value)
        elif found[name] is not None:
            raise Bad("%s is there twice" % name)
        else:
            found[name] = value
    return found


ANY = {"string": (1, "text", False), "int": (3, "int", False)}
KEY_VALUE = {"key": (1, "text", False), "value": (2, ANY, False)}
RESOURCE = {"attributes": (1, KEY_VALUE, True)}
SCOPE = {"name": (1, "text", False), "version": (2, "text", False)}
VALUE_TYPE = {"type": (1, "int", False), "unit": (2, "int", False)}
SAMPLE = {
    "stack": (1, "int", False),
    "attributes": (2, "ints", False),
    "link": (3, "int", False),
    "values": (4, "ints", False),
}
PROFILE = {
    "sample_type": (1, VALUE_TYPE, False),
    "samples": (2, SAMPLE, True),
    "time": (3, "fixed64", False),
    "duration": (4, "int", False),
    "period_type": (5, VALUE_TYPE, False),
    "period": (6, "int", False),
    "id": (7, "bytes", False),
}
SCOPE_PROFILES = {"scope": (1, SCOPE, False), "profiles": (2, PROFILE, True)}
RESOURCE_PROFILES = {"resource": (1, RESOURCE, False), "scope_profiles": (2, SCOPE_PROFILES, True)}
LINE = {"function": (1, "int", False), "line": (2, "int", False)}
DICTIONARY = {
    "mappings": (1, {}, True),
    "locations": (2, {"mapping": (1, "int", False), "lines": (3, LINE, True), "attributes": (4, "ints", False)}, True),
    "functions": (
        3,
        {"name": (1, "int", False), "system": (2, "int", False), "file": (3, "int", False), "line": (4, "int", False)},
        True,
    ),
    "links": (4, {}, True),
    "strings": (5, "text", True),
    "attributes": (6, {"key": (1, "int", False), "value": (2, ANY, False), "unit": (3, "int", False)}, True),
    "stacks": (7, {"locations": (1, "ints", False)}, True),
}
REQUEST = {"resource_profiles": (1, RESOURCE_PROFILES, True), "dictionary": (2, DICTIONARY, False)}


# pprof
LABEL = {"key": (1, "int", False), "str": (2, "int", False), "num": (3, "int", False), "num_unit": (4, "int", False)}
PPROF_SAMPLE = {"locations": (1, "ints", False), "values": (2, "ints", False), "labels": (3, LABEL, True)}
MAPPING = {
    "id": (1, "int", False),
    "start": (2, "int", False),
    "limit": (3, "int", False),
    "offset": (4, "int", False),
    "filename": (5, "int", False),
    "build_id": (6, "int", False),
    "has_functions": (7, "int", False),
    "has_filenames": (8, "int", False),
    "has_line_numbers": (9, "int", False),
    "has_inline_frames": (10, "int", False),
}
PPROF_LINE = {"function": (1, "int", False), "line": (2, "int", False), "column": (3, "int", False)}
LOCATION = {
    "id": (1, "int", False),
    "mapping": (2, "int", False),
    "address": (3, "int", False),
    "lines": (4, PPROF_LINE, True),
    "is_folded": (5, "int", False),
}
FUNCTION = {
    "id": (1, "int", False),
    "name": (2, "int", False),
    "system_name": (3, "int", False),
    "filename": (4, "int", False),
    "start_line": (5, "int", False),
}
PPROF = {
    "sample_types": (1, VALUE_TYPE, True),
    "samples": (2, PPROF_SAMPLE, True),
    "mappings": (3, MAPPING, True),
    "locations": (4, LOCATION, True),
    "functions": (5, FUNCTION, True),
    "strings": (6, "text", True),
    "drop_frames": (7, "int", False),
    "keep_frames": (8, "int", False),
    "time": (9, "int", False),
    "duration": (10, "int", False),
    "period_type": (11, VALUE_TYPE, False),
    "period": (12, "int", False),
    "comments": (13, "ints", False),
    "default_sample_type": (14, "int", False),
    "doc_url": (15, "int", False),
}


def has_keys(found, wanted):
    if sorted(found) != sorted(wanted):
        raise Bad("%s, not %s" % (sorted(found), sorted(wanted)))


def by_id(table):
    found = {one["id"]: one for one in table}
    if None in found or 0 in found or len(found) != len(table):
        raise Bad("the ids of a table are not numbers from 1 on, each once")
    return found


def labels_of(pairs):
    labels = {}
    for pair in pairs:
        has_keys(pair, ["name", "value"])
        if not re.match("[a-zA-Z_][a-zA-Z0-9_]*\\Z", pair["name"]) or pair["name"] in labels:
            raise Bad("the label %s" % pair["name"])
        labels[pair["name"]] = pair["value"]
    if not labels.get("__name__") or not labels.get("service_name") or len(labels) > 30:
        raise Bad("the labels are %s" % labels)
    return labels


def check_first(dictionary):
    """The first element of each table is that of the value 0."""
    for table in ("mappings", "locations", "functions", "links", "attributes", "stacks"):
        if not dictionary[table] or any(dictionary[table][0].values()):
            raise Bad("the first of %s is not empty" % table)
    if not dictionary["strings"] or dictionary["strings"][0] != "":
        raise Bad("the first string is not empty")


class Received:
    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "received.json")
        known = {"processes": {}, "counts": {}, "ids": []}
        if os.path.exists(self.path):  # of an earlier server
            with open(self.path) as file:
                known = json.load(file)
        self.ids = set(known["ids"])
        self.processes = known["processes"]
        self.counts = collections.Counter(known["counts"])

    def function(self, dictionary, location):
        line = dictionary["locations"][location]["lines"][0]
        function = dictionary["functions"][line["function"] or 0]
        strings = dictionary["strings"]
        kind = dictionary["attributes"][dictionary["locations"][location]["attributes"][0]]
        if strings[kind["key"]] != "profile.frame.type":
            raise Bad("a frame without a type")
        if function["name"] is None:
            raise Bad("a function without a name")
        return "%s:%s(%s)" % (strings[function["file"] or 0], function["line"] or 0, strings[function["name"]])

    def add(self, process, name, when, samples):
        """when: begin and duration; samples: pairs of a value and a stack, innermost first."""
        begin, duration = when
        into = process["profiles"].setdefault(name, {"sum": 0, "own": {}, "total": {}, "begin": begin, "end": 0})
        if name.startswith("inuse_") and begin > into["end"]:
            into.update({"sum": 0, "own": {}, "total": {}})
        into["begin"] = min(into["begin"], begin)
        into["end"] = max(into["end"], begin + (duration or 0))
        for value, stack in samples:
            into["sum"] += value
            for function in stack[:1]:
                into["own"][function] = into["own"].get(function, 0) + value
            for function in set(stack):
                into["total"][function] = into["total"].get(function, 0) + value

    def is_new(self, number):
        if number in self.ids:
            self.counts["doubled"] += 1
            return False
        self.ids.add(number)
        return True

    def process(self, pid, attributes):
        process = self.processes.setdefault(str(pid), {"profiles": {}})
        process["attributes"] = attributes
        return process

    def profile(self, process, dictionary, profile):
        kind = profile["sample_type"]
        name = "%s/%s" % (dictionary["strings"][kind["type"]], dictionary["strings"][kind["unit"]])
        if not profile["id"] or len(profile["id"]) != 16 or not profile["time"]:
            raise Bad("a profile without id or time")
        if not self.is_new(profile["id"].hex()):
            return
        seen, samples = set(), []
        for sample in profile["samples"]:
            if len(sample["values"]) != 1 or (sample["stack"] or 0) in seen:
                raise Bad("a sample has one value, a profile one sample of a stack")
            seen.add(sample["stack"] or 0)
            stack = [self.function(dictionary, i) for i in dictionary["stacks"][sample["stack"] or 0]["locations"]]
            samples.append((sample["values"][0], stack))
        self.add(process, name, (profile["time"], profile["duration"]), samples)

    def take_otlp(self, body):
        request = message(body, REQUEST)
        dictionary = request["dictionary"]
        check_first(dictionary)
        for resource in request["resource_profiles"]:
            attributes = {}
            for pair in resource["resource"]["attributes"]:
                if pair["key"] in attributes:
                    raise Bad("the attribute %s is there twice" % pair["key"])
                value = pair["value"]
                attributes[pair["key"]] = value["string"] if value["int"] is None else value["int"]
            process = self.process(attributes["process.pid"], attributes)
            process["intervals"] = process.get("intervals", 0) + 1
            for scope in resource["scope_profiles"]:
                if scope["scope"]["name"] != "evprof":
                    raise Bad("the scope is %s" % scope["scope"])
                for profile in scope["profiles"]:
                    self.profile(process, dictionary, profile)

    def take_pprof(self, labels, packed):
        profile = message(gzip.decompress(base64.b64decode(packed, validate=True)), PPROF)
        strings, mappings = profile["strings"], by_id(profile["mappings"])
        locations, functions = by_id(profile["locations"]), by_id(profile["functions"])
        if strings[0] != "" or not profile["time"] or not profile["samples"] or not profile["period"]:
            raise Bad("no time, no samples, no period, or the first string is not empty")
        for mapping in mappings.values():
            if not (mapping["has_functions"] and mapping["has_filenames"] and mapping["has_line_numbers"]):
                raise Bad("a mapping to look for symbols in")

        def function(number):
            location = locations[number]
            if location["mapping"] not in mappings or len(location["lines"]) != 1:
                raise Bad("a location without mapping, or with another number of lines than one")
            found = functions[location["lines"][0]["function"]]
            return "%s:%s(%s)" % (strings[found["filename"]], found["start_line"] or 0, strings[found["name"]])

        process = self.process(int(labels["process_pid"]), labels)
        kinds = ["%s/%s" % (strings[kind["type"]], strings[kind["unit"]]) for kind in profile["sample_types"]]
        if "%(type)s/%(unit)s" % {key: strings[value] for key, value in profile["period_type"].items()} not in kinds:
            raise Bad("the period is of another type")
        stacks = [tuple(sample["locations"]) for sample in profile["samples"]]
        if len(set(stacks)) != len(stacks):
            raise Bad("a stack is there twice")
        for i, name in enumerate(kinds):
            pairs = [(sample["values"][i], [function(at) for at in sample["locations"]]) for sample in profile["samples"]]
            self.add(process, name, (profile["time"], profile["duration"]), pairs)
        if any(len(sample["values"]) != len(kinds) for sample in profile["samples"]):
            raise Bad("a sample has a value for each type")
        self.counts["series " + labels["__name__"]] += 1

    def take_pyroscope(self, body):
        request = json.loads(body.decode())
        has_keys(request, ["series"])
        for series in request["series"]:
            has_keys(series, ["labels", "samples"])
            labels = labels_of(series["labels"])
            if labels["__delta__"] != "false":
                raise Bad("the server would compute differences")
            for sample in series["samples"]:
                has_keys(sample, ["ID", "rawProfile"])
                if self.is_new(uuid.UUID(sample["ID"]).hex):
                    self.take_pprof(labels, sample["rawProfile"])

    def take_parca(self, body):
        request = json.loads(body.decode())
        has_keys(request, ["normalized", "series"])
        for series in request["series"]:
            has_keys(series, ["labels", "samples"])
            has_keys(series["labels"], ["labels"])
            labels = labels_of(series["labels"]["labels"])
            if any(name.startswith("__") and name != "__name__" for name in labels):
                raise Bad("a reserved label")
            for sample in series["samples"]:
                has_keys(sample, ["rawProfile"])
                self.take_pprof(labels, sample["rawProfile"])

    def take(self, path, kind, body):
        takes = {
            ("/v1development/profiles", "application/x-protobuf"): self.take_otlp,
            ("/push.v1.PusherService/Push", "application/json"): self.take_pyroscope,
            ("/profiles/writeraw", "application/json"): self.take_parca,
        }
        if (path, kind) not in takes:
            raise Bad("%s %s" % (path, kind))
        takes[path, kind](body)
        self.counts["requests"] += 1
        self.write()

    def write(self):
        with open(self.path + ".new", "w") as out:
            json.dump({"processes": self.processes, "counts": self.counts, "ids": sorted(self.ids)}, out)
        os.rename(self.path + ".new", self.path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def drop(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def accept(self, body):
        self.server.lock.acquire()
        try:
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
                self.server.received.counts["gzip"] += 1
            self.server.received.counts["key " + self.headers.get("X-Key", "")] += 1
            self.server.received.take(self.path, self.headers["Content-Type"], body)
            return True
        except (Bad, ValueError, OSError, EOFError, IndexError, KeyError, TypeError, struct.error) as error:
            with open(os.path.join(self.server.received.folder, "errors"), "a") as out:
                out.write("%s: %s\n" % (type(error).__name__, error))
            self.answer(400)
            return False
        finally:
            self.server.lock.release()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answers = self.server.answers
        what, _, amount = (answers.pop(0) if len(answers) > 1 else answers[0]).partition("+")
        self.server.received.counts["answers " + what] += 1
        if what == "reset":
            self.drop()
        elif what == "lost":
            if self.accept(body):
                self.drop()
        elif what in ("200", "slow", "partial"):
            if what == "slow":
                time.sleep(float(amount))
            if self.accept(body):
                self.answer(200, bytes([10, 2, 8, int(amount)]) if what == "partial" else b"")
        elif amount:
            self.answer(int(what), Retry_After=amount)
        else:
            self.answer(int(what))
        with self.server.lock:
            self.server.received.write()


def main():
    folder, answers = sys.argv[1], sys.argv[2:] or ["200"]
    port_file = os.path.join(folder, "port")
    try:
        with open(port_file) as known:
            port = int(known.read())
    except (OSError, ValueError):
        port = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.lock = threading.Lock()
    if os.path.exists(os.path.join(folder, "cert.pem")):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
        context.load_verify_locations(os.path.join(folder, "cert.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.answers = answers
    server.received = Received(folder)
    for name, content in (("port", str(server.server_address[1])), ("ready", "")):
        with open(os.path.join(folder, name + ".new"), "w") as out:
            out.write(content)
        os.rename(os.path.join(folder, name + ".new"), os.path.join(folder, name))
    server.serve_forever()


if __name__ == "__main__":
    main()
