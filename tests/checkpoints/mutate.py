"""Damages checkpoints of each format at random, and shows them: mutate.py OTT [SECONDS_A_FORMAT [SEED [FORMAT...]]].

`ott show` has to end by itself in ten seconds, with 0 or 2 and within 4 GiB of addresses beside the file, and 2 has to come with
an error. Prints a line a format; what breaks the rule is kept, and ends the script with 1.
"""

import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import writers

OTT = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 120
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
FORMATS = sys.argv[4:] or [*writers.WHOLE, *writers.TRAINED, *writers.WEIGHTS]
NUMBERS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]


def damaged(data, other, draw):
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at = draw.randrange(len(data) + 1)
        size = draw.choice((1, 2, 4, 8, draw.randrange(1, 200)))
        kind = draw.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at : at + 8] = struct.pack("<Q", draw.choice(NUMBERS))[: draw.choice((1, 2, 4, 8))]
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = data[at : at + size]
        elif kind == 4:
            start = draw.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + size]
        elif kind == 5 and draw.random() < 0.2:
            del data[at:]
    return bytes(data)


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def is_wrong(path):
    """Returns what is wrong with how a damaged checkpoint is shown; None if nothing is."""
    try:
        result = subprocess.run([OTT, "show", path], capture_output=True, timeout=10, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "does not end"
    if result.returncode not in (0, 2):
        return f"ends with {result.returncode}"
    return "says no error" if result.returncode == 2 and not result.stderr.strip() else None


def files_of(path):
    return [path] if os.path.isfile(path) else [os.path.join(of, name) for of, _, names in os.walk(path) for name in names]


def main():
    state = writers.train()
    draw = random.Random(SEED)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            writers.write(name, {"same": state}, folder)
        contents = {}
        for name in FORMATS:
            for file in files_of(os.path.join(folder, f"{name}.same")):
                with open(file, "rb") as opened:
                    contents[file] = opened.read()
        for name in FORMATS:
            path = os.path.join(folder, f"{name}.same")
            files = files_of(path)
            tries, end = 0, time.monotonic() + SECONDS
            while time.monotonic() < end:
                file = draw.choice(files)
                with open(file, "wb") as opened:
                    opened.write(damaged(contents[file], contents[draw.choice(list(contents))], draw))
                tries += 1
                if wrong := is_wrong(path):
                    failed = True
                    kept = tempfile.mkdtemp(prefix=f"damaged_{name}_")
                    shutil.copytree(path, kept, dirs_exist_ok=True) if os.path.isdir(path) else shutil.copy(path, kept)
                    print(f"{name}: {wrong}: kept in {kept}", flush=True)
                with open(file, "wb") as opened:
                    opened.write(contents[file])
            print(f"{name}: {tries} damaged", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
