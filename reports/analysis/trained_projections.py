"""Linformer's projections in trained models: quality and cost against exact attention.

Reads the findings of the study trained_projections, one per training. Trainings of one seed saw the
same batches, so that attentions are compared seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...harness.stats.intervals import Interval, latency_interval, mean_interval, ratio_interval
from ..data.run_meta import finite_number

STUDY = "trained_projections"
EXACT = "exact"
NAMES = {
    EXACT: "exact",
    "pooled": "means of neighbours",
    "trained": "trained, from means",
    "trained_from_random": "trained, from random",
    "random": "random",
}
"""In the order in which attentions are shown; others follow."""
Finding = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The trainings of one task with one attention. `less`: points of accuracy below the exact one,
    seed by seed; `time_ratio`: of a step, over the exact one; both None for the exact one itself.
    """

    task: str
    attention: str
    trainings: tuple[Finding, ...]
    accuracy: Interval
    step: Interval
    peak_bytes: float | None
    less: Interval | None
    time_ratio: Interval | None

    @property
    def name(self) -> str:
        return NAMES.get(self.attention, self.attention)


def trained_attentions(run: Mapping[str, Any]) -> list[Attention]:
    """By task and attention; [] if the run has no such findings."""
    found = run.get("studies")
    by_name: dict[tuple[str, str], list[Finding]] = {}
    for one in found if isinstance(found, list) else []:
        if _is_training(one):
            by_name.setdefault((one["task"], one["attention"]), []).append(one)
    order = [*NAMES, *sorted({attention for _, attention in by_name} - NAMES.keys())]
    tasks = list(dict.fromkeys(task for task, _ in by_name))
    return [
        _attention(task, attention, by_name[task, attention], by_name.get((task, EXACT), []))
        for task in tasks
        for attention in order
        if (task, attention) in by_name
    ]


def _attention(
    task: str, attention: str, found: Sequence[Finding], exact: Sequence[Finding]
) -> Attention:
    peaks = [one.get("step_peak_bytes") for one in found]
    known = [float(size) for size in peaks if type(size) is int]
    by_seed = {one["train_seed"]: one for one in exact}
    pairs = [(one, by_seed[one["train_seed"]]) for one in found if one["train_seed"] in by_seed]
    is_other = attention != EXACT and bool(pairs)
    return Attention(
        task=task,
        attention=attention,
        trainings=tuple(found),
        accuracy=mean_interval([one["accuracy_ratio"] for one in found], "seed"),
        step=latency_interval([[one["step_ms"]] for one in found]),
        peak_bytes=max(known) if known else None,
        less=mean_interval(
            [100 * (other["accuracy_ratio"] - one["accuracy_ratio"]) for one, other in pairs],
            "seed",
        )
        if is_other
        else None,
        time_ratio=ratio_interval(
            [[one["step_ms"]] for one, _ in pairs], [[other["step_ms"]] for _, other in pairs]
        )
        if is_other
        else None,
    )


def _is_training(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("study") == STUDY
        and all(isinstance(one.get(name), str) for name in ("task", "attention"))
        and type(one.get("train_seed")) is int
        and (right := finite_number(one, "accuracy_ratio")) is not None
        and 0 <= right <= 1
        and isinstance(one.get("step_ms"), list)
        and bool(one["step_ms"])
        and all(type(ms) in (int, float) and 0 < ms < 1e12 for ms in one["step_ms"])
    )
