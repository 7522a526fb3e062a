"""How each number is measured, in short; docs/method.md has the details and sources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..data.row_groups import Row
from ..data.run_meta import Meta, allocator, budget_bytes, caches, plan_of
from ..elements import Block, Table, note
from ..formatting import bytes_text, plural
from . import Subject

TITLE = "Method"
SECTION = "more"
ORDER = 65

PLAN_FIELDS = ("processes", "min_blocks", "max_blocks", "precision_ratio", "budget_s")
NUMBERS = {
    "latency": (
        "Each call is timed individually after a warm-up, all backends of a problem alternately in"
        " random order. A block counts once, by its median; with several processes, a process"
        " counts once. The latency is the median of the processes, of one process the geometric"
        " mean of its blocks."
    ),
    "its interval": (
        "It covers the truth in 95 % of runs, although measuring stops once it is precise enough."
        " By the ranks of processes, so that it holds if they are of two kinds (five processes or"
        " more); of one process by Student t on logarithms. Outliers are kept."
    ),
    "ratios": (
        "Of medians on the same problem, paired block by block if both cases were measured in the"
        " same blocks, so drift cancels. The interval of a ratio of one process allows for how"
        " much processes differ on the machine, as far as that is known."
    ),
    "peak bytes": (
        "What a call needs in addition to its inputs and weights at its highest point, output"
        " included, from the allocator's events."
    ),
    "predicted peak": (
        "By a formula for the backend, or by running its code on tensors without memory, before"
        " anything is measured."
    ),
    "out of memory": (
        "A case that is predicted to need more than 4 times the budget is not tried; every other"
        " case is, and fails for real."
    ),
    "error ratio": (
        "Error against float64 over that of a textbook formula in the same dtype. Up to 2 passes,"
        " and what summing the keys in sequence explains; otherwise there is no latency."
    ),
    "work": (
        "Floating-point operations of the matrix products that the problem needs, whatever a"
        " backend does."
    ),
    "utilization, energy": (
        "From windows of a steady loop after the timed phase. Each row names the counter that it"
        " comes from."
    ),
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=tuple(_blocks(meta)))


def _blocks(meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        prefix = f"{name}: " if len(meta) > 1 else ""
        yield note(f"{prefix}{_plan(run)}")
    yield Table(
        title="How each number is measured",
        columns=("number", "method"),
        rows=tuple(NUMBERS.items()),
    )
    yield note(
        "docs/method.md of attnbench describes the method with its sources and the tests that could"
        " refute it; docs/format.md every field of the files. Raw samples are in the run's folder,"
        " in measuring order and unrounded."
    )


def _plan(run: Mapping[str, Any]) -> str:
    plan = plan_of(run)
    if not all(name in plan for name in PLAN_FIELDS):
        return "The run does not say by which plan it measured."
    workers = plural(plan["processes"], "worker process", "worker processes")
    fewest, most = plan["min_blocks"], plural(plan["max_blocks"], "block")
    until = f"or a case has taken {plan['budget_s']:g} s"
    blocks = f"{most} each, {until}"
    if fewest < plan["max_blocks"]:
        until = f"until intervals are ± {100 * plan['precision_ratio']:g} % {until}"
        blocks = f"{fewest} to {most} each, {until}"
    text = f"Plan {plan.get('like') or 'without a name'}: {workers} with {blocks}."
    mode = allocator(run)
    if isinstance(mode, str):
        warm = mode == "warm_heap"
        kept = "freed memory is kept while latency is measured"
        text += f" Allocator {mode}: {kept if warm else 'the C library heap has its defaults'}."
    if caches(run) == "cold":
        text += " Of fewer queries than keys each call read other keys and values, from memory."
    budget = budget_bytes(run)
    return text + (f" Memory budget {bytes_text(budget)}." if budget else "")
