"""The page as a whole: its policy, several runs on it, and reproducible bytes."""

import re
import sys
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from attnbench.reports.pages.html import write_page
from attnbench.reports.pages.report import open_report
from tests.conftest import environment, ran
from tests.made_runs import quickstart


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


@pytest.mark.long
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    code = (
        "from tests.reports.rendering import page_of; import sys; from pathlib import Path;"
        f" print(page_of(Path({str(run)!r})))"
    )
    one, other = (
        ran([sys.executable, "-c", code], env=environment({"PYTHONHASHSEED": seed}), check=True)
        for seed in ("1", "2")
    )
    assert one.stdout == other.stdout
    assert len(one.stdout) > 100_000


def test_a_page_is_one_file_with_all_that_was_measured(tmp_path: Path) -> None:
    """Also what the run measured beside what it asks, such as growth, and where runs ask several
    questions.
    """
    runs = Path(__file__).parents[2] / "approved" / "runs"
    for number, names in enumerate((["studies"], ["growth", "block", "learning"])):
        page = tmp_path / str(number) / "found.html"
        page.parent.mkdir()
        write_page(open_report([runs / name for name in names]), page)
        assert [path.name for path in page.parent.iterdir()] == ["found.html"]
        text = unescape(page.read_text())
        assert 'href="found' not in text
        assert f'id="{"claims" if number == 0 else "growth"}"' in text
        assert open_report([runs / names[0]]).questions[0] in text
