#!/usr/bin/env python3
"""Writes a trace of torch.profiler again and again, with later times and other ids, until it is large enough.

    repeat_trace.py TRACE.json.gz LARGE.json[.gz] MEGABYTES
"""

import gzip
import json
import sys

IDS = ("External id", "correlation", "Sequence number", "Record function id")


def main():
    source, target, size = sys.argv[1], sys.argv[2], float(sys.argv[3]) * 1e6
    trace = json.load(gzip.open(source) if source.endswith(".gz") else open(source))
    events = [event for event in trace.pop("traceEvents") if event.get("ph") in ("X", "i", "s", "f")]
    times = [event["ts"] for event in events if "ts" in event]
    length = max(times) - min(times) + 1e6
    most = 1 + max(event.get("args", {}).get(name) or 0 for event in events for name in IDS
                   if isinstance(event.get("args", {}).get(name), int))
    header = json.dumps(trace, indent=2)[:-2]
    with (gzip.open(target, "wt", compresslevel=6) if target.endswith(".gz") else open(target, "w")) as out:
        out.write(header + ',\n  "traceEvents": [\n')
        written, repeat = 0, 0
        while written < size:
            for event in events:
                shifted = dict(event, ts=round(event["ts"] + repeat * length, 3))
                args = event.get("args", {})
                if any(name in args for name in IDS):
                    shifted["args"] = {name: value + repeat * most if name in IDS and isinstance(value, int) else value
                                       for name, value in args.items()}
                text = json.dumps(shifted, indent=2)
                out.write((",\n" if written else "") + text)
                written += len(text) + 2
            repeat += 1
        out.write("\n  ]\n}\n")


main()
