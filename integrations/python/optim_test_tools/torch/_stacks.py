"""Says where the threads of a rank are in Python, for a rank that stands still."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import List


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


def write(path: str) -> List[str]:
    """Writes them into a file, and returns them."""
    texts = stacks()
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8", errors="replace") as file:
        file.write("\n".join(texts))
    os.replace(partial, path)
    return texts
