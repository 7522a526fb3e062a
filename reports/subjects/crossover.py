"""From which N on something else beats dense exact attention: sparse, approximate or recurrent."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..data.exactness import baseline
from ..data.row_groups import Group, Row, axis_text, backends, groups
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, table_of
from ..formatting import count_text, plural
from ..ratio import disturbed
from . import Subject, approximate, recurrence
from ._crossovers import Crossover, crossover, fewer_bytes_from, from_text
from ._over import HOW_TIME, MOST_PANELS, is_sparse, joined, panel

TITLE = "From which N on"
ORDER = 17
NEEDS = ("latency_ms",)
BELOW_CLAIMS = True
PREFERRED = ("sdpa", "fused")  # to compare with


class Challenge(NamedTuple):
    """A problem over N on which something challenges dense exact attention, and what is found."""

    group: Group
    finding: str
    crossovers: list[Crossover]
    even_by_flops: float | None = None


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = challenges(rows, meta)
    if not found:
        return Subject(
            lacking="No sparse, approximate or recurrent backend was timed beside a dense one."
        )
    over_n = [one for one in found if one.crossovers and len(one.group.lengths) > 1]
    pictures = [
        _figure(over_n[at : at + MOST_PANELS], meta) for at in range(0, len(over_n), MOST_PANELS)
    ]
    alone = [one for one in found if one not in over_n]
    return Subject(
        card=_card(over_n, pictures[0]) if pictures else None,
        lines=tuple(f"{one.group.prefixed(one.finding)}." for one in alone),
        blocks=tuple(pictures[1:]),
    )


def challenges(rows: Sequence[Row], meta: Meta) -> list[Challenge]:
    leads = {name: baseline(run, rows) or "" for name, run in meta.items()}
    found = list(_sparse(rows, leads))
    for group in approximate.approximating(rows):
        them = approximate.crossovers(group)
        found.append(Challenge(group, approximate.finding(group), them))
    for group in recurrence.recurring(rows):
        them, even = recurrence.crossovers(group), recurrence.even_by_flops(group)
        found.append(Challenge(group, recurrence.finding(group), them, even))
    return found


def _card(found: Sequence[Challenge], picture: Figure) -> Card:
    shown = found[: len(picture.panels)]
    more = len(found) - len(shown)
    return Card(
        name="crossover",
        title=TITLE,
        sentence=f"{picture.title}.",
        picture=picture,
        subtitle="latency over N",
        note=(
            "Faster means by more than noise, at every longer N that was measured."
            + _disturbed([row for one in shown for row in one.group.rows])
            + (f" {plural(more, 'more problem is', 'more problems are')} below." if more else "")
        ),
        wide=len(picture.panels) > 2,
    )


def _figure(shown: Sequence[Challenge], meta: Meta) -> Figure:
    return Figure(
        title=joined([(one.group, one.finding) for one in shown]),
        caption=caption(shown[0].group.problem, meta),
        description=f"Latency over the sequence length N, {HOW_TIME} the crossovers.",
        panels=tuple(panel(approximate.informative(one.group)) for one in shown),
        table=table_of(
            "From which N on a backend is clearly faster than dense exact attention",
            [(of, one) for of in shown for one in of.crossovers],
            {
                "problem": lambda line: line[0].group.label or "all",
                "backend": lambda line: line[1].backend,
                "than": lambda line: line[1].against,
                "faster": lambda line: line[1].text,
                "fewer FLOPs above": lambda line: _flops_text(line[0].even_by_flops),
            },
            optional=("fewer FLOPs above",),
        ),
    )


def _flops_text(even: float | None) -> str:
    return "" if even is None else f"N = {count_text(round(even))}"


def _disturbed(rows: Sequence[Row]) -> str:
    timed = [row for row in rows if row.get("latency_ms") is not None]
    count = sum(map(disturbed, timed))
    of = f" Other work disturbed most blocks of {count} of {plural(len(timed), 'case')}."
    return of if count else ""


# ---- sparse patterns ----------------------------------------------------------------------------


def _sparse(rows: Sequence[Row], leads: Mapping[str, str]) -> Iterator[Challenge]:
    """Every problem over N with a timed sparse backend and a timed dense one: the baseline, else
    sdpa, fused, or the first.
    """
    for group in groups(rows, "seq_len"):
        timed = [row for row in group.rows if row.get("latency_ms") is not None]
        sparse = backends(filter(is_sparse, timed))
        dense = [name for name in backends(timed) if name not in sparse]
        if sparse and dense:
            preferred = (leads[group.problem["run"]], *PREFERRED, *dense)
            against = next(name for name in preferred if name in dense)
            them = [one for name in sparse if (one := crossover(group.rows, name, against))]
            yield Challenge(group, _finding(group, them), them)


def _finding(group: Group, found: Sequence[Crossover]) -> str:
    """`sparse_local is faster than sdpa from N = 2k on (...), fewer bytes from N = 512 on`."""
    texts = []
    for one in found:
        start, known = fewer_bytes_from(group.rows, one.backend, one.against)
        faster = "faster than" if one.faster_at else "not clearly faster than"
        when = one.text if one.faster_at else f"up to {axis_text('seq_len', one.lengths[-1])}"
        size = ""
        if start is not None:
            size = f", fewer bytes {from_text(start, known, axis_text('seq_len', start))}"
        elif known:
            size = f", not fewer bytes up to {axis_text('seq_len', known[-1])}"
        texts.append(f"{one.backend} is {faster} {one.against} {when}{size}")
    return "; ".join(texts) or "no sparse backend shares a timed N with a dense one"
