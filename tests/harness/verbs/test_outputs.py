"""Where `-o` writes: files are replaced whole, everything else is written in place."""

import json
import os
import shlex
import subprocess
import threading
from pathlib import Path

import pytest

from tests.conftest import command_line, environment, ran
from tests.made_runs import quickstart, read_rows

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


# ---- when nobody can read it any more ------------------------------------------------------------

SMALL = shlex.split("--batch 1 --seq-len 64 --d-model 32 --heads 2 --device cpu --plan quick")
MEMORY = ("--set", "measure=[memory]")
DONE, LOST = 0, 7


def in_shell(
    folder: Path, redirection: str, *args: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    line = f"exec {shlex.join(command_line(*args))} {redirection}"
    return ran(["sh", "-c", line], cwd=folder, env=environment(env))


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirection", "exit_code", "said"),
    [
        (">&-", LOST, "error: stdout: Bad file descriptor; what was printed there is lost\n"),
        (
            ">/dev/full",
            LOST,
            "error: stdout: No space left on device; what was printed there is lost\n",
        ),
        ("2>&-", DONE, ""),
        ("2>/dev/full", DONE, ""),
        ("<&-", DONE, ""),
        (">&- 2>&- <&-", LOST, ""),
        (">/dev/full 2>/dev/full", LOST, ""),
    ],
)
def test_output_that_is_lost_is_said_once(
    tmp_path: Path, redirection: str, exit_code: int, said: str
) -> None:
    done = in_shell(tmp_path, redirection, "list", "scenarios")
    assert (done.returncode, done.stderr) == (exit_code, said)
    assert ("quickstart" in done.stdout) == (exit_code == DONE)


@pytest.mark.long
def test_a_refusal_keeps_its_exit_code(tmp_path: Path) -> None:
    for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-"):
        assert in_shell(tmp_path, redirection, "run", "no_such_scenario").returncode == 2


def test_a_reader_that_has_read_enough_is_no_news(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command_line("help", "all"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == LOST
    process.stderr.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirection", "exit_code"),
    [("--json | head -1", DONE), (">/dev/full 2>&1", LOST)],
)
def test_a_run_goes_on_and_keeps_its_rows(tmp_path: Path, redirection: str, exit_code: int) -> None:
    done = in_shell(tmp_path, redirection, "run", "--backends", "naive,sdpa", *SMALL, *MEMORY)
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    (run,) = tmp_path.glob("results/2*")
    assert [row["status"] for row in read_rows(run)] == ["ok"] * 2
