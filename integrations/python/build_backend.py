"""`pip install .` calls this (PEP 517): it builds the wheel by Bazel, and puts the command ott and the shared libraries of both into it.

The wheel asks of a machine its C and C++ libraries alone, and has the tag of the oldest that will do. It knows no MPI, as each
is another library; `pip install . --config-settings mpi=yes` builds one for the MPI of this machine.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_TARGETS = ["//integrations/python:wheel", "//tools:ott"]


def _run(command, **kwargs):
    try:
        return subprocess.run(command, check=True, cwd=_ROOT, text=True, **kwargs)
    except FileNotFoundError:
        sys.exit(f"optim_test_tools: no program {command[0]} here; tools/setup installs what the build needs")
    except subprocess.CalledProcessError as error:
        sys.exit(f"optim_test_tools: {error}; tools/setup installs what the build needs (docs/building.md)")


def _add_commands(built, programs, wheel):
    """Writes the wheel with the commands, as scripts that auditwheel finds in RECORD."""
    with zipfile.ZipFile(built) as archive, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as result:
        for info in archive.infolist():
            contents = archive.read(info)
            if info.filename.endswith(".dist-info/RECORD"):
                scripts = info.filename.replace(".dist-info/RECORD", ".data/scripts/")
                contents += "".join(f"{scripts}{os.path.basename(program)},,\n" for program in programs).encode()
            result.writestr(info, contents)
        for program in programs:
            script = zipfile.ZipInfo(scripts + os.path.basename(program))
            script.compress_type = zipfile.ZIP_DEFLATED
            script.external_attr = 0o100755 << 16
            with open(program, "rb") as file:
                result.writestr(script, file.read())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Returns the name of the wheel that it leaves in wheel_directory."""
    import pybind11

    mpi = (config_settings or {}).get("mpi", "no") == "yes"
    # The interpreter itself: the environments that pip runs in come and go.
    flags = [f"--repo_env=PYTHON_INTERPRETER={os.path.realpath(sys.executable)}",
             f"--repo_env=PYBIND11_INCLUDE={pybind11.get_include()}",
             f"--//third_party/mpi:enable={mpi}"]
    _run(["bazel", "build", "--noshow_progress", *flags, *_TARGETS])
    built = _run(["bazel", "info", *flags, "bazel-bin"], stdout=subprocess.PIPE).stdout.strip()
    with tempfile.TemporaryDirectory() as directory:
        tools = {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}
        (built_wheel,) = glob.glob(f"{built}/integrations/python/*-cp{sys.version_info[0]}{sys.version_info[1]}-*.whl")
        wheel = os.path.join(directory, os.path.basename(built_wheel))
        # `mpirun ott` becomes ott-mpi.
        programs = ["ott", "ott-mpi"] if mpi else ["ott"]
        _add_commands(built_wheel, [f"{built}/tools/{program}" for program in programs], wheel)
        repaired = os.path.join(directory, "repaired")
        _run([sys.executable, "-m", "auditwheel", "repair", "--exclude", "libmpi.so.*", "--wheel-dir", repaired, wheel], env=tools)
        (name,) = os.listdir(repaired)
        shutil.move(os.path.join(repaired, name), os.path.join(wheel_directory, name))
    return name
