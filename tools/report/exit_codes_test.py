#!/usr/bin/env python3
"""exit_codes_test.py OTT WRITE_RUNS: a finding has one exit code, whichever command tells it.

Asks each command about runs whose numbers are known, and prints a table: exit code, findings, command.
"""

import glob
import json
import os
import subprocess
import sys

CODES = {"GOOD": 0, "BAD": 1, "CANNOT_TELL": 2}

ott, write_runs = (os.path.abspath(path) for path in sys.argv[1:])
os.chdir(os.environ["TEST_TMPDIR"])
subprocess.run([write_runs, "runs"], check=True)
failures = []


def ask(*arguments):
    """The exit code, and what is printed."""
    ended = subprocess.run([ott, *arguments], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


def findings(*arguments):
    """The findings of a command by question, which its exit codes as JSON and as text are to follow from."""
    code, text = ask(*arguments, "--format", "json")
    found = {answer["question"]: answer["finding"] for answer in json.loads(text)["answers"]}
    told = set(found.values()) - {"NOT_ASKED"}
    # What was asked for, and of which nothing is recorded, cannot be told.
    expected = 1 if "BAD" in told else 2 if "CANNOT_TELL" in told or not told else 0
    print(code, " ".join(f"{name}={finding}" for name, finding in found.items()), "|", *arguments)
    if (code, ask(*arguments)[0]) != (expected, expected):
        failures.append(f"ott {' '.join(arguments)}: exit code {code}, or another one as text, for {found}")
    return found


def runs(pattern):
    return sorted(glob.glob("runs/" + pattern))


seen = set()
for run in ("runs/known", "runs/after_0"):
    report = findings("report", run)
    for command in ("stats", "whatif", "check", "hang"):
        if command == "whatif" and report["saved"] == "NOT_ASKED":
            continue  # No iterations were kept: an error.
        for question, finding in findings(command, run).items():
            seen.add(finding)
            if report.get(question, "NOT_ASKED") not in ("NOT_ASKED", finding):
                failures.append(f"{run}: {question} is {finding} by ott {command}, {report[question]} by ott report")
before, after = runs("before_*"), runs("after_*")
seen.update(findings("ab", *before, "---", *after).values())
seen.update(findings("ab", *after, "---", *before).values())
if findings("report", *before, "--before", *after)["faster"] != "BAD":
    failures.append("the report calls a slower version good")
findings("origin", "runs/known", "runs/reference")
waiting = findings("report", "runs/traces")["waiting"]
if ask("trace", "--collectives", "3", *runs("traces/*.json"))[0] != CODES[waiting]:
    failures.append(f"ott trace --collectives has another exit code than a report that finds {waiting}")
if set(CODES) - seen:
    failures.append(f"no command found {set(CODES) - seen}: too little was asked")
sys.exit("\n".join(failures) or 0)
