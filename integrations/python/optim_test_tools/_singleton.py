"""Shared parts of the classes of which a process has one object."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Tuple


class Singleton:
    """Constructing it again returns the one object."""

    _instances: Dict[type, Any] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in Singleton._instances:
            Singleton._instances[cls] = super().__new__(cls)
        return Singleton._instances[cls]


def caller() -> Tuple[str, int]:
    """The file and line outside of this package that called it, for messages."""
    package = os.path.dirname(__file__)
    frame = sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == package:
        frame = frame.f_back
    return os.fsencode(frame.f_code.co_filename).decode("utf-8", "replace"), frame.f_lineno
