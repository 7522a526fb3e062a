"""The page as a whole: its policy, several runs on it, and reproducible bytes."""

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

from attnbench.reports.pages.html import write_page
from attnbench.reports.pages.report import open_report


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
