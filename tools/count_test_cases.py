"""Prints `PASSED FAILED`, the test cases of a `bazel test`: count_test_cases.py BUILD_EVENTS_JSON.

A test that failed without a failed case in its report (a crash, a timeout, a rank other than 0) counts as one failed
case, and so does a target that did not build.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree


def cases_of(report):
    """Returns (passed, failed) of a JUnit report."""
    try:
        cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return 0, 0
    failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
    skipped = sum(1 for case in cases if case.find("skipped") is not None)
    return len(cases) - failed - skipped, failed


def path_of(result, name):
    """Returns the path of one of a test's output files, or '' where it has none."""
    uri = next((f["uri"] for f in result.get("testActionOutput", []) if f["name"] == name), "")
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path)


def print_end_of_log(path):
    """A later build writes another log there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = [line for line in log if "src/main/tools/linux-sandbox" not in line]
    except OSError:
        return
    print("".join(lines[-50:]), end="", file=sys.stderr)


def main():
    results = {}
    not_built = set()
    finished_well = False
    with open(sys.argv[1], encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            identity = event["id"]
            if "testResult" in event:
                results[identity["testResult"]["label"]] = event["testResult"]
            elif "targetCompleted" in identity and not event.get("completed", {}).get("success") and "aborted" not in event:
                not_built.add(identity["targetCompleted"]["label"])
            elif "finished" in event:
                finished_well = event["finished"].get("exitCode", {}).get("name") in ("SUCCESS", "TESTS_FAILED")

    passed = failed = 0
    for label, result in sorted(results.items()):
        case_passed, case_failed = cases_of(path_of(result, "test.xml"))
        if result["status"] != "PASSED":
            case_failed = max(case_failed, 1)
            print(f"test: {label}: {result['status']}; the end of what it printed:", file=sys.stderr)
            print_end_of_log(path_of(result, "test.log"))
        passed += case_passed
        failed += case_failed
    for label in sorted(not_built - set(results)):
        print(f"test: {label}: did not build", file=sys.stderr)
        failed += 1
    if not finished_well and failed == 0:
        print("test: bazel itself failed", file=sys.stderr)
        failed += 1
    print(passed, failed)


main()
