"""How each number was made, in a line each; docs/method.md has the whole of it, with sources."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ..data.run_meta import Meta, budget_bytes
from ..elements import Block, Table, Text
from ..formatting import bytes_text, plural

TITLE = "Method"
ORDER = 65
NEEDS = ()

PLAN_FIELDS = ("processes", "min_blocks", "max_blocks", "precision_ratio", "budget_s")
NUMBERS = (
    (
        "latency",
        (
            "Each call is timed by itself, after a warm-up, all backends of a problem in turns of"
            " random order. A block counts once, by its median; where there are several processes,"
            " a process counts once. The latency is the geometric mean of these."
        ),
    ),
    (
        "its interval",
        (
            "Student t on logarithms, computed at 96.5 %, because measuring stops as soon as it is"
            " precise enough: so it covers the truth in 95 % of runs. Outliers are kept."
        ),
    ),
    (
        "ratios",
        (
            "Of medians of the same problem. Paired block by block where both cases were measured"
            " in the same blocks, so that drift cancels."
        ),
    ),
    (
        "peak bytes",
        (
            "What one call needs above its inputs and weights at its highest point, output"
            " included, by the allocator's own events."
        ),
    ),
    (
        "predicted peak",
        (
            "By a formula in the backend's file, or by following its code on tensors without"
            " memory, before anything runs."
        ),
    ),
    (
        "out of memory",
        (
            "A case predicted to need more than 4 times the budget is not tried; every other one"
            " is, and fails for real."
        ),
    ),
    (
        "error ratio",
        (
            "Error against float64 over that of an honest textbook formula in the same dtype. Up to"
            " 2 passes; else there is no latency."
        ),
    ),
    (
        "work",
        (
            "Floating-point operations of the matrix products that the problem needs, whatever a"
            " backend does."
        ),
    ),
    (
        "utilization, energy",
        (
            "From windows of a steady loop after the timed phase. Each row names the counter that"
            " it comes from."
        ),
    ),
)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        yield Text(text=f"{f'{name}: ' if len(meta) > 1 else ''}{_plan(run)}", kind="note")
    yield Table(title="How each number was made", columns=("number", "how"), rows=NUMBERS)
    yield Text(
        text=(
            "The whole method, with sources and with the tests that could convict it, stands in"
            " docs/method.md of attnbench; what each field of the files means, in docs/format.md."
            " Raw samples stay in the run's folder, in the order in which they were taken, none"
            " rounded."
        ),
        kind="note",
    )


def _plan(run: Mapping[str, Any]) -> str:
    plan = run["scenario"].get("plan")
    if not isinstance(plan, dict) or not all(name in plan for name in PLAN_FIELDS):
        return "The run does not say by which plan it measured."
    workers = f"{plan['processes']} worker process{'' if plan['processes'] == 1 else 'es'}"
    blocks = f"{plan['min_blocks']} to {plural(plan['max_blocks'], 'block')} each"
    said = f"Plan {plan.get('like') or 'without a name'}: {workers} of {blocks}, "
    said += (
        f"until intervals are ± {100 * plan['precision_ratio']:g} % or {plan['budget_s']:g} s of a"
        " case are spent."
    )
    if run["device"] == "cpu" and isinstance(plan.get("allocator"), str):
        kept = (
            "freed memory is kept while latency is measured"
            if plan["allocator"] == "warm_heap"
            else "the C library's heap is left as it is"
        )
        said += f" Allocator {plan['allocator']}: {kept}."
    budget = budget_bytes(run)
    return said + (f" Memory budget {bytes_text(budget)}." if budget else "")
