"""What `pip install .` calls (PEP 517): builds the wheel by Bazel, and puts the shared libraries that it needs into it.

The wheel asks of a machine its C and C++ libraries alone, and has the tag of the oldest that will do. It knows no MPI, as each
is another library; `pip install . --config-settings mpi=yes` builds one for the MPI of this machine.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_WHEEL = "//integrations/python:wheel"


def _run(command, **kwargs):
    try:
        return subprocess.run(command, check=True, cwd=_ROOT, text=True, **kwargs)
    except FileNotFoundError:
        sys.exit(f"optim_test_tools: no program {command[0]} here; tools/setup installs what the build needs")
    except subprocess.CalledProcessError as error:
        sys.exit(f"optim_test_tools: {error}; tools/setup installs what the build needs (docs/building.md)")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Returns the name of the wheel that it leaves in wheel_directory."""
    import pybind11

    mpi = (config_settings or {}).get("mpi", "no") == "yes"
    # The interpreter itself: the environments that pip runs in come and go.
    flags = [f"--repo_env=PYTHON_INTERPRETER={os.path.realpath(sys.executable)}",
             f"--repo_env=PYBIND11_INCLUDE={pybind11.get_include()}",
             f"--//third_party/mpi:enable={mpi}"]
    _run(["bazel", "build", "--noshow_progress", *flags, _WHEEL])
    built = _run(["bazel", "info", *flags, "bazel-bin"], stdout=subprocess.PIPE).stdout.strip()
    with tempfile.TemporaryDirectory() as directory:
        tools = {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}
        for wheel in glob.glob(f"{built}/integrations/python/*-cp{sys.version_info[0]}{sys.version_info[1]}-*.whl"):
            _run([sys.executable, "-m", "auditwheel", "repair", "--exclude", "libmpi.so.*", "--wheel-dir", directory, wheel],
                 env=tools)
        (name,) = os.listdir(directory)
        shutil.move(os.path.join(directory, name), os.path.join(wheel_directory, name))
    return name
