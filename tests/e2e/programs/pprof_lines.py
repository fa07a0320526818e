"""Prints what a pprof profile says of each line of a file, as JSON: `pprof_lines.py PROFILE.pb.gz FILE TYPE`. A sample belongs to
its innermost line in a file of that name. Reads profile.proto itself."""
import gzip
import json
import os
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def first(data, number):
    return next((value for key, value in fields(data) if key == number), 0)


def main(path, file, kind):
    with gzip.open(path) as stream:
        profile = list(fields(stream.read()))
    strings = [value.decode() for key, value in profile if key == 6]
    types = [strings[first(value, 1)] for key, value in profile if key == 1]
    files = {first(value, 1): strings[first(value, 4)] for key, value in profile if key == 5}
    lines = {}
    for key, value in profile:
        if key == 4:
            lines[first(value, 1)] = [(files[first(line, 1)], first(line, 2)) for number, line in fields(value) if number == 4]
    sums = {}
    for key, value in profile:
        if key != 2:
            continue
        stack = [line for location in packed(first(value, 1)) for line in lines[location]]
        line = next((number for name, number in stack if os.path.basename(name) == file), 0)
        sums[line] = sums.get(line, 0) + packed(first(value, 2))[types.index(kind)]
    print(json.dumps(sums))


main(*sys.argv[1:])
