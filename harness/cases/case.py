"""What a run plans: cases in groups, walls and studies, with ids and fields for run.json.

It imports neither pydantic nor torch, so `attnbench --help` stays fast.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

from ...impls.discovery.names import given_parameters
from ...impls.problem import AXES, Problem

MAX_SEQ_LEN = 1 << 31  # tokens, for a wall: longer sequences need more than 32-bit indices
ADDED_LATER = {name: axis.earliest for name, axis in AXES.items() if axis.earliest is not None}
"""Fields of a problem that the first runs did not have, with what they would be there."""

ALIASES = {axis.alias: name for name, axis in AXES.items() if axis.alias}
VALUE_ALIASES = {
    "dtype": {
        "float32": "fp32",
        "float": "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
        "half": "fp16",
    },
    "device": {"gpu": "cuda"},
}
"""Other names of values, by axis or field, as torch and other programs have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One backend on one problem.

    `twin` tells equal cases apart, for A/A comparisons.
    """

    backend: str
    problem: Problem
    twin: int = 0
    kind: ClassVar[Literal["latency"]] = "latency"

    @property
    def id(self) -> str:
        """Readable, stable, unique; parts with their usual value are left out.

        For example fused-b1-n4096-d512-h8-bf16-causal-forward-core.
        """
        p = self.problem
        lengths = (f"n{p.seq_len}", *((f"kv{p.kv_seq_len}",) if p.kv_seq_len != p.seq_len else ()))
        name = problem_id(self.backend, p, lengths)
        return name + (f"-twin{self.twin}" if self.twin else "")

    def fields(self) -> dict[str, Any]:
        """The case as in a row and in run.json."""
        more: dict[str, Any] = {"twin": self.twin} if self.twin else {}
        return {**_names(self), **fields_of(self.problem), **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases measured in the same randomised blocks, so that their ratios are paired.

    All backends of one problem, and all values of a contrast axis.
    """

    number: int
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A backend and a problem whose longest seq_len is searched for.

    Keys and values grow with seq_len, unless `kv_seq_len` fixes their length.
    """

    backend: str
    problem: Problem
    kv_seq_len: int | None = None
    kind: ClassVar[Literal["wall"]] = "wall"

    @property
    def id(self) -> str:
        """Unique among cases and walls, for example wall-fused-b1-d512-h8-fp32-forward-core."""
        lengths = () if self.kv_seq_len is None else (f"kv{self.kv_seq_len}",)
        return f"wall-{problem_id(self.backend, self.problem, lengths)}"

    def at(self, seq_len: int) -> Case:
        """The case at one length."""
        kv_seq_len = seq_len if self.kv_seq_len is None else self.kv_seq_len
        problem = replace(self.problem, seq_len=seq_len, kv_seq_len=kv_seq_len)
        return Case(backend=self.backend, problem=problem)

    def fields(self) -> dict[str, Any]:
        """The wall as in a row and in run.json: no seq_len, kv_seq_len only if it is fixed."""
        sizes = fields_of(self.problem)
        del sizes["seq_len"]
        return {**_names(self), **sizes, "kv_seq_len": self.kv_seq_len}


def _names(of: Case | Wall) -> dict[str, Any]:
    given = given_parameters(of.backend) if "[" in of.backend else {}
    names = {"case": of.id, "backend": of.backend}
    return {**names, "parameters": given} if given else names


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStudy:
    """A study of studies/ on one problem. `part`: axis and value pairs of a study in parts."""

    study: str
    problem: Problem
    part: tuple[tuple[str, str | int], ...] = ()
    kind: ClassVar[Literal["study"]] = "study"

    @property
    def id(self) -> str:
        """study-NAME, of a part with its values: study-NAME-recall-heads8."""
        parts = (value if isinstance(value, str) else f"{axis}{value}" for axis, value in self.part)
        return "-".join(["study", self.study, *parts])

    @property
    def backend(self) -> str:
        """What --only and --skip match beside the id."""
        return self.study

    def fields(self) -> dict[str, Any]:
        """The study as in run.json."""
        part = {"part": dict(self.part)} if self.part else {}
        return {"case": self.id, "study": self.study, **part, **fields_of(self.problem)}


# ---- ids -----------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # a driver asks for the id of each row several times
def problem_id(backend: str, problem: Problem, lengths: tuple[str, ...]) -> str:
    """`lengths` stand where the length of a case does, behind the batch."""
    parts = {name: axis.part(problem) for name, axis in AXES.items()}
    batch = parts.pop("batch")
    return "-".join([backend, batch, *lengths, *filter(None, parts.values())])


class ShortNames:
    """Ids of cases and walls without the parts that all of them have; the length always stays."""

    def __init__(self, ids: Iterable[str]) -> None:
        parts = [one.split("-") for one in ids if not one.startswith("study-")]
        shared = set.intersection(*(set(one[1:]) for one in parts)) if len(parts) > 1 else set()
        self.common = tuple(
            part for part in (parts[0] if shared else ()) if part in shared and not _length(part)
        )

    def of(self, case: str) -> str:
        """'naive n256 h1' for naive-b1-n256-d512-h1-fp32-forward-core; 'wall' goes too."""
        name = case.removeprefix("study-").removeprefix("wall-")
        first, *rest = name.split("-")
        return " ".join([first, *(part for part in rest if part not in self.common)])


def _length(part: str) -> bool:
    return part.startswith("n") and part[1:].isdigit()


# ---- pairs of a group whose ratio is reported ----------------------------------------------------


def reported_pairs(
    cases: Sequence[Case], baseline: str | None, contrast: Sequence[str]
) -> list[tuple[str, str]]:
    """Pairs of case ids, (case, reference), whose latency ratio is reported.

    - each backend against the baseline (else the first backend) on the same problem;
    - each value of a contrast axis against its first value, for the same backend.
    """
    compared: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        keys: list[tuple[Any, ...]] = [(case.problem,)]
        keys += [(case.backend, axis, *without(case.problem, axis)) for axis in contrast]
        for key in keys:
            compared.setdefault(key, []).append(case)
    pairs: dict[tuple[str, str], None] = {}
    for same in compared.values():
        first = next((case for case in same if case.backend == baseline), same[0])
        pairs.update({(case.id, first.id): None for case in same if case is not first})
    return list(pairs)


def without(problem: Problem, axis: str) -> tuple[Any, ...]:
    """The problem's fields without one axis; what follows from other fields is None."""
    values = fields_of(problem)
    usual = {name: one.usual(values) for name, one in AXES.items() if one.usual}
    if axis == "mask":
        usual["window"] = problem.window
    return tuple(
        None if usual.get(name) == value else value
        for name, value in values.items()
        if name != axis
    )


# ---- from run.json and rows back: further keys are ignored, KeyError if one is missing -----------


def case_of(fields: Mapping[str, Any]) -> Case:
    return Case(backend=fields["backend"], problem=problem_of(fields), twin=fields.get("twin", 0))


def groups_of(planned: Iterable[Mapping[str, Any]]) -> tuple[Group, ...]:
    """The groups of cases as run.json plans them."""
    cases: dict[int, list[Case]] = {}
    for fields in planned:
        cases.setdefault(fields["group"], []).append(case_of(fields))
    return tuple(Group(number=number, cases=tuple(some)) for number, some in cases.items())


def wall_of(fields: Mapping[str, Any]) -> Wall:
    kv_seq_len = fields["kv_seq_len"]
    lengths = {"seq_len": placeholder_seq_len(kv_seq_len), "kv_seq_len": kv_seq_len or 0}
    return Wall(
        backend=fields["backend"], problem=problem_of({**fields, **lengths}), kv_seq_len=kv_seq_len
    )


def study_of(fields: Mapping[str, Any]) -> PlannedStudy:
    part = tuple((fields.get("part") or {}).items())
    return PlannedStudy(study=fields["study"], problem=problem_of(fields), part=part)


def fields_of(problem: Problem) -> dict[str, Any]:
    """As dataclasses.asdict, which copies deeply what needs no copy."""
    return {name: getattr(problem, name) for name in Problem.__dataclass_fields__}


def problem_of(fields: Mapping[str, Any]) -> Problem:
    fields = {**ADDED_LATER, **fields}
    return Problem(**{name: fields[name] for name in Problem.__dataclass_fields__})


def placeholder_seq_len(kv_seq_len: int | None) -> int:
    """A wall's seq_len before it is known; never kv_seq_len, which would mean self-attention."""
    return 2 if kv_seq_len == 1 else 1
