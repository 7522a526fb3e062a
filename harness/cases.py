"""What a run plans: cases, the groups of them that are measured side by side, walls and studies;
and what their ids are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..impls.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One backend on one problem. `twin` tells equal cases apart: side by side they show how far
    apart equals come out.

    `python` is the environment that measures it, by the name that `--python` gave its interpreter;
    None in a run of one.
    """

    backend: str
    problem: Problem
    twin: int = 0
    python: str | None = None

    @property
    def id(self) -> str:
        """Readable, stable, unique: parts with their usual value are left out.

        For example fused-b1-n4096-d512-h8-bf16-causal-forward-core.
        """
        p = self.problem
        name = identity(
            self.backend,
            p,
            [f"n{p.seq_len}", *([f"kv{p.kv_seq_len}"] if p.kv_seq_len != p.seq_len else [])],
        )
        return in_environment(f"{name}-twin{self.twin}" if self.twin else name, self.python)

    def fields(self) -> dict[str, Any]:
        """The case as a row and a plan carry it."""
        twin = {"twin": self.twin} if self.twin else {}
        return {
            "case": self.id,
            "backend": self.backend,
            "python": self.python,
            **asdict(self.problem),
            **twin,
        }


def identity(backend: str, problem: Problem, lengths: list[str]) -> str:
    """The parts of an id, joined."""
    p = problem
    parts = [backend, f"b{p.batch}", *lengths, f"d{p.d_model}", f"h{p.heads}"]
    if p.kv_heads != p.heads:
        parts.append(f"hkv{p.kv_heads}")
    for name, width in (("dk", p.d_k), ("dv", p.d_v)):
        if width * p.heads != p.d_model:
            parts.append(f"{name}{width}")
    parts.append(p.dtype)
    if p.causal:
        parts.append("causal" if p.kv_seq_len == p.seq_len else f"causal_{p.causal_align}")
    if p.mask != "none":
        parts.append(f"{p.mask}{p.window or ''}")
    return "-".join([*parts, p.passes, p.scope])


def in_environment(name: str, python: str | None) -> str:
    """An id that says which environment it is for."""
    return name if python is None else f"{name}-{python}"


def reported_pairs(
    cases: Sequence[Case], baseline: str | None, contrast: Sequence[str]
) -> list[tuple[str, str]]:
    """Ids of the cases of a group whose latency ratio is reported: each backend against the
    baseline (the first backend where there is none) on the same problem, each value of a contrast
    axis against its first one for the same backend, both within an environment; and each
    environment against the first one for the same backend and problem."""
    compared: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        compared.setdefault((case.python, case.problem), []).append(case)
        if case.python is not None:
            compared.setdefault(("python", case.backend, case.problem), []).append(case)
        for axis in contrast:
            compared.setdefault(
                (case.python, case.backend, axis, *without(case.problem, axis)), []
            ).append(case)
    pairs: dict[tuple[str, str], None] = {}
    for alike in compared.values():
        first = next((case for case in alike if case.backend == baseline), alike[0])
        pairs.update({(case.id, first.id): None for case in alike if case is not first})
    return list(pairs)


def without(problem: Problem, axis: str) -> tuple[Any, ...]:
    """What is left of a problem without one axis; sizes that only follow from others are None."""
    p = problem
    width = p.d_model // p.heads
    usual: dict[str, Any] = {
        "kv_seq_len": p.seq_len,
        "kv_heads": p.heads,
        "d_k": width,
        "d_v": width,
    }
    if p.kv_seq_len == p.seq_len:
        usual["causal_align"] = p.causal_align
    if axis == "mask":
        usual["window"] = p.window
    return tuple(
        None if usual.get(name) == value else value
        for name, value in asdict(p).items()
        if name != axis
    )


def case_of(fields: dict[str, Any]) -> Case:
    """The case that `fields` was written from; further keys are ignored. Raises KeyError where one
    is missing.
    """
    return Case(
        backend=fields["backend"],
        problem=problem_of(fields),
        twin=fields.get("twin", 0),
        python=fields.get("python"),
    )


def problem_of(fields: Mapping[str, Any]) -> Problem:
    """The problem that `fields` was written from. Raises KeyError where one is missing, unless it
    came later than the first runs.
    """
    later = {"mask": "none", "window": 0}
    return Problem(
        **{
            name: fields.get(name, later[name]) if name in later else fields[name]
            for name in Problem.__dataclass_fields__
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that share randomised blocks, so that their ratios are paired: all backends of one
    problem, all values of a contrast axis, and all environments."""

    number: int
    cases: tuple[Case, ...]


def group_cases(
    backends: tuple[str, ...],
    problem_groups: list[tuple[Problem, ...]],
    pythons: Sequence[str | None] = (None,),
) -> tuple[Group, ...]:
    """Every backend on every problem in every environment, problem by problem within a group, so
    that neighbours share their inputs.
    """
    return tuple(
        Group(
            number=number,
            cases=tuple(
                Case(backend=b, problem=p, python=python)
                for p in problems
                for b in backends
                for python in pythons
            ),
        )
        for number, problems in enumerate(problem_groups)
    )


LONGEST = 1 << 31  # tokens: beyond it, indices of 32 bits end, and nobody has asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A backend, and a problem whose seq_len is the unknown. Keys and values grow with it, unless
    `kv_seq_len` fixes their length.

    `python` as of a case.
    """

    backend: str
    problem: Problem
    kv_seq_len: int | None = None
    python: str | None = None

    @property
    def id(self) -> str:
        """Readable, stable, unique among cases and walls, for example
        wall-fused-b1-d512-h8-fp32-forward-core.
        """
        lengths = [] if self.kv_seq_len is None else [f"kv{self.kv_seq_len}"]
        return in_environment(f"wall-{identity(self.backend, self.problem, lengths)}", self.python)

    def at(self, seq_len: int) -> Case:
        """The case at one length."""
        kv_seq_len = seq_len if self.kv_seq_len is None else self.kv_seq_len
        problem = replace(self.problem, seq_len=seq_len, kv_seq_len=kv_seq_len)
        return Case(backend=self.backend, problem=problem, python=self.python)

    def fields(self) -> dict[str, Any]:
        """The wall as a row and a plan carry it: no seq_len, and kv_seq_len only where it
        is fixed.
        """
        rest = {name: value for name, value in asdict(self.problem).items() if name != "seq_len"}
        return {
            "case": self.id,
            "backend": self.backend,
            "python": self.python,
            **rest,
            "kv_seq_len": self.kv_seq_len,
        }


def length_beside(kv_seq_len: int | None) -> int:
    """A length that stands for any, where the longest one is looked for; never that of the keys,
    which would be self-attention.
    """
    return 2 if kv_seq_len == 1 else 1


def wall_of(fields: dict[str, Any]) -> Wall:
    """The wall that `fields` was written from; further keys are ignored. Raises KeyError where one
    is missing.
    """
    kv_seq_len = fields["kv_seq_len"]
    problem = problem_of(
        {**fields, "seq_len": length_beside(kv_seq_len), "kv_seq_len": kv_seq_len or 0}
    )
    return Wall(
        backend=fields["backend"],
        problem=problem,
        kv_seq_len=kv_seq_len,
        python=fields.get("python"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A study of studies/ on one problem."""

    study: str
    problem: Problem

    @property
    def id(self) -> str:
        return f"study-{self.study}"

    @property
    def backend(self) -> str:
        """What --only and --skip match beside the id."""
        return self.study

    def fields(self) -> dict[str, Any]:
        return {"case": self.id, "study": self.study, **asdict(self.problem)}


def study_of(fields: Mapping[str, Any]) -> Planned:
    """What `fields` was written from. Raises KeyError where a field is missing."""
    return Planned(study=fields["study"], problem=problem_of(fields))
