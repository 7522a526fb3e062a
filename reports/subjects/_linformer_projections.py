"""What Linformer's projections keep of attention: the findings of the study."""

from collections.abc import Callable, Iterator

from ...harness.rows.findings import LinformerProjection, findings_of
from ..data.exactness import error_text
from ..data.run_meta import Meta
from ..elements import Block, note, table_of
from ..quantity import Number


def projections_kept(meta: Meta) -> Iterator[Block]:
    """Of the first run with the study linformer_projections."""
    studies = (findings_of(LinformerProjection, run.get("studies")) for run in meta.values())
    if not (found := next(filter(None, studies), None)):
        return
    first = found[0]
    yield table_of(
        f"What Linformer's projections keep of attention, N = {first.seq_len}, rank {first.rank}:"
        " cosine and error on other inputs of the same kind",
        found,
        {
            "inputs": lambda one: one.inputs,
            "projections": lambda one: one.projections,
            "cosine": lambda one: _bounded(one, "output_cosine", "{:.2f}".format),
            "error": lambda one: _bounded(one, "error_l2_ratio", error_text),
        },
    )
    yield note(
        f"Means over {first.seeds} seeds with 95 % intervals. Trained: the two projections"
        " alone, in a few steps, to bring the output close to the exact one. Small and random:"
        " a trained model may keep more."
    )


def _bounded(one: LinformerProjection, name: str, text: Callable[[float], str]) -> Number:
    value, low, high = (text(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Number(f"{value} ({low} to {high})")
