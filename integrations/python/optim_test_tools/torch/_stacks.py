"""Says where the threads of a rank are in Python, for a rank that stands still."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import traceback
from typing import Any, List

from . import _hooks

# Python's own library, and what is installed beside it.
_INSTALLED = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def stacks() -> List[str]:
    """A text for each thread, the training's first; innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    own = threading.get_ident()
    main = threading.main_thread().ident
    order = sorted((ident for ident in frames if ident != own), key=lambda ident: ident != main)
    return [
        f"thread {names.get(ident, ident)}:\n" + "".join(traceback.format_stack(frames[ident])) for ident in order
    ]


def place() -> str:
    """Where the training stands, as "never_comes, train.py:56": the innermost call that the program itself makes."""
    frame: Any = sys._current_frames()[threading.main_thread().ident]
    calls = [(f.f_code.co_filename, f.f_code.co_name, line) for f, line in traceback.walk_stack(frame)]
    calls = [call for call in calls if not call[0].startswith(("<", *_hooks.OWN_FOLDERS))]
    own = [call for call in calls if not call[0].startswith(_INSTALLED)]
    for file, function, line in own or calls:
        return f"{function}, {os.path.basename(file)}:{line}"
    return ""


def write(path: str, rank: int) -> List[str]:
    """Writes them into a file, behind a line for the report on where the training stands, and returns them."""
    texts = stacks()
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"rank {rank} stands in {place()}\n\n" + "\n".join(texts))
    os.replace(partial, path)
    return texts
