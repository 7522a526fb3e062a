"""A backend of the reader's own: right or wrong, and its time and memory beside the best other."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...harness.files.printable import visible
from ..data.processor_time import time_of, told_time
from ..data.row_groups import Group, Row, axis_text, backends, case_key, groups
from ..data.run_meta import Meta
from ..elements import Card, Marked, table_of
from ..formatting import STATUS_WORDS, number_text, plural, size_text
from ..judging.over import differing_baselines
from ..judging.ratio import Ratio
from . import Subject
from ._memory_over_n import need_bytes
from ._race import against_fastest

TITLE = "Your backends"
SECTION = "asked"
ORDER = 1
MOST_ROWS = 8
WRONG = "incorrect"
FAILED = ("error", "crashed", "timeout")
MOST_CHARACTERS = 240


class Race(NamedTuple):
    """A row of an own backend, the fastest other exact backend of its problem, and how many times
    as long as that it takes; "" and None without such a pair.
    """

    group: Group
    mine: Row
    best: str
    ratio: Ratio | None


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    names = own_backends(rows, meta)
    if not names:
        return Subject(lacking="No backend is the reader's own.")
    raced = {name: races(name, rows) for name in names}
    several = len(names) > 1
    findings = [finding(name, some, alone=not several) for name, some in raced.items()]
    table = table_of(
        "Your backend, case by case",
        [one for some in raced.values() for one in some],
        {
            "backend": lambda race: str(race.mine["backend"]) if several else "",
            "problem": lambda race: race.group.label or axis_text("seq_len", race.mine["seq_len"]),
            "result": _result,
            "\u00d7 the best other": lambda race: (
                f"{race.ratio.marked}, {race.best}" if race.ratio is not None else ""
            ),
        },
        optional=("backend",),
        most=MOST_ROWS,
    )
    card = Card(
        title=TITLE if several else "Your backend",
        subtitle="each of its cases, beside the best other exact backend",
        sentence=" ".join([*findings, *differing_baselines(rows)]),
        picture=table,
    )
    return Subject(card=card)


def own_backends(rows: Sequence[Row], meta: Meta) -> list[str]:
    """The backends that are not attnbench's, in the order of the rows.

    run.json names them; runs of earlier versions do not, and have only `attribute@module`.
    """
    known = [name for run in meta.values() for name in run.get("own_backends") or ()]
    return [name for name in backends(rows) if "@" in name or name in known]


def races(name: str, rows: Sequence[Row]) -> list[Race]:
    """Every problem with a row of the backend."""
    found: list[Race] = []
    for group in groups(rows, None):
        for mine in group.of_backend(name)[:1]:
            others = [row for row in group.rows if row["backend"] != name]
            found.append(Race(group, mine, *against_fastest(mine, others)))
    return found


def _result(race: Race) -> Marked:
    row, ok = race.mine, race.mine["status"] == "ok"
    cell = time_of(row) if ok else STATUS_WORDS[row["status"]]
    return Marked(cell=cell, failed=not ok, case=case_key(row))


# ---- in a sentence -------------------------------------------------------------------------------


def finding(name: str, raced: Sequence[Race], *, alone: bool) -> str:
    """`Your function is right: its largest error is 1.02 times the textbook's (limit 2). It takes
    4.2 times sdpa's time (0.8 to 23: too noisy), 20 times its memory.`

    `alone`: it is the only one of the reader's, so that it needs no name.
    """
    mine = [one.mine for one in raced]
    ran = [row for row in mine if row["status"] == "ok"]
    parts = []
    for words, statuses in (("is wrong", (WRONG,)), ("failed", FAILED)):
        if some := [row for row in mine if row["status"] in statuses]:
            why = _clipped(some[0]["reason"] if statuses == (WRONG,) else last_words(some[0]))
            parts.append(f"{words} in {_of(some, mine)}: {why}")
    if right := _right(ran):
        parts.append(f"is {right}" if len(ran) == len(mine) else f"in {_of(ran, mine)} {right}")
    compared = _compared(raced)
    if not parts or (ran and not compared):
        parts.append(_without_ratio(mine))
    whose = "Your function" if alone and "@" in name else visible(name)
    text = f"{whose} {'; '.join(dict.fromkeys(parts))}."
    return f"{text} It {compared}." if compared else text


def _of(some: Sequence[Row], mine: Sequence[Row]) -> str:
    return f"{len(some)} of {plural(len(mine), 'case')}" if len(mine) > 1 else "its only case"


def _right(ran: Sequence[Row]) -> str:
    """How far from the exact result, of rows that passed; "" without errors on record."""
    known = [row for row in ran if row.get("error_ratio") is not None]
    if not known:
        return ""
    worst = max(known, key=lambda row: row["error_ratio"])
    error = f"its largest error is {number_text(worst['error_ratio'])} times the textbook's"
    if worst.get("exactness") == "approximate":
        return f"an approximation: {error}"
    limit = worst.get("error_limit_ratio")
    return f"right: {error}{f' (limit {limit:.3g})' if limit is not None else ''}"


def last_words(row: Row) -> str:
    """Python's fatal error, else the last line of the traceback or of what the worker printed, else
    the row's reason; and the last line of the backend's own file in that traceback: ` (mine.py:9)`.
    """
    log, backend = str(row.get("log_tail") or ""), str(row["backend"])
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("Fatal Python error: ")]
    stem = backend.partition("@")[2].rpartition(".")[2] or backend.partition(":")[0]
    frames = re.findall(rf'File "(?:[^"]*/)?({re.escape(stem)}\.py)", line (\d+)', log)
    place = f" ({':'.join(frames[-1])})" if frames else ""
    return [str(row["reason"]), *lines, *fatal][-1] + place


def _clipped(text: str) -> str:
    safe = visible(text).removesuffix(".")
    return safe if len(safe) <= MOST_CHARACTERS else f"{safe[: MOST_CHARACTERS - 3]}..."


def _without_ratio(mine: Sequence[Row]) -> str:
    if timed := [row for row in mine if row.get("latency_ms") is not None]:
        row = max(timed, key=lambda row: row["seq_len"])
        at = axis_text("seq_len", row["seq_len"])
        return f"takes {told_time(row)} at {at}, with nothing to compare it with"
    reason = f": {_clipped(mine[0]['reason'])}" if mine[0]["reason"] else ""
    return f"has no latency: {STATUS_WORDS[mine[0]['status']]}{reason}"


def _compared(raced: Sequence[Race]) -> str:
    """Against the fastest other exact backend, at the longest N; "" if no problem has both."""
    found = [(race.ratio, race) for race in raced if race.ratio is not None]
    if not found:
        return ""
    ratio, race = max(found, key=lambda one: one[1].group.problem["seq_len"] or 0)
    how = f"{ratio.bounds}: {ratio.mark.words}"
    how += ", the machine was busy" if ratio.disturbed else ""
    text = f"takes {number_text(ratio.value)} times {visible(race.best)}'s time ({how})"
    other = next(row for row in race.group.rows if row["backend"] == race.best)
    needs = need_bytes(race.mine), need_bytes(other)
    if needs[0] and needs[1]:  # inputs included, as in the table below it
        sizes = " against ".join(map(size_text, needs))
        text += f", {number_text(needs[0] / needs[1])} times its memory ({sizes})"
    return f"{text} at {race.group.at}" if len(found) > 1 else text
