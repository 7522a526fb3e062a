"""harness/api/arguments.py: wrong arguments are refused in Python's words, and functions become
backends.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnbench
from attnbench.harness.api.arguments import Axes, as_argument, named_backends
from attnbench.harness.api.measuring import translate, worker_variables
from attnbench.harness.files.errors import BadInput
from attnbench.harness.run.listener import Begun, Listener
from attnbench.impls.problem import AXES

TINY = {
    "name": "tiny",
    "question": "?",
    "backends": ["fused"],
    "grid": {"seq_len": 32, "d_model": 16, "heads": 2},
}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"seed": "a"}, "seed: found 'a'; wanted int; see help(attnbench.run)"),
        ({"seed": True}, "seed: found true; wanted int;"),
        ({"wait": 1}, "wait: found 1; wanted bool;"),
        ({"threads": "4"}, "threads: found '4'; wanted int | None;"),
        ({"only": 3}, "only: found 3; wanted str | Sequence[str];"),
        ({"only": ["a", 3]}, "only: found a list of 2; wanted str | Sequence[str];"),
        ({"memory_gib": "2"}, "memory_gib: found '2'; wanted float | None;"),
        ({"changes": ["plan.budget_s=2"]}, "changes: found a list of 1; wanted Mapping[str, Any]"),
        ({"device": "tpu"}, "device: found 'tpu'; wanted Literal['auto', 'cpu', 'cuda'] | None;"),
        ({"on": "slurm"}, "on: found 'slurm'; wanted Literal['ray'] | None;"),
        (
            {"on_row": "print"},
            "on_row: found 'print'; wanted Callable[[Mapping[str, Any]], object]",
        ),
        ({"plann": "quick"}, "plann: no such argument; did you mean plan?"),
        ({"seq_len": 64}, "seq_len: cannot be combined with a scenario"),
        ({"shard": "3"}, "shard: "),
        ({"only": "nothing"}, "only: 'nothing': matches nothing in tiny"),
        ({"tokens": "t.json"}, "tokens: belong to checkpoints; give the model too"),
        ({"changes": {"limits.memory": 2}}, "limits.memory"),
        ({"changes": {"plan.budget_s": "long"}}, "plan.budget_s"),
        ({"wait_idle": "soon"}, "wait_idle: 'soon': wanted a time, such as 90s or 10m"),
        ({"threads": 0}, "threads: found 0; wanted 1 to 4096"),
        ({"device_kind": "H100"}, "address and device_kind belong to on"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line_that_names_it(
    named: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        attnbench.run(TINY, out=tmp_path / "results", **named)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert "--" not in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: attnbench.open_run(3),
            "name: found 3; wanted str | Path; see help(attnbench.open",
        ),
        (lambda: attnbench.wall(seq_len=8), "seq_len: no such argument"),
        (lambda: attnbench.wall(heads=8, tolerance_ratio="1%"), "tolerance_ratio: found '1%'"),
        (lambda: attnbench.advise("gpt2", batch=0), "batch: found 0; wanted 1 or more"),
        (lambda: attnbench.advise("gpt2", context="x"), "context: 'x': wanted a number of tokens"),
        (lambda: attnbench.advise("gpt2", memory_gib=-1), "memory_gib: -1: wanted a number of GiB"),
        (lambda: attnbench.merge([]), "runs: none; wanted the folders of shards"),
        (lambda: attnbench.merge("one"), "runs: found 'one'; wanted Sequence[str | Path]"),
        (lambda: attnbench.gate(".", "nowhere"), "nowhere: no such folder"),
        (lambda: attnbench.gate(".", turns=0), "turns: found 0; wanted 1 or more"),
        (lambda: attnbench.doctor(deep="yes"), "deep: found 'yes'; wanted bool"),
        (attnbench.run, "scenario: nothing to run; wanted a scenario"),
    ],
)
def test_so_is_one_of_the_other_functions(
    call: Callable[[], object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        call()
    assert said in str(caught.value)
    assert "--" not in str(caught.value)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            "another run is measuring on this cpu; wait for it to end, or add --wait",
            "another run is measuring on this cpu; wait for it to end, or add wait=True",
        ),
        (
            "no cuda device: none; run with --device cpu, or see attnbench doctor",
            'no cuda device: none; run with device="cpu", or see attnbench doctor',
        ),
        (
            "x: 600 cases; raise the limit with --set limits.max_cases=600",
            'x: 600 cases; raise the limit with changes={"limits.max_cases": 600}',
        ),
        ("raise it with --timeout, or give less", "raise it with timeout_s, or give less"),
        ("start a new run, or add --force", "start a new run, or add force=True"),
        ("choose another with --runs DIR", "choose another with out DIR"),
        ("Ctrl-C, then --wait-idle 10m waits", "Ctrl-C, then wait_idle 10m waits"),
        ("--memory-gib 0: wanted more", "memory_gib: 0: wanted more"),
        ("again: attnbench run --resume x --wait", "again: attnbench run --resume x --wait"),
        (
            "measure as `attnbench run --shard 1/2`, --wait",
            "measure as `attnbench run --shard 1/2`, wait=True",
        ),
        ("give --checkpoint a=PATH --checkpoint b=PATH", "give checkpoints={'a': PATH, 'b': PATH}"),
    ],
)
def test_options_are_called_as_arguments_are_and_commands_stay(problem: str, said: str) -> None:
    assert as_argument(problem) == said
    assert as_argument(said) == said


def test_remarks_name_arguments_too() -> None:
    heard: list[str] = []

    class Hears(Listener):
        def begin(self, run: Begun) -> None:
            heard.extend(run.remarks)

        def remark(self, text: str) -> None:
            heard.append(text)

    listener = Hears()
    translate(listener)
    listener.begin(Begun(Path(), {}, remarks=["with --threads 1"]))
    listener.remark("add --wait")
    assert heard == ["with threads=1", "add wait=True"]


def test_shapes_are_the_axes_of_a_problem() -> None:
    others = {"head_dim", "model", "phase", "queries", "tp", "baseline"}
    assert set(Axes.__annotations__) == {*AXES, *others}


# ---- functions -----------------------------------------------------------------------------------


def module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Written, and imported from there."""
    (folder / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return __import__(name)


ATTEND = "def attend(q, k, v, *, causal, scale):\n    return v\n"
DECORATED = f"""
import functools
def twice(function):
    @functools.wraps(function)
    def inner(*given, **named):
        return function(*given, **named)
    return inner
@twice
{ATTEND}
class Kernels:
    @staticmethod
    {ATTEND.replace("    ", "        ")}
alias = lambda q, k, v, *, causal, scale: v
"""


def test_a_function_is_named_as_rows_name_it_and_its_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module(tmp_path, "decorated_attention", DECORATED, monkeypatch)
    names, folders = named_backends([found.attend, "sdpa", found.Kernels.attend])
    assert names == [
        "attend@decorated_attention",
        "sdpa",
        "Kernels.attend@decorated_attention",
    ]
    assert set(folders.values()) == {str(tmp_path)}
    assert named_backends(found.attend)[0] == names[:1]
    assert named_backends("fused,linformer[rank=8,16]")[0] == ["fused", "linformer[rank=8,16]"]


def test_a_function_that_no_worker_could_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module(tmp_path, "refused_attention", DECORATED, monkeypatch)

    def nested(q: Any, k: Any, v: Any, *, causal: bool, scale: float) -> Any:
        return v

    of_notebook = functools.wraps(found.attend)(lambda *given: given)
    of_notebook.__module__ = "__main__"
    for one, why in (
        (found.alias, "a lambda has no name there"),
        (nested, "it is defined in another function"),
        (of_notebook, "it is defined in a notebook, a script or a shell"),
        (functools.partial(found.attend), "no module has it under its name"),
        (functools.wraps(found.attend)(lambda *given: given), "no module has it under its name"),
    ):
        with pytest.raises(BadInput) as caught:
            attnbench.run(backends=[one, "sdpa"], seq_len=64, heads=2, head_dim=16, out=tmp_path)
        assert f"a worker cannot import it, since {why}; write it into a file" in str(caught.value)
        assert str(caught.value).count("\n") == 0
        assert not list(tmp_path.glob("2*"))


def test_a_function_permits_its_own_module_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module(tmp_path, "own_attention", ATTEND, monkeypatch)
    with pytest.raises(BadInput, match="workers import and run other; add allow_import=True"):
        attnbench.run(
            backends=[found.attend, "attend@other"], seq_len=64, heads=2, head_dim=16, out=tmp_path
        )


def test_workers_start_with_the_variables_and_they_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("PYTHONPATH", "/a")
    packages = next(one for one in sys.path if one.endswith("site-packages"))
    with worker_variables(2, [str(tmp_path), packages, str(Path.cwd())]):
        assert os.environ["OMP_NUM_THREADS"] == "2"
        assert os.environ["PYTHONPATH"] == f"/a{os.pathsep}{tmp_path}"
    assert (os.environ["OMP_NUM_THREADS"], os.environ["PYTHONPATH"]) == ("7", "/a")
    monkeypatch.delenv("PYTHONPATH")
    with worker_variables(None, [str(tmp_path)]):
        assert os.environ["PYTHONPATH"] == str(tmp_path)
    assert "PYTHONPATH" not in os.environ
