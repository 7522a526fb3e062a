"""Where `-o` writes: files are replaced whole, everything else is written in place."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.conftest import command_line, environment
from tests.made_runs import quickstart

FORMATS = ("html", "md", "csv", "parquet")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quickstart(tmp_path_factory.mktemp("good"), (128,))


@pytest.mark.parametrize("form", FORMATS)
def test_a_pipe_gets_the_whole_output_and_stays(
    form: str, here, tmp_path: Path, good: Path
) -> None:
    words = ("show", "--format", form, good)
    assert here(*words, "-o", tmp_path / "file").stdout.endswith("/file\n")
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = here(*words, "-o", pipe)
    reader.join(120)
    assert (done.returncode, done.stdout) == (0, "")
    assert got == [(tmp_path / "file").read_bytes()]
    assert pipe.is_fifo()


@pytest.mark.long
def test_stdout_by_its_path_has_the_output_and_nothing_else(tmp_path: Path, good: Path) -> None:
    def said(path: str) -> bytes:
        return subprocess.run(
            [*command_line("show", good, "--format", "csv", "-o"), path],
            env=environment(),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            check=True,
            timeout=120,
        ).stdout

    assert said("/dev/stdout") == said("-")
    assert said("/dev/stdout").startswith(b"case,")
    assert not list(tmp_path.iterdir())
    assert Path("/dev/stdout").is_symlink()


def test_a_link_in_a_runs_folder_is_replaced_and_one_that_the_user_names_is_kept(
    here, tmp_path: Path, good: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("content")
    (good / "report.html").symlink_to(victim)
    assert here("show", good, "--format", "html").returncode == 0
    assert victim.read_text() == "content"
    assert not (good / "report.html").is_symlink()
    (tmp_path / "page").symlink_to(victim)
    assert here("show", good, "--format", "html", "-o", tmp_path / "page").returncode == 0
    assert victim.read_bytes() == (good / "report.html").read_bytes()
    assert (tmp_path / "page").is_symlink()


def test_show_writes_what_is_asked_for_by_format_or_by_the_name_of_the_file(
    here, good: Path
) -> None:
    for name in ("cases.csv", "cases.json"):
        assert here("show", good, "-o", name).stdout == f"{name}\n"
    json.loads(Path("cases.json").read_text())
    assert here("show", good, "--format", "csv").stdout == Path("cases.csv").read_text()
    assert here("show", good, "-o", "b.json", "--format", "csv").returncode == 0
    assert Path("b.json").read_bytes() == Path("cases.csv").read_bytes()
    done = here("show", good, "-o", "a.xlsx")
    assert (done.returncode, "--output 'a.xlsx': unknown format" in done.stderr) == (2, True)
    assert here("show", good, "--format", "md").stdout.startswith("# attnbench: ")
    page = here("show", good, "--format", "html").stdout.strip()
    assert page == str(good / "report.html")
    assert here("show", good, "-o", "page.html").stdout == "page.html\n"
    assert Path("page.html").read_bytes() == Path(page).read_bytes()
