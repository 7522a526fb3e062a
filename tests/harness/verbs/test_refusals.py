"""Bad input at the command line: its exit code, one line that names it, nothing written."""

import os
import shlex
from pathlib import Path

import pytest

from tests.made_runs import fake_run

GRID = "--backends fused --seq-len 64 --d-model 32 --heads 2"
WALL = "wall --backends fused --d-model 64 --heads 1"
HAS_GPU = os.path.exists("/dev/nvidiactl")  # noqa: PTH110
BUSY = "note: This machine is busy"  # told before whether there is such a device
ON_CPU = (pytest.mark.skipif(HAS_GPU, reason="there is a GPU"), pytest.mark.long)
# What is run, and what is named; RUN is a run.
BAD = [
    ("run", "nothing to run"),
    ("run --seq-len 32", "--backends"),
    ("run quickstart --heads 4", "--heads"),
    ("run --backends fussed --seq-len 64 --d-model 32 --heads 2", "did you mean fused"),
    ("run --backends sdap:flash --seq-len 64 --d-model 32 --heads 2", "did you mean sdpa:flash"),
    ("run --backends mine.py:attend --seq-len 64 --d-model 32 --heads 2", "mine:attend"),
    ("show latest -o cases.xlsx", "cases.xlsx"),
    ("show latest --open --all", "--all"),
    ("run --backends fused --seq-len 0", "--seq-len 0"),
    ("run --backends fused --seq-len 64 --d-model 30 --heads 4 --batch 1", "multiple of heads"),
    ("run --backends sdpa --seq-len 32 --heads 1,2 --head-dim 8", "2 numbers of heads"),
    ("run --backends sdpa --seq-len 32 --heads 2 --head-dim 8,16", "2 widths"),
    (f"run {GRID} --causal yes", "'yes'"),
    ("run --backends naive fused sdpa --heads 8", "--backends naive,fused,sdpa"),
    ("run --backends fused --seq-len 512 1k", "--seq-len 512,1k"),
    ("run quickstart --set plan", "="),
    ("run quickstart --timeout -1", "timeout_s"),
    ("run --plan", "--plan"),
    ("run memory_wall --resume latest", "--resume"),
    ("run --resume nothing", "no runs in"),
    ("run --resume nothing --backends fused", "--resume"),
    ("run quickstart --retry-failed", "--resume"),
    ("run --devise cpu", "--device"),
    ("run --\x1b[31m", r"--\x1b[31m"),
    ("run quickstart --out page.html", "-o FILE"),
    ("run quickstart --only ''", "--only"),
    ("run quickstart --only naive,sdpa", "--only 'naive' --only 'sdpa'"),
    ("wall llama-3-8b", "attnbench advise MODEL"),
    ("wall --backends fused --d-model 64", "--heads"),
    (f"{WALL} --memory-gib -1", "--memory-gib -1"),
    (f"{WALL} --causal --kv-seq-len 512", "causal_align"),
    (f"{WALL} --seq-len 512", "--seq-len"),
    ("report", "no runs in"),
    ("show nothing", "no runs in"),
    ("show latest --format xml", "there are: html, md"),
    ("show RUN --format csv --all", "--all"),
    ("export latest", "export"),
    ("run missing.yaml --dry-run", "missing.yaml"),
    ("quickstart", "attnbench run quickstart"),
    ("compre a b", "compre"),
    ("baseline save x", "baseline"),
    ("gate . nothing", "nothing: no such folder"),
    ("compare RUN", "wanted a second run to compare with"),
    ("compare RUN RUN --baseline fused", "both NEW and --against"),
    ("compare RUN --baseline fuse", "no backend 'fuse'"),
    ("compare RUN RUN --fail-on-undecided", "--gate"),
    ("compare RUN RUN --gate 'energy_per_call: 5%'", "energy_per_call"),
    ("compare RUN nowhere", "nowhere"),
    ("compare RUN baseline:none", "no such baseline"),
    ("compare RUN@old RUN@new", "@old"),
]
OTHER_CODES = [
    (4, "run quickstart --device gpu", "no cuda device"),
    (4, "list backends --device gpu", "no cuda device"),
    (4, "doctor --deep --device gpu", "no cuda device"),
    (5, "run quickstart --only naive --skip naive", "--only and --skip"),
]


@pytest.mark.parametrize(
    ("code", "words", "named"),
    [
        *((2, words, named) for words, named in BAD),
        *(pytest.param(*case, marks=ON_CPU) for case in OTHER_CODES),  # they start a worker
    ],
)
def test_what_cannot_be_done_is_one_line_that_names_it_and_leaves_nothing(
    here, tmp_path: Path, code: int, words: str, named: str
) -> None:
    if "RUN" in words:
        words = words.replace("RUN", str(fake_run(tmp_path, 1)))
    before = sorted(tmp_path.rglob("*"))
    done = here(*shlex.split(words))
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert named in " ".join(done.stderr.split())
    said = [line for line in done.stderr.splitlines() if not line.startswith(BUSY)]
    assert len(said) == 1
    assert sorted(tmp_path.rglob("*")) == before
