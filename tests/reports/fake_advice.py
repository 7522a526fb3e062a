"""An inquiry about a made-up model, and run folders that answer it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnbench.reports.advise.asked import Asked, Bytes, Implementation, Inquiry, Phase
from attnbench.reports.advise.stored import Device, StoredRows, stored_rows
from tests.made_runs import case, problem, row, write_run

EAGER = Implementation(name="eager", backend="hf:eager")
SDPA = Implementation(name="sdpa", backend="hf:sdpa")
FLEX = Implementation(name="flex_attention", backend="hf:flex_attention", compiles=True)
HERE = Device(kind="cpu", facts={"cpu": "Imaginary CPU 9000", "torch": "2.15.0"})
TOKEN_BYTES = 100  # of keys and values, in all layers
HEADS = {"full": 8, "other": 4}


@dataclass(frozen=True, kw_only=True)
class FakeShapes:
    """Layers of two kinds, three of 8 heads and two of 4; `strange`: also one not measured."""

    strange: bool = False
    formulas: Mapping[str, int] = field(default_factory=dict)  # bytes per token, by backend

    def asked(self, phase: Phase, context: int) -> Sequence[Asked]:
        found = [
            Asked(
                phase=phase,
                layer=layer,
                count=count,
                problem=problem_of(phase, context, HEADS[layer]),
            )
            for layer, count in (("full", 3), ("other", 2))
        ]
        if self.strange:
            found.append(
                Asked(phase=phase, layer="latent", count=1, problem=None, why="has latent heads")
            )
        return found

    def input_bytes(self, problem: Mapping[str, Any]) -> int:
        return 1000 * int(problem["kv_seq_len"])

    def cache_bytes(self, context: int, *, paged: bool = False) -> int:
        return (1 + paged) * TOKEN_BYTES * context

    def predicted_peak(self, implementation: Implementation, problem: Mapping[str, Any]) -> Bytes:
        if implementation.backend not in self.formulas:
            return Bytes(value=None, words=f"no formula for {implementation.backend}")
        peak = self.formulas[implementation.backend] * int(problem["kv_seq_len"])
        return Bytes(value=peak, words="by the formula")


def problem_of(phase: Phase, context: int, heads: int) -> dict[str, Any]:
    """Of a layer of so many heads."""
    changes: dict[str, Any] = {"d_model": 64 * heads, "causal": True}
    if phase == "decode":
        changes |= {"kv_seq_len": context, "causal_align": "bottom_right"}
        return problem(1, heads, **changes)
    changes |= {"causal_align": "top_left"}
    changes |= {"passes": "forward+backward"} if phase == "training" else {}
    return problem(context, heads, **changes)


def inquiry(**changes: Any) -> Inquiry:
    """About prefill of 1,024 tokens, unless changed."""
    usual = Inquiry(
        config="./mine",
        arguments=["./mine", "--context", "1k"],
        model="mine",
        model_type="minetype",
        device="cpu",
        device_name="Imaginary CPU 9000",
        dtype="fp32",
        batch=1,
        tp=1,
        phases=("prefill",),
        contexts=(1024,),
        most_context=4096,
        weight_bytes=10_000,
        weights_in="in fp32",
        memory_bytes=4_000_000,
        memory_from="as given",
        implementations=(EAGER, SDPA, FLEX),
        others={},
        shapes=FakeShapes(),
    )
    return replace(usual, **changes)


def measured(
    parent: Path,
    asked: Inquiry,
    contexts: Sequence[int] = (1024,),
    changes: Mapping[str, Mapping[str, Any]] = {},
    implementations: Sequence[Implementation] = (),
    **meta: Any,
) -> Path:
    """A run folder with a row of each implementation at these contexts.

    `changes`: of rows, by backend; a `speed` multiplies their times.
    """
    cases, rows = [], []
    for phase in asked.phases:
        for context in contexts:
            for one in asked.shapes.asked(phase, context):
                if one.problem is None:
                    continue
                for implementation in implementations or asked.implementations:
                    backend = implementation.backend
                    planned = {**case(backend, dict(one.problem))}
                    planned["case"] += f"-{phase}{context}"
                    planned["group"] += phase
                    more = {"input_order": implementation.input_order}
                    more |= changes.get(backend, {})
                    speed = more.pop("speed", 1.0)
                    made = row(planned, more.pop("status", "ok"), **more)
                    if made["block_ms"] is not None:
                        made["block_ms"] = [
                            [[speed * call for call in block] for block in process]
                            for process in made["block_ms"]
                        ]
                    cases.append(planned)
                    rows.append(made)
    return write_run(parent, cases, rows, **{"name": "advise", **meta})


def rows_of(asked: Inquiry, *folders: Path) -> StoredRows:
    """What `attnbench advise` finds in these folders."""
    problems = [
        one.problem
        for phase in asked.phases
        for context in asked.contexts
        for one in asked.shapes.asked(phase, context)
        if one.problem is not None
    ]
    return stored_rows(folders, HERE, problems, asked.implementations)
