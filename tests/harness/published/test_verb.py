"""`attnbench published`, and the names of its tables in show, report and compare."""

import pytest

from tests.conftest import ROOT

REFERENCE = str(ROOT / "results" / "reference")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["published"], "cudnn-h200-decode"),
        (["published", "cudnn-h200", "--backward", "2.5"], "53.3 %"),
        (["show", "published:cudnn-h200"], "42.7 %"),
        (["advise", "llama-3-8b", "--device", "cpu", "--published", "h200"], "heads 64 for 32"),
        (["published", "--model", "llama-3-8b", "--device", "h200"], "heads 64 for 32"),
        (
            ["compare", "published:flashattention-a100", "cpu-20261126-published"],
            "ratios only",
        ),
    ],
)
def test_published_tables_are_printed_as_somebody_elses(here, words, said):
    done = here(*words, "--runs", REFERENCE)
    assert done.returncode == 0
    assert said in done.stdout
    assert "not checked by us" in done.stdout


@pytest.mark.parametrize("verb", ["published", "report"])
def test_the_page_is_written(here, verb, tmp_path):
    page = tmp_path / "wall.html"
    names = ["published:cudnn-h200"] if verb == "report" else []
    done = here(verb, *names, "-o", str(page), "--runs", REFERENCE)
    assert done.returncode == 0
    assert done.stdout.strip() == str(page)
    assert "The wall on real GPUs" in page.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "published:h300"], "'h300': no published table; there are: cudnn-a100-decode"),
        (["published", "--model", "gpt2"], "--model: alone it asks nothing"),
        (["published", "--model", "gpt2", "--device", "h300"], "no published table is of it"),
        (["published", "--backward", "3"], "--backward '3': "),
        (["compare", "published:cudnn-h200"], "wanted a run of yours"),
        (
            ["compare", "published:cudnn-h200", "h200-20261126-quickstart"],
            "no case of the same shape, dtype and passes; measure some with `attnbench run",
        ),
        (["compare", "published:cudnn-h200", "x", "--gate", "latency: 5%"], "--gate: for runs"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(here, words, said):
    done = here(*words, *(["--runs", REFERENCE] if words[0] != "published" else []))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
