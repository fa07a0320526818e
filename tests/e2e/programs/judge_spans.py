"""judge_spans.py SEEN READ [MORE|lossy]: compares what programs/spans.py saw with what was read from the trace (both JSON, an object
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


def judge_lossy(seen, left):
    """Events were lost: what is there is as the program saw it. Spans that it did not watch are named "within"."""
    made = {(row["name"], json.dumps(row["arguments"])): row for row in seen}
    ended = 0
    for read in left:
        if read["name"] == "within":
            if [key for key, _ in read["arguments"]] != ["i", "text"] or read["arguments"][1][1] != "x" * 1000:
                sys.exit("arguments of a span in part: %s" % read)
            continue
        row = made.pop((read["name"], json.dumps(read["arguments"])), None)
        if not row or row["tid"] != read["tid"] or not between(row["begin"], read["begin"]):
            sys.exit("the program did not see %s but %s" % (read, row))
        if "end" in read and not between(row["end"], read["end"]):
            sys.exit("it did not end then: %s but %s" % (read, row))
        ended += "end" in read
    print("%d rows agree, %d of them have an end" % (len(left), ended))


def main(seen, read, more="0"):
    left = rows(read)
    seen = rows(seen)
    if more == "lossy":
        return judge_lossy(seen, left)
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
