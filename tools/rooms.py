"""The rooms of this repository: a room may use those before it in this list, never those after it.

Read by tools/check_layers and by the script that draws docs/architecture.svg.
"""

ROOMS = [
    "third_party",
    "tools:exit_code",
    "core/base",
    "core/json",
    "core/tensor",
    "core/digest",
    "core/statistics",
    "core/events",
    "core/flight",
    "core/nvtx",
    "core/stopwatch",
    "core/dump",
    "core/compare",
    "core/dumper",
    "core/op_cost",
    "core/profile",
    "dist/comm",
    "dist/directory",
    "dist/stats",
    "dist/check",
    "dist/whatif",
    "dist/run",
    "integrations/torch",
    "integrations/python",
    "tools/capture",
    "tools/kineto",
    "tools/prof",
    "tools/trace",
    "tools/compare",
    "tools/crosscheck",
    "tools/calibrate",
    "tools/stats",
    "tools/whatif",
    "tools/ab",
    "tools/hang",
    "tools/report",
    "tools",
    "examples",
    "tests",
]

# Who may use what, beyond the order of the list.
ONLY_DIST_USES = ("@mpi//", "@nccl//")


def room_of(label):
    """The room of a label such as //core/base:check, or None for a label of another repository."""
    if not label.startswith("//"):
        return None
    package = label[2:].split(":")[0]
    candidates = [room for room in ROOMS if room in (package, label[2:]) or package.startswith(room + "/")]
    return max(candidates, key=len) if candidates else ""
