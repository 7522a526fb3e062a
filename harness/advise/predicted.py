"""What formulas say of a call's peak bytes. Asking them imports torch and the backend, which takes
seconds, so what they said is kept, a line each, until something that is installed changes.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...impls.problem import Problem
from ...reports.advise.asked import Bytes
from ..cases.case import Case
from ..files.safe_files import append_lines
from ..files.user_cache import cache_folder
from ..machine.control_group import quota
from ..machine.installed import installed_digest
from ..rows.record import Status

NO_BUDGET = 1 << 62  # so that a prediction is not cut short by a budget
SOURCES = {"formula": "formula", "meta": "operations that its code does"}


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """For one kind of device; `device_name` tells devices of a kind apart."""

    device: str
    device_name: str

    def peak(self, backend: str, problem: Problem) -> Bytes:
        """By the backend's own formula, else by its nearest relative's. Imports torch, unless it
        was asked before.
        """
        text = json.dumps([backend, asdict(problem)], sort_keys=True)
        asked = hashlib.sha256(text.encode()).hexdigest()[:32]
        if asked not in self._kept:
            self._kept[asked], keeps = _peak(backend, problem, self.device)
            if keeps:
                line = json.dumps({"asked": asked, "bytes": asdict(self._kept[asked])})
                with suppress(OSError):  # a home that cannot be written costs seconds next time
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    append_lines(self._file, f"{line}\n")
        return self._kept[asked]

    @cached_property
    def _file(self) -> Path:
        limit = quota()  # buffers of threads are part of some peaks
        digest = installed_digest(
            device=self.device,
            device_name=self.device_name,
            cores=[len(os.sched_getaffinity(0)), limit and limit.cores],
        )
        return cache_folder() / "peaks" / f"{digest[:32]}.jsonl"

    @cached_property
    def _kept(self) -> dict[str, Bytes]:
        found = {}
        with suppress(OSError):
            for line in self._file.read_bytes().splitlines():
                with suppress(ValueError, KeyError, TypeError):  # a line that a crash cut
                    one = json.loads(line)
                    found[str(one["asked"])] = Bytes(**one["bytes"])
        return found


def _peak(backend: str, problem: Problem, device: str) -> tuple[Bytes, bool]:
    """And whether it says so the next time too: an error may not come again."""
    import torch

    from ...impls.peak_formulas import nearest
    from ..machine.environment import fix_threads
    from ..scenario.preflight import preflight_outside_worker

    fix_threads()
    place = torch.device(device)

    def peak_of(name: str, one: Problem) -> tuple[int | None, Mapping[str, Any], str]:
        found = preflight_outside_worker(Case(backend=name, problem=one), place, NO_BUDGET)
        failed.append(found.status is Status.ERROR)
        return found.fields.get("predicted_peak_bytes"), found.fields, found.reason

    failed: list[bool] = []
    peak, fields, refused = peak_of(backend, problem)
    if refused:
        return Bytes(value=None, words=refused), not any(failed)
    if peak is not None:
        return Bytes(value=peak, words=f"by the {SOURCES[fields['predicted_source']]}"), True
    for near in nearest(backend, problem):
        peak, _, refused = peak_of(near.backend, near.problem)
        if peak is not None and not refused:
            found = Bytes(value=peak + near.more_bytes, words=near.words, at_most=True)
            return found, not any(failed)
    return Bytes(value=None, words=str(fields["predicted_reason"])), not any(failed)
