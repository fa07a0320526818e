"""judge_spans.py SEEN READ [WITHIN_NS]: compares what programs/spans.py saw with what was read from the trace (both JSON, an object
a line), for test_spans.c. A span of the trace begins and ends between the two looks at the clock around it.
"""
import json
import sys

FAR_NS = 200000  # how exact the trace's line through its clock records is, in short programs


def rows(path):
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def same_arguments(one, other):
    if len(one) != len(other):
        return False
    for (key, value), (key_read, read) in zip(one, other):
        if isinstance(value, dict):
            value, read = value["begins"], read[:len(value["begins"])]
        if key != key_read or type(value) is not type(read) or value != read:
            return False
    return True


def between(times, at):
    return times[0] - FAR_NS <= at <= times[1] + FAR_NS


def matches(row, read):
    if any(row[key] != read[key] for key in ("what", "name", "pid", "tid")):
        return False
    if row["what"] == "counter":
        return row["value"] == read["value"]
    if not same_arguments(row["arguments"], read["arguments"]):
        return False
    if row["what"] == "mark":
        return True
    if not between(row["begin"], read["begin"]) or ("end" in row) != ("end" in read):
        return False
    return "end" not in row or (between(row["end"], read["end"]) and row["end_tid"] == read["end_tid"])


def main(seen, read, more="0"):
    left = rows(read)
    seen = rows(seen)
    for row in seen:
        found = next((i for i, other in enumerate(left) if matches(row, other)), None)
        if found is None:
            same = [other for other in left if other["name"] == row["name"]]
            sys.exit("not in the trace: %s\nof that name: %s" % (row, "\n".join(map(str, same[:5]))))
        del left[found]
    if len(left) != int(more):
        sys.exit("%d rows of the trace that the program did not make: %s" % (len(left), left[:5]))
    print("%d rows agree" % len(seen))


main(*sys.argv[1:])
