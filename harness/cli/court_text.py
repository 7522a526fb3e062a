"""The result of `attnbench selfcheck --court`: progress, a table and sentences."""

from collections.abc import Iterator

from ...reports.elements import Block, Table, Text
from ..rows.record import Record, Status
from ..selfcheck.court import SHIPPED, CourtResult, Finding, Verdict
from ..terminal.live_bar import console
from ..terminal.progress import LiveProgress, QuietProgress, line_of

COLUMNS = ("backend", "verdict", "what it does", "status", "reason")


class CourtProgress(LiveProgress):
    """A bar, and a line for each case but the shipped backends' that are ok."""

    def __init__(self) -> None:
        super().__init__(console(), "trying")

    def line(self, record: Record) -> str | None:
        fields = record.planned.fields()
        usual = fields["backend"] in SHIPPED and record.status is Status.OK
        return None if usual else line_of(record)


def court_progress(*, quiet: bool) -> LiveProgress | QuietProgress:
    return QuietProgress() if quiet else CourtProgress()


def blocks(result: CourtResult) -> Iterator[Block]:
    """A line per file of the court, per shipped backend and per harm done to it; then sentences."""
    own = [one for one in result.findings if one.role != "shipped"]
    rows = [(one.backend, one.verdict, one.what, one.status, one.reason) for one in own]
    yield Table(title="", columns=COLUMNS, rows=(*rows, *_shipped(result)))
    yield from (Text(text=sentence) for sentence in sentences(result))


def _shipped(result: CourtResult) -> Iterator[tuple[str, str, str, str, str]]:
    for backend in SHIPPED:
        same = [one for one in result.findings if (one.role, one.backend) == ("shipped", backend)]
        untouched = sum(one.verdict is Verdict.UNTOUCHED for one in same)
        harmed = [one for one in same if one.verdict is Verdict.TOUCHED]
        beside = f"measured beside {untouched} of {len(same)} others"
        if untouched:
            yield backend, Verdict.UNTOUCHED, beside, Status.OK, ""
        elif not harmed:
            yield backend, same[0].verdict, beside, same[0].status, same[0].reason
        for one in harmed:
            yield backend, one.verdict, f"measured beside {one.beside}", one.status, one.reason


def sentences(result: CourtResult) -> Iterator[str]:
    """Who was not judged as wanted, then the count of convictions."""
    for verdict, meaning in (
        (Verdict.ESCAPED, "reported as if they were honest"),
        (Verdict.OTHERWISE, "convicted, but not as their files say"),
        (Verdict.NOT_APPLICABLE, "not tried here"),
    ):
        names = [one.backend for one in result.findings if _is(one, verdict)]
        if names:
            yield f"{meaning.capitalize()}: {', '.join(names)}."
    touched = [
        f"{one.backend} beside {one.beside}" if one.role == "shipped" else one.backend
        for one in result.findings
        if one.verdict is Verdict.TOUCHED
    ]
    if touched:
        yield f"Honest, and convicted: {', '.join(touched)}."
    if result.signal is not None:
        yield "Stopped early by a signal; what was not tried says nothing."
    yield f"All samples are in {result.path}."
    convicted = f"{result.convicted} of {result.tried} convicted"
    many = "backend" if len(touched) == 1 else "backends"
    yield f"{convicted}, {len(touched) or 'no'} honest {many if touched else 'backend'} touched"


def _is(one: Finding, verdict: Verdict) -> bool:
    return one.verdict is verdict and one.role != "shipped"
