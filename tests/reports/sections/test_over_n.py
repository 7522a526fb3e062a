"""reports/sections/_over_n.py: figures of few points become small multiples, with every number."""

from attnbench.reports.data.row_groups import Group
from attnbench.reports.elements import Figure, Series, Table
from attnbench.reports.sections._over_n import multiples, panel


def drawn(label: str, lengths: tuple[int, ...], *names: str) -> tuple[Group, Figure]:
    x = tuple(map(float, lengths))
    series = [Series(backend=name, kind="measured", x=x, y=x) for name in names]
    table = Table(
        title="Numbers",
        columns=("N", *names),
        rows=tuple((str(n), *(f"{name} {n}" for name in names)) for n in lengths),
        strong=frozenset({(0, 1)}),
        cases={(1, len(names)): f"case of {label}"},
    )
    figure = Figure(
        title=f"For {label}",
        caption=f"a CPU · scenario s · {label}",
        description="Lines.",
        panels=(panel("latency", "ms", series),),
        table=table,
    )
    return Group(label=label, problem={}, rows=[]), figure


def test_three_figures_of_two_points_are_one_with_a_panel_each() -> None:
    three = [drawn(f"h = {h}", (128, 256), "fused", "sdpa") for h in (1, 2, 4)]
    (figure,) = multiples(three, "All")
    assert [one.title for one in figure.panels] == ["h = 1", "h = 2", "h = 4"]
    assert figure.title == "All"
    assert figure.caption == "a CPU · scenario s"


def test_figures_of_many_points_or_two_of_them_stay_as_they_are() -> None:
    long = [drawn(f"h = {h}", (128, 256, 512, 1024), "fused") for h in (1, 2, 4)]
    assert list(multiples(long, "All")) == [figure for _, figure in long]
    two = [drawn(f"h = {h}", (128, 256), "fused") for h in (1, 2)]
    assert list(multiples(two, "All")) == [figure for _, figure in two]


def test_the_joined_table_has_each_cell_under_the_name_of_its_backend() -> None:
    figures = [
        drawn("a", (128, 256), "fused", "sdpa"),
        drawn("b", (128, 256), "sdpa"),
        drawn("c", (128, 256), "naive"),
    ]
    (figure,) = multiples(figures, "All")
    table = figure.table
    assert table.columns == ("problem", "N", "fused", "sdpa", "naive")
    assert table.rows[3] == ("b", "256", "", "sdpa 256", "")
    assert table.rows[4] == ("c", "128", "", "", "naive 128")
    assert table.strong == frozenset({(0, 2), (2, 3), (4, 4)})
    assert table.cases == {(1, 3): "case of a", (3, 3): "case of b", (5, 4): "case of c"}
