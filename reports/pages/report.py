"""Runs opened for rendering: their table, what run.json says, and the blocks of each section."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ..data.load import frame
from ..data.read import Run, read_run
from ..data.run_meta import Meta, by_question, run_meta, scenario_name
from ..elements import Block, note
from ..sections import Section, sections_of
from .exactness_marks import marked, marked_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`names`: each backend, with its mark if it is not exact: `linformer ~`."""

    runs: Sequence[Run]
    frame: pd.DataFrame
    meta: Meta
    names: Mapping[str, str]

    @property
    def title(self) -> str:
        """The names of the scenarios, and their questions."""
        names = ", ".join(dict.fromkeys(map(scenario_name, self.meta.values())))
        questions = " ".join(filter(None, by_question(self.meta)))
        return f"{names}: {questions}" if questions else names

    @property
    def sections(self) -> list[Section]:
        return sections_of(self.meta)

    @property
    def backends(self) -> list[str]:
        """As they are shown; the place of each is its look in figures."""
        return list(self.names.values())

    def blocks(self, section: Section) -> Iterator[Block]:
        """The blocks of a section, with exactness marks on names of backends."""
        lacking = [column for column in section.NEEDS if column not in self.frame.columns]
        if lacking:
            yield note(f"Not shown: the runs have no {', '.join(lacking)}.")
        else:
            yield from marked(section.render(self.frame, self.meta), self.names)


def per_question(report: Report) -> list[Report]:
    """One report per question, in the order of the runs; backends look alike in all of them."""
    runs = dict(zip(report.meta, report.runs, strict=True))
    return [
        replace(
            report,
            runs=[runs[name] for name in meta],
            frame=report.frame[report.frame["run"].isin(meta)].reset_index(drop=True),
            meta=meta,
        )
        for meta in by_question(report.meta).values()
    ]


def page_path(run_paths: Sequence[str | Path]) -> Path:
    """Where the page goes by default: report.html in the folder of a run, or beside several."""
    first = Path(run_paths[0])
    return (first if len(run_paths) == 1 else first.resolve().parent) / "report.html"


def open_report(run_paths: Sequence[str | Path]) -> Report:
    """Raises BadRun."""
    runs = [read_run(path) for path in run_paths]
    table, meta = frame(runs), run_meta(runs)
    return Report(runs=runs, frame=table, meta=meta, names=marked_names(table, meta))
