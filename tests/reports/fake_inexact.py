"""A run with approximate backends and one that computes something else.

They are faster than exact ones from some N on.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.reports.fake_runs import case, problem, row, write_run

LENGTHS = (256, 512, 1024, 2048, 4096)
KINDS = {
    "linformer": "approximate",
    "linformer:64": "approximate",
    "performer": "approximate",
    "rnn": "other",
}
CONFIGURATIONS = {
    "linformer": {"rank": 256},
    "linformer:64": {"rank": 64},
    "performer": {"features": 256},
    "rnn": {"cell": "GRU"},
}
ERRORS = {"linformer": 0.12, "linformer:64": 0.34, "performer": 0.05}
BACKENDS = ("fused", "sdpa", *KINDS)


def time_ms(backend: str, n: int) -> float:
    """linformer is faster than sdpa from N = 1536 on, performer from 3072 on, rnn never."""
    per_pair, per_token = 1e-6, 1e-3
    return {
        "fused": 2 * per_pair * n * n,
        "sdpa": per_pair * n * n,
        "linformer": 1.536 * per_token * n,
        "linformer:64": 1.0 * per_token * n,
        "performer": 3.072 * per_token * n,
        "rnn": 50 * per_token * n,
    }[backend]


def layer(n: int, d_model: int = 512, **changes: Any) -> dict[str, Any]:
    return problem(n, scope="layer", d_model=d_model, **changes)


def made(backend: str, of: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    planned, kind, n, d = (
        case(backend, of),
        KINDS.get(backend, "exact"),
        of["seq_len"],
        of["d_model"],
    )
    own = Random(ascii(planned["case"]))
    given: dict[str, Any] = {
        "exactness": kind,
        "block_ms": [[[time_ms(backend, n) * own.lognormvariate(0, 0.01)] for _ in range(8)]],
        "work_flops": 8 * n * d * d + 4 * n * n * d,
        "configuration": CONFIGURATIONS.get(backend),
    }
    if kind == "approximate":
        given |= {"error_l2_ratio": ERRORS[backend] * (n / 4096) ** 0.5, "error_ratio": 1e5}
        given["output_cosine"] = 0.9
    if kind == "other":
        given |= {"error_l2_ratio": None, "error_ratio": None}
    return planned, row(planned, **given | changes)


def inexact(
    parent: Path,
    backends: tuple[str, ...] = BACKENDS,
    lengths: tuple[int, ...] = LENGTHS,
    cosines: Mapping[str, float | None] | None = None,
    **meta: Any,
) -> Path:
    """`cosines`: of some backends' outputs and the exact one; 0.9 for the others."""
    cosines = cosines or {}
    pairs = [
        made(
            backend,
            layer(n),
            **({"output_cosine": cosines[backend]} if backend in cosines else {}),
        )
        for n in lengths
        for backend in backends
    ]
    return write_run(
        parent, [planned for planned, _ in pairs], [one for _, one in pairs], name="linear", **meta
    )
