"""The rooms of this repository: a room may use those before it in this list, never those after it.

Read by tools/check_layers and tools/draw_rooms.
"""

import os
import re
import subprocess
import sys

ROOMS = [
    "third_party",
    "tools/build_defs",
    "core/base",
    "core/json",
    "core/pickle",
    "core/chrome_trace",
    "core/tensor",
    "core/digest",
    "core/statistics",
    "core/events",
    "core/kernel_timer",
    "core/flight",
    "core/nvtx",
    "core/stopwatch",
    "core/dump",
    "core/checkpoint",
    "core/compare",
    "core/dumper",
    "core/op_log",
    "core/op_cost",
    "core/kernel_profile",
    "core/kineto",
    "core/trace",
    "dist/comm",
    "dist/share",
    "dist/directory",
    "dist/mesh",
    "dist/stats",
    "dist/check",
    "questions/answer",
    "questions/hang",
    "questions/origin",
    "questions/right",
    "questions/sound",
    "questions/faster",
    "questions/learning",
    "questions/saved",
    "questions/kernels",
    "questions/waiting",
    "questions/slow",
    "questions",
    "run/gather",
    "run/training",
    "integrations/torch",
    "integrations/python",
    "tools/profile",
    "tools/trace",
    "tools/report",
    "tools/package",
    "tools",
    "examples",
    "tests",
]

# Folders whose rooms use each other's targets, and not the face of the root's BUILD file, which is for programs.
NO_PROGRAMS = ("core/", "dist/", "integrations/", "questions/", "run/")

# Says who may use what, beyond the order of the list.
ONLY_DIST_USES = ("@mpi//", "@nccl//")


def room_of(label):
    """The room of a label such as //core/base:check, or None for a label of another repository."""
    if not label.startswith("//"):
        return None
    package = label[2:].split(":")[0]
    candidates = [room for room in ROOMS if room in (package, label[2:]) or package.startswith(room + "/")]
    return max(candidates, key=len) if candidates else ""


def edges(graph):
    """(user, used) of each arrow of a graph in Bazel's dot format without factoring."""
    return re.findall(r'^  "([^"\\]+)" -> "([^"\\]+)"', graph, re.MULTILINE)


def query_graph():
    """The build graph of all rooms, from Bazel."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    scope = " + ".join(f"//{top}/..." for top in ("core", "dist", "questions", "run", "integrations", "tools"))
    command = ["bazel", "query", "--noshow_progress", "--noimplicit_deps", "--keep_going", "--output=graph",
               "--nograph:factored", f"kind(rule, {scope}) + deps(kind(rule, {scope}), 1)"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if answer.returncode != 0:
        sys.exit(f"bazel query failed:\n{answer.stderr}")
    return answer.stdout
