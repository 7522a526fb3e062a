"""A backend of the reader's own: right or wrong, and its time and memory beside the best other."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...harness.files.printable import visible
from ..data.processor_time import time_of, told_time
from ..data.row_groups import Group, Row, axis_text, backends, case_key, groups
from ..data.run_meta import Meta
from ..elements import Card, Marked, Table, table_of
from ..formatting import STATUS_WORDS, number_text, plural, ratio_bounds_text, size_text
from ..judging.over import differing_baselines
from ..judging.ratio import Ratio
from ..words import BY_PROCESSOR_TIME, NOISY
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
    found = [one for some in raced.values() for one in some]
    several = len(names) > 1
    findings = [f"{finding(name, rows, some, alone=not several)}." for name, some in raced.items()]
    card = Card(
        title=TITLE if several else "Your backend",
        subtitle="each of its cases, beside the best other exact backend",
        sentence=" ".join([*findings, *differing_baselines(rows)]),
        picture=_table(found, several=several),
    )
    return Subject(card=card)


def _table(found: Sequence[Race], *, several: bool) -> Table:
    return table_of(
        "Your backend, case by case",
        found,
        {
            "backend": lambda race: str(race.mine["backend"]) if several else "",
            "problem": lambda race: race.group.label or axis_text("seq_len", race.mine["seq_len"]),
            "result": _result,
            "\u00d7 the best other": lambda race: (
                f"{race.ratio.text}, {race.best}" if race.ratio is not None else ""
            ),
        },
        optional=("backend",),
        most=MOST_ROWS,
    )


def _result(race: Race) -> Marked:
    row, ok = race.mine, race.mine["status"] == "ok"
    cell = time_of(row) if ok else STATUS_WORDS[row["status"]]
    return Marked(cell=cell, failed=not ok, case=case_key(row))


def own_backends(rows: Sequence[Row], meta: Meta) -> list[str]:
    """The backends that are not attnbench's, in the order of the rows.

    run.json names them; runs of earlier versions do not, and have only `attribute@module`.
    """
    known = [name for run in meta.values() for name in run.get("own_backends") or ()]
    return [name for name in backends(rows) if "@" in name or name in known]


def finding(name: str, rows: Sequence[Row], raced: Sequence[Race], *, alone: bool = True) -> str:
    """`Your function is right: its largest error is 1.02 times the textbook's (limit 2). It takes
    4.2 times sdpa's time (0.8 to 23: too noisy), 20 times its memory`.

    `alone`: it is the only one of the reader's, so that it needs no name.
    """
    mine = [row for row in rows if row["backend"] == name]
    whose = "Your function" if alone and "@" in name else visible(name)
    parts = []
    for words, statuses in (("is wrong", (WRONG,)), ("failed", FAILED)):
        if some := [row for row in mine if row["status"] in statuses]:
            why = _clipped(some[0]["reason"] if statuses == (WRONG,) else last_words(some[0]))
            parts.append(f"{words} in {_of(some, mine)}: {why}")
    ran = [row for row in mine if row["status"] == "ok"]
    if right := _right(ran):
        parts.append(f"is {right}" if len(ran) == len(mine) else f"in {_of(ran, mine)} {right}")
    compared = _compared(raced)
    if not parts or (ran and not compared):
        parts.append(_without_ratio(mine))
    text = f"{whose} {'; '.join(dict.fromkeys(parts))}"
    return f"{text}. It {compared}" if compared else text


def _of(some: Sequence[Row], mine: Sequence[Row]) -> str:
    return f"{len(some)} of {plural(len(mine), 'case')}" if len(mine) > 1 else "its only case"


def _right(ran: Sequence[Row]) -> str:
    """How far from the exact result, of rows that passed; "" without errors on record."""
    known = [row for row in ran if row.get("error_ratio") is not None]
    if not known:
        return ""
    worst = max(known, key=lambda row: row["error_ratio"])
    error = f"its largest error is {number_text(worst['error_ratio'])} times the textbook's"
    limit = worst.get("error_limit_ratio")
    if worst.get("exactness") == "approximate":
        return f"an approximation: {error}"
    return f"right: {error}{f' (limit {limit:.3g})' if limit is not None else ''}"


def last_words(row: Row) -> str:
    """Python's fatal error, else the last line of the traceback or of what the worker printed, else
    the row's reason; and the last line of the backend's own file in that traceback.
    """
    log = str(row.get("log_tail") or "")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("Fatal Python error: ")]
    last = [str(row["reason"]), *lines, *fatal][-1]
    return f"{last}{_place_in(str(row['backend']), log)}"


def _place_in(backend: str, log: str) -> str:
    """` (mine.py:9)`; "" if no line of the file is named."""
    stem = backend.partition("@")[2].rpartition(".")[2] or backend.partition(":")[0]
    frames = re.findall(rf'File "(?:[^"]*/)?({re.escape(stem)}\.py)", line (\d+)', log)
    return f" ({':'.join(frames[-1])})" if frames else ""


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


def races(name: str, rows: Sequence[Row]) -> list[Race]:
    """Every problem with a row of the backend."""
    found: list[Race] = []
    for group in groups(rows, None):
        mine = next(iter(group.of_backend(name)), None)
        if mine is not None:
            others = [row for row in group.rows if row["backend"] != name]
            found.append(Race(group, mine, *against_fastest(mine, others)))
    return found


def _compared(raced: Sequence[Race]) -> str:
    """Against the fastest other exact backend, at the longest N; "" if no problem has both."""
    found = [(race.ratio, race) for race in raced if race.ratio is not None]
    if not found:
        return ""
    ratio, race = max(found, key=lambda one: one[1].group.problem["seq_len"] or 0)
    if len(found) == 1:
        return f"takes {_times(race.best, ratio)}{_memory(race)}"
    values = sorted(one.value for one, _ in found)
    over = f"{number_text(values[0])} to {number_text(values[-1])}"
    return (
        f"takes {_times(race.best, ratio)}{_memory(race)} at {race.group.at}; over {len(found)}"
        f" problems {over} times the time of the best other one"
    )


def _times(best: str, ratio: Ratio) -> str:
    """`4.2 times sdpa's time (0.8 to 23: too noisy)`."""
    bounds = ratio_bounds_text(ratio.low, ratio.high)
    how = ", the machine was busy" if ratio.disturbed else ""
    how = f", {BY_PROCESSOR_TIME}" if ratio.by_processor_time else how
    how += f", {ratio.way}" if ratio.indirect else ""
    range_text = f"{bounds}: {ratio.mark.words}{how}" if bounds else f"{NOISY.words}{how}"
    return f"{number_text(ratio.value)} times {visible(best)}'s time ({range_text})"


def _memory(race: Race) -> str:
    """`, 20 times its memory (41 MiB against 2.1 MiB)`, inputs included, as in the table below it;
    "" if it is not known of both.
    """
    mine = need_bytes(race.mine)
    other = need_bytes(next(row for row in race.group.rows if row["backend"] == race.best))
    if not mine or not other:
        return ""
    sizes = f"{size_text(mine)} against {size_text(other)}"
    return f", {number_text(mine / other)} times its memory ({sizes})"
