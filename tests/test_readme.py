"""What README and docs/backends.md show is so."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from attnbench import impls
from tests.conftest import ROOT
from tests.harness.run.small_runs import QUICK, axes
from tests.made_runs import read_rows

README = (ROOT / "README.md").read_text()
BACKENDS = (ROOT / "docs" / "backends.md").read_text()
COOKBOOK = (ROOT / "docs" / "cookbook.md").read_text()


def test_what_reading_results_needs_is_all_but_torch_and_the_driver():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[>=]", one)[0] for one in project["dependencies"]}
    named = re.search(r"`pip install (pandas .*?)`", COOKBOOK)
    assert named is not None
    brought = {"numpy", "typing_extensions"}  # by pandas and pydantic
    assert {*named[1].split()} == needed - {"torch", "nvidia-ml-py"} - brought


def test_the_readme_is_short_and_its_first_screen_has_a_picture_and_the_first_command():
    assert len(README.encode()) <= 8_000
    first = README[: README.index("## Start") + 400]
    assert first.index("](docs/wall.png)") < first.index("    make demo")


def test_the_layer_and_its_mask_work_as_shown():
    code = re.search(r"```python\n(import torch\nfrom attnbench.impls.*?)```", BACKENDS, re.DOTALL)
    shown = {}
    exec(code[1], shown)
    assert shown["y"].shape == (2, 10, 64)


@pytest.mark.long
def test_the_file_of_a_backend_works(attnbench, tmp_path):
    (tmp_path / "my_backends").mkdir()
    code = re.search(r"```python\n(# my_backends/mine.py\n.*?)```", BACKENDS, re.DOTALL)
    (tmp_path / "my_backends" / "mine.py").write_text(code[1])
    done = attnbench(
        *("run", *axes("mine,sdpa", scope="core,layer"), *QUICK),
        env={"ATTNBENCH_BACKENDS": "my_backends"},
        check=True,
    )
    rows = read_rows(Path(done.stdout.strip()))
    assert Counter(row["backend"] for row in rows) == {"mine": 2, "sdpa": 2}
    assert {row["status"] for row in rows} == {"ok"}


FLASH_ATTN = """
from torch.nn.functional import scaled_dot_product_attention

def flash_attn_func(q, k, v, softmax_scale, causal):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    attended = scaled_dot_product_attention(q, k, v, is_causal=causal, scale=softmax_scale)
    return attended.transpose(1, 2)
"""


@pytest.mark.long
@pytest.mark.parametrize("flags", [("--causal",), ("--scope", "layer")])
def test_functions_are_backends(attnbench, tmp_path, flags):
    (tmp_path / "flash_attn.py").write_text(FLASH_ATTN)  # stands for the package, which needs a GPU
    for name in ("mha", "my_flash"):
        code = re.search(rf"```python\n(# {name}.py\n.*?)```", README + BACKENDS, re.DOTALL)
        (tmp_path / f"{name}.py").write_text(code[1])
    shown = re.search(r"`attnbench run quickstart --backends (mha:attend,\S*)`", README)
    done = attnbench("run", *axes(f"{shown[1]},my_flash:attend"), *flags, *QUICK, check=True)
    rows = read_rows(Path(done.stdout.strip()))
    assert {row["backend"]: row["status"] for row in rows} == {
        "attend@mha": "ok",
        "attend@my_flash": "ok",
        "fused": "ok",
        "sdpa": "ok",
    }


def test_the_backends_of_the_table_exist(monkeypatch):
    """The other direction is left to the author: one new file is enough for a backend to work."""
    monkeypatch.delenv("ATTNBENCH_BACKENDS", raising=False)
    table = re.search(r"\n(\| name \|.*?)\n\n", BACKENDS, re.DOTALL)
    named = re.findall(r"`([a-z_0-9:]+)`", " ".join(re.findall(r"^\|([^|]*)\|", table[1], re.M)))
    assert {"naive", "fused", "sdpa", "triton"} < set(named) <= set(impls.names())


def test_the_six_questions_have_short_commands():
    table = README.partition("## Six questions")[2].partition("\n### ")[0]
    commands = re.findall(r"^\|[^|]*\| `(attnbench [^`]*)` \|", table, re.M)
    assert len(commands) == 6
    assert [one for one in commands if len(one) > 60] == []


def test_the_pages_for_users_are_fourteen_and_short():
    docs = ROOT / "docs"
    for_developers = {docs / "extending.md", docs / "release.md"}
    pages = {*docs.glob("*.md")} - for_developers
    assert len(pages) == 14
    pages |= {*docs.glob("internals/*.md")}
    assert sum(len(page.read_bytes()) for page in pages) <= 200_000


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*", "docs/**/*", "results/*", "scenarios/*", "tests/example_backend/*")
    for path in ROOT.glob(f"{pattern}.md")
)


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page):
    """But what `make site` makes, to which tests/test_site.py looks."""
    here = ROOT / page
    for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", here.read_text()):
        if re.match(r"gallery/|cli\.md", link):
            continue
        there = here.parent / link if link else here
        assert there.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors(there), f"{page}: {link}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_paths_of_code_exist(page):
    recipes = (ROOT / "docs" / "extending.md").read_text()
    examples = {*re.findall(r"^    # (\w+/\S+)$", recipes, re.M)}
    found = re.findall(
        r"(?<![\w/.])((?:harness|impls|reports|tests)/[\w/]+\.\w+)", (ROOT / page).read_text()
    )
    assert [path for path in found if path not in examples and not (ROOT / path).exists()] == []
