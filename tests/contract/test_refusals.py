"""Bad input is refused before anything starts: one line for each mistake, with its place and what
was meant; exit code 2, and nothing is written.
"""

import json
import shlex
from pathlib import Path

import pytest

from tests.contract.conftest import Attnbench
from tests.contract.reading import QUICKSTART, python

GOOD = {
    "name": "mine",
    "question": "What?",
    "backends": "[naive, fused]",
    "grid": "{seq_len: 512, d_model: 512, heads: 8}",
}
# What replaces or follows the fields above; line and column; words that the refusal has.
BAD: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    ({"dtpe": "fp32"}, "5:1", ("dtpe", "did you mean dtype?")),
    ({"grid": "{seq_len: 512, head: 8}"}, "4:22", ("did you mean grid.heads?",)),
    ({"grid": "{seq_len: 512, zzz: 8}"}, "4:22", ("grid.zzz", "seq_len")),
    ({"include": "../x"}, "5:1", ("include",)),
    ({"limits": "{memory: 1}"}, "5:10", ("did you mean limits.memory_gib?",)),
    ({"cases": "[{seq_length: 1k}]"}, "5:10", ("did you mean cases[0].seq_len?",)),
    ({"cases": "[{seq_len: 1, kv_seq_len: 4k, prefix: -1}]"}, "5:46", ("found -1",)),
    ({"cases": "{heads: 3}"}, "5:8", ("wanted a list",)),
    ({"cases": "[{heads: 4}, {heads: 7}]"}, "5:29", ("cases[1].heads", "512")),
    ({"question": ""}, "2:1", ("question",)),
    ({"question": '"  "'}, "2:11", ("question",)),
    ({"question": '"a\\u202eb"'}, "2:11", ("U+202E",)),
    ({"description": '"\\e[31m"'}, "5:14", ("U+001B",)),
    ({'"\\e[31mgrid"': "1"}, "5:1", ("did you mean grid?",)),
    ({"name": "Mine!"}, "1:7", ("name", "lowercase")),
    ({"grid": "{seq_len: 512, heads: 8}"}, "4:7", ("grid.d_model", "missing")),
    ({"grid": "{seq_len: 512, d_model: 512, cuda: {heads: 8}}"}, "4:7", ("missing for cpu",)),
    ({"grid": "{seq_len: 512, N: 1k, d_model: 512, heads: 8}"}, "4:22", ("grid.N",)),
    ({"grid": "3"}, "4:7", ("found 3", "wanted a mapping")),
    ({"grid": ""}, "4:1", ("grid", "wanted a mapping")),
    ({"grid": "{batch: [1, '4'], seq_len: 512, d_model: 512, heads: 8}"}, "4:19", ("batch[1]",)),
    ({"grid": "{seq_len: 0, d_model: 512, heads: 8}"}, "4:17", ("grid.seq_len", "found 0")),
    ({"grid": "{seq_len: 1, d_model: 512, heads: [8, 3]}"}, "4:45", ("grid.heads[1]", "512")),
    ({"grid": "{N: 1, d_model: 512, h: 3}"}, "4:31", ("grid.heads", "not a multiple")),
    ({"grid": "{N: 1, d_model: 512, h: 8, kv_heads: 3}"}, "4:44", ("grid.kv_heads", "(3)")),
    ({"grid": "{lengths: [2k, q0], d_model: 512, heads: 8}"}, "4:22", ("'q0'",)),
    ({"grid": "{lengths: [], d_model: 8, heads: 8}"}, "4:17", ("empty list",)),
    ({"backends": "[naive, fussed]"}, "3:19", ("backends[1]", "did you mean fused?")),
    ({"backends": "os.system"}, "3:11", ("no backend 'os.system'", "naive", "sdpa")),
    ({"backends": "[]"}, "3:11", ("backends", "at least one")),
    ({"backends": "[naive, naive]"}, "3:19", ("given twice",)),
    ({"baseline": "sdpa"}, "5:11", ("baseline", "wanted", "naive")),
    ({"dtype": "fp23"}, "5:8", ("did you mean fp32?",)),
    ({"measure": "[latence]"}, "5:11", ("did you mean latency?",)),
    ({"studies": "score_scales"}, "5:10", ("did you mean score_scale?",)),
    ({"device": "tpu"}, "5:9", ("found 'tpu'", "cuda")),
    ({"causal": "yes"}, "5:9", ("wanted true or false",)),
    ({"causal_align": "top_left"}, "5:15", ("set causal: true",)),
    ({"find_wall": "1"}, "5:12", ("wanted true or false",)),
    ({"plan": "quik"}, "5:7", ("did you mean quick?",)),
    ({"plan": "{like: quick, max_blocks: 2}"}, "5:7", ("max_blocks (2)",)),
    ({"plan": "{processes: 1.5}"}, "5:19", ("plan.processes", "found 1.5")),
    ({"limits": "{timeout_s: '3'}"}, "5:21", ("limits.timeout_s", "wanted a number")),
    ({"grid": "{seq_len: [512, d_model: 8"}, "5:1", ()),
    ({"name ": "again"}, "5:1", ("name",)),
]
ALL = """
import json, sys
import attnbench
refused = {}
for name in sys.argv[1:]:
    try:
        attnbench.run(name)
    except attnbench.BadInput as error:
        refused[name] = str(error)
    except BaseException as error:
        refused[name] = repr(error)
print(json.dumps(refused))
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which all files above were refused, one after the other, and what was said."""
    folder = tmp_path_factory.mktemp("bad")
    names = []
    for number, (change, _, _) in enumerate(BAD):
        fields = {**GOOD, **change}.items()
        names.append(f"bad{number}.yaml")
        text = "".join(f"{field}: {value}\n" for field, value in fields)
        (folder / names[-1]).write_text(text)
    return folder, json.loads(python(ALL, *names, cwd=folder))


@pytest.mark.parametrize("number", range(len(BAD)), ids=lambda n: f"{n}-{next(iter(BAD[n][0]))}")
def test_a_mistake_in_a_scenario_is_refused_at_its_place(
    number: int, refused: tuple[Path, dict[str, str]]
) -> None:
    _, place, words = BAD[number]
    said = refused[1][f"bad{number}.yaml"]
    lines = [line for line in said.splitlines() if line.startswith(f"bad{number}.yaml:{place}: ")]
    assert lines, said
    assert all(word in lines[0] for word in words), said


def test_what_is_refused_leaves_nothing_behind(refused: tuple[Path, dict[str, str]]) -> None:
    folder, said = refused
    assert {path.name for path in folder.iterdir()} == set(said)
    assert len(said) == len(BAD)


def test_all_mistakes_of_a_file_are_told_at_once_with_exit_code_2(attnbench: Attnbench) -> None:
    Path("bad.yaml").write_text(
        "name: x\nquestion: What?\nbackends: [fused, spda]\n"
        "grid: {seq_len: 64, d_model: 32, head: 2}\nplan: {like: quik}\n"
    )
    done = attnbench("run", "bad.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    first, second, third = done.stderr.splitlines()
    assert "bad.yaml:3:19: " in first
    assert "did you mean sdpa?" in first
    assert "bad.yaml:4:34: " in second
    assert "did you mean grid.heads?" in second
    assert "bad.yaml:5:14: " in third
    assert "did you mean quick?" in third
    assert [path.name for path in Path().iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run quikstart", "did you mean quickstart?"),
        ("run quickstart --set grid.head=4", "did you mean grid.heads?"),
        ("sohw", "show"),
        ("advise lama-3-8b --device cpu", "did you mean llama-3-8b?"),
        (f"compare {QUICKSTART} --against fused --gate 'latncy: 5%'", "did you mean latency?"),
    ],
)
def test_a_wrong_word_on_the_command_line_is_one_line_and_exit_code_2(
    words: str, said: str, attnbench: Attnbench
) -> None:
    done = attnbench(*shlex.split(words))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert said in done.stderr
    assert not [*Path().iterdir()]
