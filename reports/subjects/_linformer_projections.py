"""What Linformer's projections keep of attention: the findings of the study."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...harness.rows.findings import LinformerProjection, findings_of
from ..data.exactness import error_text
from ..data.run_meta import Meta
from ..elements import Block, Table, note

ENDS = ("", "_low", "_high")


def projections_kept(meta: Meta) -> Iterator[Block]:
    """Of the first run with the study."""
    for run in meta.values():
        found = projections(run)
        if not found:
            continue
        first = found[0]
        yield Table(
            title=(
                f"What Linformer's projections keep of attention, N = {first['seq_len']}, rank"
                f" {first['rank']}: cosine and error on other inputs of the same kind"
            ),
            columns=("inputs", "projections", "cosine", "error"),
            rows=tuple((one.inputs, one.projections, *projection_texts(one)) for one in found),
        )
        yield note(
            f"Means over {first['seeds']} seeds with 95 % intervals. Trained: the two projections"
            " alone, in a few steps, to bring the output close to the exact one. Small and random:"
            " a trained model may keep more."
        )
        return


def projections(run: Mapping[str, Any]) -> list[LinformerProjection]:
    """The findings of the study linformer_projections."""
    return findings_of(LinformerProjection, run.get("studies"))


def projection_texts(one: LinformerProjection) -> tuple[str, str]:
    """Cosine and error, each with its interval."""
    cosine, error = (
        tuple(one[f"{name}{end}"] for end in ENDS) for name in ("output_cosine", "error_l2_ratio")
    )
    return (
        f"{cosine[0]:.2f} ({cosine[1]:.2f} to {cosine[2]:.2f})",
        f"{error_text(error[0])} ({error_text(error[1])} to {error_text(error[2])})",
    )
