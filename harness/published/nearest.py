"""What the tables say of the shapes of a model: the nearest published cells, named as such."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from ...impls.problem import Dtype, Problem
from ..files.errors import BadInput, instead_of, shown
from ..models.questions import Question, questions
from ..models.resolve import model_of
from .tables import Cell, Source, names, read

AXES = ("batch", "kv_seq_len", "heads", "kv_heads", "d_k")
MOST = 3  # cells of one phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A published cell beside the shape of a model that it is nearest to."""

    asked: Question
    source: Source
    cell: Cell

    @property
    def differs(self) -> str:
        """`heads 64 for 32, batch 2 for 1`; "" if it is the same shape."""
        asked, found = _asked(self), self.cell.shape
        names = (*AXES, "dtype", "causal") if asked.seq_len > 1 else (*AXES, "dtype")
        return ", ".join(
            f"{name} {getattr(found, name)} for {getattr(asked, name)}"
            for name in names
            if getattr(asked, name) != getattr(found, name)
        )


def nearest(config: str, device: str, *, context: int, batch: int, dtype: Dtype) -> list[Nearest]:
    """Of prefill and of a decode step, for every attention of the model. Raises BadInput."""
    sources = [one for one in map(read, names()) if _is_device(one, device)]
    if not sources:
        known = sorted({one.device for one in map(read, names())})
        raise BadInput(
            f"--device {shown(device)}: no published table is of it; {instead_of(device, known)}"
        )
    model = model_of(config)
    found = []
    for phase in ("prefill", "decode"):
        asked = questions(model, phase, context=context, batch=batch, dtype=dtype)
        for one in asked:
            if one.problem is not None:
                problem = one.problem
                cells = sorted(_like(sources, problem), key=lambda at: _distance(at[1], problem))
                found += [Nearest(asked=one, source=of, cell=cell) for of, cell in cells[:MOST]]
    return found


def _is_device(source: Source, device: str) -> bool:
    """`h200` is NVIDIA H200, and `a100 80gb` NVIDIA A100 80GB PCIe; `b200` is no GB200."""
    return f" {device.lower()} " in f" {source.device.lower()} "


def _like(sources: list[Source], problem: Problem) -> Iterator[tuple[Source, Cell]]:
    """Exact cells of the same passes; a decode step is like no other shape."""
    for source in sources:
        for cell in source.cells:
            p = cell.problem
            if p is not None and not p.lengths and cell.ms and cell.exact and not cell.also:
                same = p.passes == problem.passes and (p.seq_len == 1) == (problem.seq_len == 1)
                if same and (p.causal == problem.causal or p.seq_len == 1):
                    yield source, cell


def _distance(cell: Cell, asked: Problem) -> float:
    """Doublings from one shape to the other, over all sizes."""
    found = cell.shape
    return sum(abs(log2(getattr(found, name) / getattr(asked, name))) for name in AXES)


def _asked(one: Nearest) -> Problem:
    assert one.asked.problem is not None
    return one.asked.problem
