"""Wrong arguments are refused in Python's words, and functions become backends."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnbench
from attnbench.harness.files.errors import BadInput, option
from attnbench.harness.run.listener import Begun
from attnbench.harness.verbs.measured import named_backends
from attnbench.harness.verbs.measuring import How, worker_variables
from attnbench.harness.verbs.run import RunRequest

TINY = {
    "name": "tiny",
    "question": "?",
    "backends": ["fused"],
    "grid": {"seq_len": 32, "d_model": 16, "heads": 2},
}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"seed": "7"}, "seed: found '7'; wanted a whole number"),
        ({"seed": True}, "seed: found true; wanted a whole number"),
        ({"wait": 1}, "wait: found 1; wanted yes or no"),
        ({"only": ["a", 3]}, "only: found 3; wanted text"),
        ({"set": ["plan.budget_s"]}, "set='plan.budget_s': not a change; wanted set='field=value'"),
        ({"plann": "quick"}, "plann: no such option; did you mean plan?"),
        ({"seq_len": 64}, "seq_len: cannot be combined with a scenario"),
        ({"shard": "3"}, "shard"),
        ({"only": "nothing"}, "only='nothing': matches nothing in tiny"),
        ({"backends": []}, "backends: found a list of 0; wanted names of backends"),
        ({"backends": " ,"}, "backends: found ' ,'; wanted names of backends"),
        ({"tokens": "t.json"}, "tokens needs checkpoint='[NAME=]PATH'"),
        ({"set": {"limits.memory": 2}}, "set='limits.memory=2': limits.memory: not a field"),
        ({"changes": {"plan.budget_s": "long"}}, "plan.budget_s"),
        ({"wait_idle": "soon"}, "wait_idle"),
        ({"device_kind": "H100"}, "device_kind needs on='ray'"),
        ({"retry_failed": True}, "retry_failed needs resume='RUN'"),
        (
            {"resume": "latest"},
            "resume: continues the run as it was planned; leave out scenarios",
        ),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line_that_names_it(
    named: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        attnbench.run(TINY, runs=tmp_path / "results", **named)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert "--" not in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: attnbench.open_run(3), "run: found 3; wanted text or a path"),
        (lambda: attnbench.wall(seq_len=8), "seq_len: no such option"),
        (lambda: attnbench.wall(heads=8, tolerance="0"), "tolerance='0': wanted a percentage"),
        (lambda: attnbench.advise("gpt2", context="x"), "context='x': wanted a number of tokens"),
        (lambda: attnbench.merge([]), "run: none; wanted the folders of shards"),
        (lambda: attnbench.gate(".", "nowhere"), "nowhere: no such folder"),
        (lambda: attnbench.run("claims"), "scenarios; wanted one in each call"),
        (lambda: attnbench.run("quickstart", "results"), "2 arguments without a name"),
        (lambda: attnbench.run("quickstart", scenario="a"), "scenario: given twice"),
        (attnbench.run, "nothing to run; name a scenario"),
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


def test_remarks_name_arguments_too(capfd: Any) -> None:
    with How.python(RunRequest(), "attnbench.run()").options() as options:
        options.listener.begin(Begun(Path("x"), {}, remarks=[f"with {option('threads', 1)}"]))
        options.listener.remark(f"add {option('wait', True)}")
        options.listener.end()
    said = capfd.readouterr().err
    assert "with threads=1" in said
    assert "add wait=True" in said


def test_help_says_what_each_argument_is() -> None:
    about = attnbench.run.__doc__
    assert "\nthreads (a whole number from 1 to 4096): Torch threads on a CPU" in about
    assert "quiet=True" in str(inspect.signature(attnbench.run))


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
    names, own, folders = named_backends([found.attend, "sdpa", found.Kernels.attend])
    assert names == (
        "attend@decorated_attention",
        "sdpa",
        "Kernels.attend@decorated_attention",
    )
    assert own == {*names} - {"sdpa"}
    assert folders == (str(tmp_path),)
    assert named_backends(found.attend).names == names[:1]
    assert named_backends("fused,linformer[rank=8,16]").names == ("fused", "linformer[rank=8,16]")


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
            attnbench.run(backends=[one, "sdpa"], seq_len=64, heads=2, head_dim=16, runs=tmp_path)
        assert f"a worker cannot import it, since {why}; write it into a file" in str(caught.value)
        assert str(caught.value).count("\n") == 0
        assert not list(tmp_path.glob("2*"))


def test_a_function_permits_its_own_module_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module(tmp_path, "own_attention", ATTEND, monkeypatch)
    with pytest.raises(BadInput, match="workers must import and run other; add allow_import=True"):
        attnbench.run(
            backends=[found.attend, "attend@other"], seq_len=64, heads=2, head_dim=16, runs=tmp_path
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
