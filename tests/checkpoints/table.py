"""Prints which faults are named in which pairs of formats and layouts, as a table: table.py OTT.

Rows write the reference, columns the current. A cell has how many of the faults that both can hold were named, and whether equal
states had no difference. Ends with 1 where a fault was not named, or equal states were not equal.
"""

import concurrent.futures
import contextlib
import os
import sys
import unittest

import formats_test

SIDES = {
    "whole": lambda test: (test.whole, formats_test.FAULTS, None),
    "trained": lambda test: (
        [*(name for name in test.whole if name in ("zip", "old/zip", "dcp_2", "fsdp2")), *test.trained],
        {**formats_test.WEIGHT_FAULTS, **formats_test.STATE_FAULTS},
        ["weights", "optimizer moments", "optimizer step"],
    ),
    "weights": lambda test: (test.weights, formats_test.WEIGHT_FAULTS, None),
}


def passes(check, *arguments):
    test = formats_test.FormatsTest()
    test.subTest = lambda **_: contextlib.nullcontext()
    try:
        check(test, *arguments)
    except unittest.TestCase.failureException:
        return False
    return True


def cell(a, b, faults, kinds):
    test = formats_test.FormatsTest
    held = [fault for fault in faults if os.path.exists(test().path(b, fault))]
    named = sum(passes(test.expect_named, a, b, fault) for fault in held)
    equal = a == b or passes(test.expect_equal, a, b, kinds)
    return named, len(held), equal


def main():
    formats_test.FormatsTest.setUpClass()
    failed = False
    for side in SIDES.values():
        names, faults, kinds = side(formats_test.FormatsTest)
        print("\n| reference \\ current | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names))
        for a in names:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                cells = list(pool.map(lambda b: cell(a, b, faults, kinds), names))
            failed = failed or any(named < held or not equal for named, held, equal in cells)
            texts = [f"{named} of {held}" + ("" if equal else ", NOT EQUAL") for named, held, equal in cells]
            print(f"| {a} | " + " | ".join(texts) + " |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
