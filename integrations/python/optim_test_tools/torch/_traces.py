"""Traces that the program writes by torch.profiler: the run directory has a link to each, where `ott trace`, `ott report` and
`ott prof` look for them."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional

import torch.profiler

from . import _hooks


class Traces:
    """Follows export_chrome_trace(), which tensorboard_trace_handler() calls as well."""

    def __init__(self) -> None:
        self._inside = False
        # Those that were written before the run began.
        self._waiting: List[str] = []
        self._directory: Optional[str] = None
        self._rank = 0
        self._links: Dict[str, str] = {}

    def install(self, patches: _hooks.Patches) -> None:
        for owner in (sys.modules["torch.profiler.profiler"]._KinetoProfile, torch.autograd.profiler.profile):
            patches.wrap(owner, "export_chrome_trace", self._export)

    def begin(self, run_dir: str, rank: int) -> None:
        """Where this rank's links go."""
        self._directory = os.path.join(run_dir, f"rank_{rank:05d}")
        self._rank = rank
        while self._waiting:
            self._link(self._waiting.pop(0))

    def _export(self, original: Any, profiler: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        if self._inside:
            return original(profiler, path, *args, **kwargs)
        self._inside = True
        try:
            result = original(profiler, path, *args, **kwargs)
        finally:
            self._inside = False
        written = os.path.abspath(path)
        if self._directory is None:
            self._waiting.append(written)
        else:
            self._link(written)
        return result

    def _link(self, path: str) -> None:
        """A hard link, which stays where the program removes its file, or else a symbolic one."""
        try:
            link = self._links.get(path) or self._free_name(path)
            self._links[path] = link
            if os.path.lexists(link):
                os.remove(link)
            try:
                os.link(path, link)
            except OSError:
                os.symlink(path, link)
        except OSError as error:
            print(f"ott: {path} is not found by `ott report`: {error}", file=sys.stderr, flush=True)

    def _free_name(self, path: str) -> str:
        assert self._directory is not None
        number, suffix = 1, ".json.gz" if path.endswith(".gz") else ".json"
        while True:
            name = f"torch{'' if number == 1 else f'_{number}'}.rank_{self._rank:05d}"
            found = [os.path.join(self._directory, name + end) for end in (".json", ".json.gz")]
            if not any(map(os.path.lexists, found)):
                return os.path.join(self._directory, name + suffix)
            number += 1
