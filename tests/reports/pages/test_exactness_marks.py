"""reports/pages/exactness_marks.py: names of inexact backends have their mark everywhere."""

import re
from html import unescape
from pathlib import Path

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.elements import Text
from attnbench.reports.pages.exactness_marks import marked, marked_names
from tests.reports.fake_inexact import inexact
from tests.reports.rendering import page_of, summary_of, without_scripts


@pytest.mark.long
def test_names_of_inexact_backends_are_marked_everywhere_on_the_page(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    page = page_of(run)
    # Drawings of cards shorten names and break them into lines.
    drawings = r'<svg class="pic.*?</svg>'
    visible = unescape(re.sub(drawings, "", without_scripts(page), flags=re.DOTALL))
    for name, mark in (("linformer", "~"), ("linformer:64", "~"), ("performer", "~"), ("rnn", "≠")):
        shown = re.findall(rf"(?<![\w:/.-]){name}(?!:?[\w-])(.{{2}})", visible)
        assert len(shown) > 20
        assert set(shown) == {f" {mark}"}
    assert re.search(r"linformer-b1-n256", visible)
    assert "fused ~" not in visible


def test_logs_ids_and_other_words_are_not_marked() -> None:
    names = {
        "fused": "fused",
        "rnn": "rnn ≠",
        "linformer": "linformer ~",
        "linformer:64": "linformer:64 ~",
    }
    texts = {
        "rnn: unsupported": "rnn ≠: unsupported",
        "linformer:64, linformer and fused": "linformer:64 ~, linformer ~ and fused",
        "linformer-b1-n256-d512": "linformer-b1-n256-d512",
        "impls/rnn.py, linformer_2 and my-rnn": "impls/rnn.py, linformer_2 and my-rnn",
    }
    for text, wanted in texts.items():
        (block,) = marked([Text(text=text)], names)
        assert isinstance(block, Text)
        assert block.text == wanted
        log = Text(text=text, kind="log")
        assert list(marked([log], names)) == [log]


def test_walls_of_what_is_not_exact_are_marked(tmp_path: Path) -> None:
    wall = {"backend": "linformer", "exactness": "approximate"}
    table = frame([read_run(inexact(tmp_path, backends=("fused",)))])
    assert marked_names(table, {"run": {"walls": [wall, {"backend": "sdpa"}]}}) == {
        "fused": "fused",
        "linformer": "linformer ~",
        "sdpa": "sdpa",
    }


def test_the_terminal_summary_is_marked_too(tmp_path: Path) -> None:
    text = " ".join(summary_of(inexact(tmp_path)))
    assert re.search(r"linformer ~ is off by 12 % and takes 0\.\d+ times", text)
    assert "rnn ≠ is slower than fused and sdpa" in text
    assert not re.search(r"(linformer|rnn|performer)(?! [~≠]|:64 ~)", text)
