"""Runs a training program under observation: python -m optim_test_tools [--config FILE] [-m] PROGRAM ARGUMENTS..."""

from __future__ import annotations

import argparse
import os
import pathlib
import runpy
import sys
import types
import zipfile


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m optim_test_tools",
        description="Runs a PyTorch training as it is, and says where its time goes, who is slow and what is wrong.",
    )
    parser.add_argument("--config", help="file of an ott.Config, as protobuf text: checks, dumps, op logs")
    parser.add_argument("--activations", metavar="GLOB", help='of leaf modules, such as "h.*": dump what they return, too')
    parser.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module's name")
    parser.add_argument("program", metavar="PROGRAM", help="the training program: a file, a folder or archive with __main__.py, or - for standard input")
    parser.add_argument("arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args()


def _set_first_path(directory: str) -> None:
    """Unless python3 -P left it out, where the first one is another."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = directory


def _run_file(path: str) -> None:
    """Does as python3 does, so that processes that it spawns find the program as __main__."""
    is_input = path == "-"
    source = sys.stdin.buffer.read() if is_input else pathlib.Path(path).read_bytes()
    # This file's annotations are text, and the program's are not.
    code = compile(source, "<stdin>" if is_input else path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    if not is_input:
        main.__file__ = path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    _set_first_path("" if is_input else os.path.dirname(os.path.abspath(path)))
    exec(code, main.__dict__)


def main() -> None:
    options = _parse()
    config = None if options.config is None else os.path.abspath(options.config)
    try:
        from optim_test_tools import torch as observation
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        sys.exit("python -m optim_test_tools: PyTorch is not installed here")
    name = options.program.rsplit(".", 1)[-1] if options.is_module else os.path.basename(os.path.normpath(options.program))
    name = "stdin" if name == "-" else name
    observation.install(config, os.path.splitext(name)[0], options.activations)
    sys.argv = [options.program, *options.arguments]
    try:
        if options.is_module:
            _set_first_path(os.getcwd())
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        elif os.path.isdir(options.program) or zipfile.is_zipfile(options.program):
            _set_first_path(options.program)
            runpy.run_path(options.program, run_name="__main__")
        else:
            _run_file(options.program)
    except SystemExit as end:
        if end.code not in (None, 0):
            observation.leave()
            raise
    observation.finish()


if __name__ == "__main__":
    main()
