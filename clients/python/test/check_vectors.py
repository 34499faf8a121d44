"""Checks solehold.py with docs/vectors: prints how many cases agree, and fails on the first that does not."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
VECTORS = HERE.parent.parent.parent / "docs" / "vectors"

import solehold  # noqa: E402


def clocks(value):
    return solehold.Clocks(value["monotonicMs"], value["wallMs"])


def drift(value):
    return solehold.Drift(value["driftRatio"], value["tickMs"])


def validity(value):
    return solehold.Validity(value["monotonicEndMs"], value["wallEndMs"])


def same(name, got, expected):
    if got != expected:
        sys.exit("%s: expected %r, got %r" % (name, expected, got))


def check_validity(vectors):
    for case in vectors["margins"]:
        same("margin", solehold.margin_ms(case["ttlMs"], drift(case["drift"])), case["marginMs"])
    for case in vectors["beliefs"]:
        bound = drift(case["drift"])
        start = solehold.believed_from(clocks(case["sent"]), clocks(case["received"]), case["waitedMs"], bound)
        believed = solehold.validity_from(start, case["validForMs"], bound)
        same(case["name"], believed, validity(case["validity"]))
        for instant in case["instants"]:
            now = clocks(instant["now"])
            same(case["name"], solehold.remaining_ms(believed, now), instant["remainingMs"])
            same(case["name"], solehold.is_valid(believed, now), instant["valid"])
    for case in vectors["renewals"]:
        later = solehold.later(validity(case["before"]), validity(case["renewed"]))
        same("renewal", later, validity(case["believed"]))
    return sum(len(vectors[part]) for part in ("margins", "beliefs", "renewals"))


def check_wire(vectors):
    for case in vectors["answers"]:
        got = solehold.meaning_of(case["op"], case["status"], case["body"], "test-token-of-the-vectors")
        expected = case["expected"]
        if expected["kind"] == "applied":
            expected = dict(expected, fence=int(expected["fence"]))
        same(case["name"], {field: got.get(field) for field in expected}, expected)
    return len(vectors["answers"])


def read(name):
    return json.loads((VECTORS / name).read_text("utf-8"))


print("validity %d, wire %d" % (check_validity(read("validity.json")), check_wire(read("wire.json"))))
