"""Made-up rows and findings for tests of claims, with a known truth."""

from pathlib import Path
from typing import Any

from attnbench.reports.claims.claim import Claim, Measured
from attnbench.reports.claims.ledger import claims_on
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from tests.made_runs import Made, made, problem, write_run

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)


def ledger_of(parent: Path, *pairs: Made, studies: Any = (), **meta: Any) -> dict[str, Claim]:
    read = read_run(
        write_run(parent, [planned for planned, _ in pairs], [one for _, one in pairs], **meta)
    )
    (run,) = run_meta([read]).values()
    return judged(Measured(every=rows_of([read]), run=run | {"studies": studies}))


def judged(*runs: Measured) -> dict[str, Claim]:
    """By name."""
    return {one.name: one for one in claims_on(runs)}


def verdict(name: str, findings: Any) -> str:
    """From findings alone."""
    return judged(Measured(every=(), run={"studies": findings}))[name].verdict


def bounded(name: str, value: float, reach: float = 0.01) -> dict[str, float]:
    return {name: value, f"{name}_low": value * (1 - reach), f"{name}_high": value * (1 + reach)}


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


COPIES = [
    {"study": "head_copies", "layout": "batched", "heads": h, "copied_bytes": 0 if h == 1 else 4096}
    for h in (1, 2, 8)
]


MERGED = [
    {"study": "head_copies", "layout": "merged", "heads": h, "copied_bytes": 0} for h in (1, 2, 8)
]


def pruned(
    kept: int, time_ms: float, peak_bytes: int | None, seq_len: int = 512, **changes: Any
) -> Made:
    """A layer of 8 heads, 64 wide, of which some are left."""
    of = problem(seq_len, kept, d_k=64, d_v=64, scope="layer")
    return timed("fused", time_ms, of, peak_bytes=peak_bytes, **changes)
