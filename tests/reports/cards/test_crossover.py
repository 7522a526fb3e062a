"""reports/cards/crossover.py: from which N on something else beats dense exact attention."""

from pathlib import Path

import pytest

from attnbench.reports.cards import crossover
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Figure
from tests.reports.fake_contrasts import run_of, timed
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import problem, quickstart


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return crossover.card(frame(read), run_meta(read))


def sparse(parent: Path, name: str = "sparse") -> Path:
    """sparse_local is faster from N = 1k on, and needs fewer bytes from 512 on."""
    return run_of(
        parent,
        *(
            timed(
                backend,
                problem(n, mask="local", window=128),
                n / 724 if backend == "sparse_local" else (n / 724) ** 2,
                peak_bytes=300 * n if backend == "sparse_local" else n * n,
            )
            for n in (256, 512, 1024, 2048)
            for backend in ("sdpa", "sparse_local")
        ),
        name=name,
        baseline="sdpa",
    )


def test_a_sparse_pattern_says_from_where_on_it_saves_time_and_bytes(tmp_path: Path) -> None:
    card = card_of(sparse(tmp_path))
    assert card is not None
    text = card.sentence.replace("\u00a0", " ")
    assert text == (
        "sparse_local is faster than sdpa from N = 1k on (slower up to 512, even at about 720),"
        " fewer bytes from N = 512 on."
    )
    assert isinstance(card.picture, Figure)
    assert len(card.picture.panels[0].series) == 2


@pytest.mark.parametrize(
    ("backends", "words"),
    [
        (("fused", "sdpa", "linformer"), "aster than fused and sdpa: linformer from"),
        (("sdpa", "rnn"), "rnn is slower than sdpa at every N"),
    ],
)
def test_approximations_and_recurrent_layers_have_the_card(
    tmp_path: Path, backends: tuple[str, ...], words: str
) -> None:
    card = card_of(inexact(tmp_path, backends=backends))
    assert card is not None
    assert words in card.sentence


def test_without_a_challenger_or_to_test_claims_there_is_no_card(tmp_path: Path) -> None:
    assert card_of(quickstart(tmp_path / "a", lengths=(128, 256))) is None
    assert card_of(sparse(tmp_path / "b", name="claims_sparse")) is None
    assert card_of(inexact(tmp_path / "c", backends=("linformer", "rnn"))) is None
    assert card_of(inexact(tmp_path / "d", lengths=(256,))) is None


def test_an_output_that_carries_no_information_has_no_line(tmp_path: Path) -> None:
    card = card_of(inexact(tmp_path, cosines={"linformer": 0.004, "linformer:64": 0.0}))
    assert card is not None
    assert isinstance(card.picture, Figure)
    drawn = {series.backend for panel in card.picture.panels for series in panel.series}
    assert "performer" in drawn
    assert not {"linformer", "linformer:64"} & drawn


def test_cases_beside_other_work_are_counted(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *(
            timed(backend, problem(n, mask="local", window=128), ms, contended_blocks=loud)
            for n, loud in ((256, 0), (512, 99))
            for backend, ms in (("sdpa", 9.0), ("sparse_local", 1.0))
        ),
        baseline="sdpa",
    )
    card = card_of(run)
    assert card is not None
    assert "Other work disturbed most blocks of 2 of 4 cases." in card.note
