"""The page as a whole: its policy, several runs on it, and reproducible bytes."""

import re
import shutil
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from attnbench.reports.pages.html import write_page
from attnbench.reports.pages.report import open_report
from tests.conftest import ROOT


def test_the_policy_allows_only_our_own_script_and_style(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    directives = dict(one.split(" ", 1) for one in unescape(policy[1]).split("; "))
    assert directives["default-src"] == "'none'"
    for tag, directive in (("script", "script-src"), ("style", "style-src-elem")):
        found = set(re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL))
        assert set(directives[directive].split()) == {
            f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in found
        }
    assert directives["base-uri"] == directives["form-action"] == "'none'"


@pytest.mark.parametrize(
    ("names", "section"), [(["studies"], "studies"), (["growth", "block", "learning"], "growth")]
)
def test_a_page_is_one_file_with_all_that_was_measured(
    names: list[str], section: str, tmp_path: Path
) -> None:
    """Also what the run measured beside what it asks, such as growth, and where runs ask several
    questions.
    """
    runs = Path(__file__).parents[2] / "approved" / "runs"
    page = tmp_path / "page" / "found.html"
    page.parent.mkdir()
    write_page(open_report([runs / name for name in names]), page)
    assert [path.name for path in page.parent.iterdir()] == ["found.html"]
    text = unescape(page.read_text())
    assert 'href="found' not in text
    assert f'id="{section}"' in text
    assert open_report([runs / names[0]]).questions[0] in text


def test_runs_of_one_scenario_are_called_by_their_days_and_stand_side_by_side(
    tmp_path: Path,
) -> None:
    first = shutil.copytree(
        ROOT / "results" / "reference" / "cpu-20261124-quickstart", tmp_path / "a"
    )
    other = shutil.copytree(first, tmp_path / "b")
    meta = (other / "run.json").read_text()
    (other / "run.json").write_text(meta.replace('"2026-11-24T', '"2026-11-28T'))
    report = open_report([first, other])
    assert [*report.titles.values()] == ["24\u00a0Nov", "28\u00a0Nov"]
    assert str(tmp_path) not in report.answer + str(report.regret.texts)
    (time,) = (card for card in report.cards if card.title == "Time")
    assert [one.title for one in time.picture.panels] == [
        f"{day}\u00a0Nov, h\u00a0=\u00a08" for day in (24, 28)
    ]
    assert [column.partition(",")[0] for column in time.decisions.upright.columns[1:3]] == [
        *report.titles.values()
    ]
