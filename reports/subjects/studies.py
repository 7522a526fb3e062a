"""Findings of studies: a table of each, and a heat map where the study declares one.

What a study asks, and how its findings are drawn, stands in its own file (harness/studies); those
of a study that is gone are a table too.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from math import nan
from typing import Any, NamedTuple, TypeVar

from ...harness.rows.findings import Finding, findings_of
from ...harness.studies import Declared, declared
from ..data.findings import joined
from ..data.row_groups import Row, by
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Card, Map, Maps, Table, caution, note
from ..formatting import list_text
from ..quantity import Cell, Quantity, Unit
from . import Subject, tellers

TITLE = "Studies"
SECTION = "asked"
APART = True
ORDER = 51
F = TypeVar("F", bound=Finding)
MOST_COLUMNS = 6
MOST_TEXT = 80  # characters of a cell
ROWS = "_rows"
"""The end of a field that is a list of rows."""
UNITS: Mapping[str, Unit] = {"ms": "ms", "bytes": "bytes", "flops": "flops"}
"""By the end of a field's name."""
Found = Mapping[str, Any]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    elsewhere = {study for one in tellers() for study in getattr(one, "STUDIES", ())}
    told = [one for one in _told(meta) if one.study not in elsewhere]
    answer = next((one for one in told if all(row["run"] != one.run for row in rows)), None)
    return Subject(
        card=answer.card if answer else None,
        blocks=tuple(chain.from_iterable(one.blocks(in_card=one is answer) for one in told)),
        lacking="No studies: `attnbench list studies` names them.",
    )


def studied(model: type[F], meta: Meta) -> Iterator[tuple[str, list[F]]]:
    """Of each run with findings of this study: the caption of its figures, and the findings."""
    for name, run in meta.items():
        if found := findings_of(model, run.get("studies")):
            yield run_caption(run, name if len(meta) > 1 else ""), found


class Told(NamedTuple):
    """What a run found with a study. `how`: what the study says of itself, if it still exists."""

    run: str
    study: str
    found: tuple[Found, ...]
    how: Declared
    caption: str

    def blocks(self, *, in_card: bool) -> Iterator[Block]:
        if self.how.question:
            yield note(self.how.question)
        complaints = (
            (one.get("backend") or self.study, one.get("complaint")) for one in self.found
        )
        for backend, why in dict.fromkeys((str(of), str(why)) for of, why in complaints if why):
            yield caution(f"{backend}: {why}.")
        if not in_card:
            yield self.picture

    @property
    def card(self) -> Card:
        """Of a run of nothing else."""
        picture = self.picture
        return Card(
            title=f"Study {self.study}",
            sentence=f"{picture.table.title}.",
            picture=picture,
            wide=isinstance(picture, Maps),
        )

    @property
    def picture(self) -> Maps | Table:
        shown = self.how.shown
        maps, x_names, y_names = _maps(self.found, shown) if "map" in shown else ((), (), ())
        if not maps:
            return _table(self.study, self.found)
        drawn = shown["map"] if shown["map"].endswith(ROWS) else ""
        return Maps(
            title=f"{self.study}: {shown['value']}",
            caption=self.caption,
            description=f"Lighter is a larger {shown['value']}. The table has every finding.",
            x_label=_words(shown["x"]),
            y_label=_words(shown["y"]),
            value_label=shown["value"],
            maps=maps,
            table=_table(self.study, self.found, without=drawn),
            x_names=x_names,
            y_names=y_names,
        )


def _told(meta: Meta) -> Iterator[Told]:
    for name, run in meta.items():
        caption = run_caption(run, name if len(meta) > 1 else "")
        named = [one for one in joined(run.get("studies")) if isinstance(one.get("study"), str)]
        for study, found in by(named, lambda one: str(one["study"])).items():
            yield Told(name, study, found, declared(study), caption)


def _words(field: str) -> str:
    return re.sub(r"(?<!\bd)_", " ", field.removesuffix(ROWS))  # d_model is a word


# ---- heat maps -----------------------------------------------------------------------------------

Names = tuple[str, ...]


def _maps(found: Sequence[Found], how: Mapping[str, str]) -> tuple[tuple[Map, ...], Names, Names]:
    """As a study declares with `SHOWN`, and the names of columns and rows, none if they are
    numbered: a map of each finding that has one, or of a number over two other fields.
    """
    value, each = how["map"], how.get("each", "")
    if value.endswith(ROWS):
        drawn = [one for one in found if _is_matrix(one.get(value))]
        return tuple(_map(one, each, one[value]) for one in drawn), (), ()
    x, y = how["x"], how["y"]
    known = [one for one in found if _is_number(one.get(value))]
    columns, rows = (tuple(dict.fromkeys(_text(one.get(axis)) for one in known)) for axis in (x, y))
    maps = []
    for some in by(known, lambda one: _text(one.get(each))).values():
        at = {(_text(one.get(y)), _text(one.get(x))): float(one[value]) for one in some}
        numbers = [[at.get((row, column), nan) for column in columns] for row in rows]
        maps.append(_map(some[0], each, numbers))
    return tuple(maps), columns, rows


def _map(one: Found, each: str, rows: Sequence[Sequence[float]]) -> Map:
    label = f"{_words(each)} {_text(one.get(each))}" if each else ""
    return Map(label=label, rows=tuple(map(tuple, rows)))


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_matrix(value: object) -> bool:
    rows = value if isinstance(value, list) else []
    sizes = {len(row) if isinstance(row, list) else 0 for row in rows}
    return len(sizes) == 1 and 0 not in sizes and all(map(_is_number, chain(*rows)))


# ---- tables --------------------------------------------------------------------------------------


def _table(study: str, found: Sequence[Found], without: str = "") -> Table:
    """A line for each finding, or for each row of its lists of rows. `without`: this field. What
    all of several lines have is in the title; of more columns than lines the table is turned.
    """
    lines = [line for one in found for line in _lines(one, ("study", "process", without))]
    every = dict.fromkeys(name for line in lines for name in line)
    ends = {end for name in every for end in _ends(name) if end != name}
    names = [
        name for name in every if name not in ends and any(_text(line.get(name)) for line in lines)
    ]
    cells = dict.fromkeys(tuple(_cell(line, name) for name in names) for line in lines)
    columns = [*zip(map(_words, names), zip(*cells, strict=True), strict=True)]
    same = [f"{name} {of[0]}" for name, of in columns if len(cells) > 1 == len(set(of))]
    kept = [one for one in columns if len(cells) == 1 or len(set(one[1])) > 1]
    title = f"Findings of {study}: {len(found)}"
    title += f", {len(cells)} of them different" if len(cells) < len(found) else ""
    title += f"; all have {list_text(same)}" if same else ""
    table = Table(
        title=title,
        columns=tuple(name for name, _ in kept),
        rows=tuple(zip(*(of for _, of in kept), strict=True)),
        folded=True,
        of_two_axes=len(kept) > MOST_COLUMNS,
    )
    return table.upright


def _lines(whole: Found, without: Collection[str]) -> Iterator[Found]:
    one = {name: of for name, of in whole.items() if name not in without}
    rows = {name: of for name, of in one.items() if name.endswith(ROWS) and isinstance(of, list)}
    if len({*map(len, rows.values())}) != 1:
        yield one
        return
    rest = {name: of for name, of in one.items() if name not in rows}
    for number, several in enumerate(zip(*rows.values(), strict=True), start=1):
        yield {**rest, "row": number, **dict(zip(rows, several, strict=True))}


def _ends(name: str) -> tuple[str, str, str, str]:
    """How the bounds of a value may be called: `error_low` and `time_low_ms`, for example."""
    base, _, unit = name.rpartition("_")
    return f"{name}_low", f"{name}_high", f"{base}_low_{unit}", f"{base}_high_{unit}"


def _cell(line: Found, name: str) -> Cell:
    value = line.get(name)
    if type(value) not in (int, float):
        return _text(value)
    unit = UNITS.get(name.rpartition("_")[2], "length" if type(value) is int else "plain")
    ends = [end for one in _ends(name) if _is_number(end := line.get(one))]
    low, high = ends if len(ends) == 2 else (None, None)
    return Quantity(value, unit, low, high)


def _text(value: object) -> str:
    """A value of which nothing is known."""
    if isinstance(value, list):
        texts = (str(one) if isinstance(one, list) else _text(one) or "–" for one in value)
        text = ", ".join(texts)
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = f"{value:.3g}" if isinstance(value, float) else str("" if value is None else value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
