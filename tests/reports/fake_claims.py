"""Made-up rows for tests of claims, with a known truth."""

from pathlib import Path
from typing import Any

from attnbench.reports.claims.claim import Outcome, outcomes
from attnbench.reports.claims.ledger import CLAIMS
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.run_meta import read_run
from tests.made_runs import Made, made, problem, write_run

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)


def judged(parent: Path, *pairs: Made) -> dict[str, Outcome]:
    """What these cases say of the claims, by name."""
    planned, found = zip(*pairs, strict=True)
    read = read_run(write_run(parent, [*planned], [*found]))
    return {one.claim.name: one for one in outcomes(CLAIMS, rows_of([read]))}


def work(of: dict[str, Any]) -> int:
    projections = 8 * of["seq_len"] * of["d_model"] ** 2 if of["scope"] == "layer" else 0
    return 4 * int(of["seq_len"]) ** 2 * int(of["d_model"]) + projections


def timed(
    backend: str, time_ms: float, of: dict[str, Any], *, noise: float = 0.01, **changes: Any
) -> Made:
    """Ratios over heads and backends are paired: the drift is that of a length and a scope."""
    session = f"n{of['seq_len']}-{of['scope']}"
    given = {"session": session, "drift_sd": 0.03, "noise_sd": noise, **changes}
    return made(backend, of, time_ms, **given)


def layer(n: int, heads: int = 8) -> dict[str, Any]:
    return problem(n, heads, scope="layer")


def pruned(
    kept: int, time_ms: float, peak_bytes: int | None, seq_len: int = 512, **changes: Any
) -> Made:
    """A layer of 8 heads, 64 wide, of which some are left."""
    of = problem(seq_len, kept, d_k=64, d_v=64, scope="layer")
    return timed("fused", time_ms, of, peak_bytes=peak_bytes, **changes)
