#!/usr/bin/env python3
"""memory_test.py OTT WRITE_LARGE: a process that reads several traces in turn needs little more memory than for one."""

import os
import subprocess
import sys

ott, write_large = (os.path.abspath(path) for path in sys.argv[1:])
os.chdir(os.environ["TEST_TMPDIR"])


def memory_for(ranks):
    """The most that `ott` took for traces of so many ranks, in kB."""
    subprocess.run([write_large, str(ranks), str(ranks), "120", "0", "last"], check=True)
    process = subprocess.Popen([ott, "report", f"{ranks}/traces", "--threads", "1"], stdout=subprocess.PIPE)
    text = process.stdout.read()
    assert f"{ranks} trace".encode() in text, text
    return os.wait4(process.pid, 0)[2].ru_maxrss


one, three = memory_for(1), memory_for(3)
print(f"{one} kB for one trace, {three} kB for three")
sys.exit(three > 1.1 * one)
