"""Cards with one picture of each kind, as makers of cards give them."""

import pytest

from attnbench.reports.elements import (
    Card,
    Dot,
    DotPlot,
    DotRow,
    Figure,
    Panel,
    Series,
    Table,
    WallChart,
    WallLine,
    WallPoint,
)

NUMBERS = Table(
    title="Memory needed", columns=("N", "fused", "sdpa"), rows=(("1k", "64 MiB", "8 MiB"),)
)


def fake_cards(backends: tuple[str, str] = ("fused", "sdpa")) -> tuple[Card, ...]:
    """The wall, heads and the fastest, of a run that has these two backends."""
    first, second = backends
    points = tuple(
        WallPoint(seq_len=n, need_bytes=64 * n * n, end="ok" if n < 4096 else "oom")
        for n in (1024, 2048, 4096)
    )
    wall = WallChart(
        panels=(("8 heads", (WallLine(backend=first, points=points, stop_n=2848),)),),
        budget_bytes=1 << 29,
        description="Memory over N.",
        table=NUMBERS,
    )
    dots = DotPlot(
        rows=(
            DotRow(group=first, label="time", dot=Dot(ratio=1.6, low=1.5, high=1.7, word="more")),
            DotRow(group=second, label="time", dot=None, missing="no pair"),
        ),
        x_label="ratio",
        band_ratio=0.05,
        description="Ratios.",
        table=Table(title="Ratios", columns=("backend", "time"), rows=((first, "×1.60"),)),
    )
    fastest = Table(
        title="Who is fastest",
        columns=("heads", "N = 1k", "N = 2k", "N = 4k"),
        rows=(
            ("1", f"tie: {first} = {second} · 1.2 ms", f"{second} · 4 ms", f"{second} · 9 ms"),
            ("8", f"{second} · 2 ms · then {first} ×1.31", f"{second} · 5 ms", "none"),
        ),
    )
    return (
        Card(
            name="wall",
            title="The wall",
            sentence=(
                f"{first} with 8 heads needs 64 N² bytes and stops at N = 2 848; {second} grows"
                " linearly."
            ),
            picture=wall,
            subtitle="memory needed",
            note="Crosses: out of memory.",
        ),
        Card(
            name="heads",
            title="8 heads against 1",
            sentence=f"Same FLOPs; time grows ×1.60 in {first}.",
            picture=dots,
        ),
        Card(
            name="fastest",
            title="Who is fastest",
            sentence=f"{second} with 8 heads.",
            picture=fastest,
            wide=True,
        ),
    )


def figure_card() -> Card:
    """With a picture that a section may have too."""
    series = Series(backend="fused", kind="measured", x=(128.0, 256.0), y=(1.0, 4.0))
    panel = Panel(x_label="N", y_label="latency", unit="ms", series=(series,))
    figure = Figure(
        title="Growth", caption="", description="Time over N.", panels=(panel,), table=NUMBERS
    )
    return Card(name="growth", title="Growth", sentence="fused grows.", picture=figure)


def with_cards(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> None:
    """Reports have these cards."""
    monkeypatch.setattr("attnbench.reports.pages.report.cards", lambda frame, meta: list(cards))
