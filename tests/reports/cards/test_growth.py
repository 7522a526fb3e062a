"""reports/cards/growth.py: growth along the size that a scenario asks about."""

from pathlib import Path

from attnbench.reports.cards import growth
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Figure
from tests.reports.fake_contrasts import decode, run_of, timed, training
from tests.reports.fake_runs import problem, quickstart


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return growth.card(frame(read), run_meta(read))


def test_decode_has_a_panel_over_the_cache_per_number_of_shared_heads(tmp_path: Path) -> None:
    card = card_of(decode(tmp_path))
    assert card is not None
    assert card.title == "Growth with N_kv"
    text = card.sentence.replace("\u00a0", " ")
    start = "Time grows as N_kv^x from N_kv = 512 to 8k: for h_kv = h, sdpa x = "
    assert text.startswith((f"{start}1.0", f"{start}0.9")), text
    assert "; for h_kv = 8, sdpa x = " in text
    assert text.endswith("); unpaired.")
    assert isinstance(card.picture, Figure)
    assert [panel.title for panel in card.picture.panels] == [
        "h_kv\u00a0=\u00a0h",
        "h_kv\u00a0=\u00a08",
    ]
    for panel in card.picture.panels:
        assert {series.x for series in panel.series} == {(512, 2048, 8192)}


def test_claims_about_linear_methods_grow_with_n(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *(
            timed("sparse_local", problem(n, mask="local", window=128), n / 512)
            for n in (512, 1024, 2048)
        ),
        name="claims_sparse",
    )
    card = card_of(run)
    assert card is not None
    assert card.title == "Growth with N"
    assert card.sentence.startswith("Time grows as N^x from N\u00a0=\u00a0512 to 2k: sparse_local")


def test_runs_about_the_wall_or_about_a_contrast_have_no_such_card(tmp_path: Path) -> None:
    assert card_of(quickstart(tmp_path / "a", lengths=(128, 256, 512))) is None
    assert card_of(training(tmp_path / "b")) is None
    asked = run_of(
        tmp_path / "c",
        *(timed("fused", problem(512, batch=batch), batch) for batch in (1, 2)),
        contrast=("batch",),
    )
    assert card_of(asked) is None
