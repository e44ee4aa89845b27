#!/usr/bin/env python3
"""check_trace.py TRACE...: whether a file keeps to Chrome's Trace Event Format, field by field."""

import gzip
import json
import sys

NUMBER = (int, float)
# By phase: the fields that must be there and those that may, with their types.
COMMON = {"name": str, "cat": str, "pid": int, "tid": int, "ts": NUMBER}
MUST = {
    "X": {**COMMON, "dur": NUMBER},
    "b": {**COMMON, "id": str},
    "e": {**COMMON, "id": str},
    "i": {**COMMON, "s": str},
    "C": {**COMMON, "args": dict},
    "s": {**COMMON, "id": str},
    "f": {**COMMON, "id": str, "bp": str},
    "M": {"name": str, "pid": int, "args": dict},
}
MAY = {"X": {"args": dict}, "b": {"args": dict}, "i": {"args": dict}, "M": {"tid": int}}
METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError(f"a name twice in {names}")
    return dict(pairs)


def check_fields(event):
    phase = event.pop("ph")
    must, may = MUST[phase], MAY.get(phase, {})
    for name, kind in must.items():
        assert isinstance(event[name], kind) and not isinstance(event[name], bool), f"{name} of {event}"
    for name, value in event.items():
        assert name in must or isinstance(value, may[name]), f"{name} of {event}"
    if phase == "M":
        name, kind = METADATA[event["name"]]
        assert isinstance(event["args"][name], kind), event
    if phase == "C":
        assert all(isinstance(value, NUMBER) for value in event["args"].values()), event
    assert event.get("dur", 0) >= 0, event
    return phase


def check_nesting(slices):
    """Slices of one thread lie inside of each other or apart."""
    ends = []
    for begin, end in sorted(slices, key=lambda times: (times[0], -times[1])):
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1], f"[{begin}, {end}] reaches out of a slice that ends at {ends[-1]}"
        ends.append(end)


def check(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        trace = json.load(file, parse_constant=no_constant, object_pairs_hook=no_duplicates)
    assert set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}, list(trace)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    threads, named, open_pairs, arrows = {}, set(), set(), {}
    for event in trace["traceEvents"]:
        phase = check_fields(event)
        if phase == "M":
            if event["name"] in ("process_name", "thread_name"):
                named.add((event["pid"], event.get("tid")))
            continue
        assert (event["pid"], None) in named, f"the process of {event} has no name"
        key = (event["pid"], event["cat"], event.get("id"))
        # In whole nanoseconds, as they were written.
        begin = round(event["ts"] * 1000)
        if phase == "X":
            assert (event["pid"], event["tid"]) in named, f"the thread of {event} has no name"
            end = begin + round(event["dur"] * 1000)
            threads.setdefault((event["pid"], event["tid"]), []).append((begin, end))
        elif phase == "b":
            assert key not in open_pairs, event
            open_pairs.add(key)
        elif phase == "e":
            open_pairs.remove(key)
        elif phase in "sf":
            # Viewers join them whatever their processes are.
            arrows.setdefault((event["name"], event["cat"], event["id"]), []).append(phase)
    assert not open_pairs, f"without end: {open_pairs}"
    for key, phases in arrows.items():
        assert sorted(phases) == ["f", "s"], f"arrow {key} has the ends {phases}"
    for slices in threads.values():
        check_nesting(slices)
    print(f"{path}: {len(trace['traceEvents'])} events, {len(arrows)} arrows, {len(threads)} threads")


for argument in sys.argv[1:]:
    try:
        check(argument)
    except (AssertionError, KeyError, ValueError) as error:
        sys.exit(f"{argument}: {type(error).__name__}: {error}")
