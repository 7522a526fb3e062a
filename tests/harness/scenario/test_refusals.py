"""Bad scenarios: each is refused with exactly this message, at this place."""

from pathlib import Path

import pytest

from attnbench.harness.cases.axes import AXES
from attnbench.harness.files.errors import BadInput
from attnbench.harness.probes import measures, shared_measures
from attnbench.harness.scenario import Scenario, from_axes, load
from attnbench.harness.studies import names as study_names
from attnbench.impls import names
from tests.counted_calls import calls

GOOD = {
    "name": "mine",
    "question": "What?",
    "backends": "[naive, fused]",
    "grid": "{seq_len: 512, d_model: 512, heads: 8}",
}
THERE_ARE = f"there are: {', '.join(names())}"
STUDIES = f"there are: {', '.join(study_names())}"
*MEASURES, LAST_MEASURE = ("latency", "memory", "graphs", *measures())
WANTED_NAME = "wanted a name of at most 64 lowercase letters, digits, _ and -, such as memory_wall"
WANTED_SIZE = "wanted a whole number from 1 on, such as 512 or 1k"
SCENARIO_FIELDS = ", ".join(Scenario.model_fields)
GRID_FIELDS = ", ".join((*AXES, "cpu", "cuda"))


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def text_with(**fields: str | None) -> str:
    return "".join(
        f"{field}: {value}\n" for field, value in {**GOOD, **fields}.items() if value is not None
    )


def refusal(text: str, *changes: str) -> str:
    Path("f.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        load("f.yaml", changes)
    return str(caught.value)


def test_a_list_is_no_scenario() -> None:
    assert (
        refusal("[1]")
        == "f.yaml:1:1: found a list of 1; wanted a mapping of fields, such as `name: my_scenario`"
    )


FIELDS = {
    "misspelt": (
        {"dtpe": "fp32"},
        "f.yaml:5:1: dtpe: not a field of a scenario; did you mean dtype?",
    ),
    "misspelt axis": (
        {"grid": "{seq_len: 512, head: 8}"},
        "f.yaml:4:22: grid.head: not a field of a scenario; did you mean grid.heads?",
    ),
    "unknown axis": (
        {"grid": "{seq_len: 512, zzz: 8}"},
        f"f.yaml:4:22: grid.zzz: not a field of a scenario; there are: {GRID_FIELDS}",
    ),
    "another file": (
        {"include": "../../etc/passwd"},
        f"f.yaml:5:1: include: not a field of a scenario; there are: {SCENARIO_FIELDS}",
    ),
    "misspelt limit": (
        {"limits": "{memory: 1}"},
        "f.yaml:5:10: limits.memory: not a field of a scenario; did you mean limits.memory_gib?",
    ),
    "misspelt in a case": (
        {"cases": "[{seq_length: 1k}]"},
        (
            "f.yaml:5:10: cases[0].seq_length: not a field of a scenario; did you mean"
            " cases[0].seq_len?"
        ),
    ),
    "escape in a key": (
        {'"\\e[31mgrid"': "1"},
        "f.yaml:5:1: '\\x1b[31mgrid': not a field of a scenario; did you mean grid?",
    ),
    "missing": (
        {"question": None},
        (
            "f.yaml:1:1: question: missing; wanted: the question that the report answers, in plain"
            " words. Add question"
        ),
    ),
    "missing axis": (
        {"grid": "{seq_len: 512, heads: 8}"},
        "f.yaml:4:7: grid.d_model: missing; wanted seq_len, d_model and heads; add d_model",
    ),
    "missing on one device": (
        {"grid": "{seq_len: 512, d_model: 512, cuda: {heads: 8}}"},
        "f.yaml:4:7: grid.heads: missing for cpu; wanted seq_len, d_model and heads; add heads",
    ),
    "both names": (
        {"grid": "{seq_len: 512, N: 1k, d_model: 512, heads: 8}"},
        "f.yaml:4:22: grid.N: the same axis as seq_len; wanted it once; remove one",
    ),
    "no mapping": ({"grid": "3"}, "f.yaml:4:7: grid: found 3; wanted a mapping of fields"),
    "nothing": ({"grid": ""}, "f.yaml:4:1: grid: found nothing; wanted a mapping of fields"),
    "no list": ({"cases": "{heads: 3}"}, "f.yaml:5:8: cases: found a mapping of 1; wanted a list"),
    "backend": (
        {"backends": "[naive, fussed]"},
        f"f.yaml:3:19: backends[1]: no backend 'fussed'; did you mean fused? {THERE_ARE}",
    ),
    "import path": (
        {"backends": "os.system"},
        f"f.yaml:3:11: backends: no backend 'os.system'; {THERE_ARE}",
    ),
    "no backends": (
        {"backends": "[]"},
        "f.yaml:3:11: backends: found an empty list; wanted at least one value",
    ),
    "backend twice": (
        {"backends": "[naive, naive]"},
        "f.yaml:3:19: backends[1]: naive is given twice; remove one",
    ),
    "baseline": (
        {"baseline": "sdpa"},
        "f.yaml:5:11: baseline: found 'sdpa'; wanted one of backends: naive, fused",
    ),
    "dtype": (
        {"dtype": "fp23"},
        "f.yaml:5:8: dtype: found 'fp23'; did you mean fp32? wanted fp32, bf16 or fp16",
    ),
    "metric": (
        {"measure": "[latence]"},
        f"f.yaml:5:11: measure[0]: found 'latence'; did you mean latency? wanted"
        f" {', '.join(MEASURES)} or {LAST_MEASURE}",
    ),
    "study": (
        {"studies": "score_scales"},
        f"f.yaml:5:10: studies: no study 'score_scales'; did you mean score_scale? {STUDIES}",
    ),
    "graphs of nothing": (
        {"measure": "[latency, graphs]"},
        (
            f"f.yaml:5:10: measure: graphs needs the windows of {' or '.join(shared_measures())};"
            " add one of them"
        ),
    ),
    "watched value": (
        {"watch": "{N: [512, 65]}"},
        (
            "f.yaml:5:18: watch.seq_len[1]: no problem has seq_len 65; wanted one of 512; change or"
            " remove it"
        ),
    ),
    "watched axis": (
        {"watch": "{kv_heads: 2}"},
        (
            "f.yaml:5:19: watch.kv_heads: no problem has kv_heads 2; the scenario leaves kv_heads"
            " at its default; change or remove it"
        ),
    ),
    "device": ({"device": "tpu"}, "f.yaml:5:9: device: found 'tpu'; wanted auto, cpu or cuda"),
    "yes": ({"causal": "yes"}, "f.yaml:5:9: causal: found 'yes'; wanted true or false"),
    "plan": (
        {"plan": "quik"},
        "f.yaml:5:7: plan: found 'quik'; did you mean quick? wanted quick, standard or rigorous",
    ),
    "plan of blocks": (
        {"plan": "{like: quick, max_blocks: 3}"},
        (
            "f.yaml:5:7: plan: min_blocks (6) is larger than max_blocks (3); wanted at most"
            " max_blocks; set both"
        ),
    ),
    "several": (
        {"plan": "{processes: 1.5, budget_s: 0}"},
        (
            "f.yaml:5:19: plan.processes: found 1.5; wanted a whole number\n"
            "f.yaml:5:34: plan.budget_s: found 0; wanted a number greater than 0"
        ),
    ),
    "limit": (
        {"limits": "{timeout_s: '3'}"},
        "f.yaml:5:21: limits.timeout_s: found '3'; wanted a number",
    ),
    "question without words": (
        {"question": '"  "'},
        "f.yaml:2:11: question: found '  '; wanted a question in plain words",
    ),
    "escape in text": (
        {"description": '"\\e[31m"'},
        "f.yaml:5:14: description: found '\\x1b[31m'; wanted plain text without U+001B",
    ),
    "turned text": (
        {"question": '"a\\u202eb"'},
        "f.yaml:2:11: question: found 'a\\u202eb'; wanted plain text without U+202E",
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_wrong_field_is_named_with_its_place(case: str) -> None:
    fields, message = FIELDS[case]
    assert refusal(text_with(**fields)) == message


@pytest.mark.parametrize("value", ["0", "-1", "true", "1.0", "2kk", "", "{}"])
def test_a_size_is_a_whole_number_from_one_on(value: str) -> None:
    shown = {"": "nothing", "{}": "a mapping of 0", "2kk": "'2kk'"}.get(value, value)
    column = 3 if value == "" else 10
    message = f"f.yaml:7:{column}: grid.batch: found {shown}; {WANTED_SIZE}"
    assert (
        refusal(text_with(grid=f"\n  d_model: 512\n  heads: [8]\n  batch: {value}\n  seq_len: 512"))
        == message
    )


def test_a_huge_size_is_refused_and_a_large_one_is_not_allocated() -> None:
    text = text_with(grid="{seq_len: 2000000m, d_model: 512, heads: 8}")
    assert (
        refusal(text) == "f.yaml:4:17: grid.seq_len: found '2000000m'; wanted at most 1099511627776"
    )
    Path("f.yaml").write_text(
        text_with(grid="{seq_len: 1000m, d_model: 512, heads: 8}"), encoding="utf-8"
    )
    assert load("f.yaml").problem_groups("cpu")[0][0][0].seq_len == 1000 << 20


SHAPES = {
    "heads": (
        {"grid": "{seq_len: [1, 2], d_model: 512, heads: [8, 3]}"},
        (
            "f.yaml:4:50: grid.heads[1]: d_model (512) is not a multiple of heads (3); choose other"
            " sizes, or give d_k and d_v"
        ),
    ),
    "short name": (
        {"grid": "{N: 1, d_model: 512, h: 3}"},
        (
            "f.yaml:4:31: grid.heads: d_model (512) is not a multiple of heads (3); choose other"
            " sizes, or give d_k and d_v"
        ),
    ),
    "kv_heads": (
        {"grid": "{seq_len: 1, d_model: 512, heads: 8, cuda: {kv_heads: 3}}"},
        "f.yaml:4:61: grid.cuda.kv_heads: heads (8) must be a multiple of kv_heads (3)",
    ),
    "alignment": (
        {"causal_align": "top_left"},
        (
            "f.yaml:5:15: causal_align: causal_align without causal; set causal: true, or leave"
            " causal_align out"
        ),
    ),
    "case": (
        {"cases": "[{heads: 4}, {heads: 7}]"},
        (
            "f.yaml:5:29: cases[1].heads: d_model (512) is not a multiple of heads (7); choose"
            " other sizes, or give d_k and d_v"
        ),
    ),
    "case on a list": (
        {"grid": "{seq_len: [1, 2], d_model: 512, heads: 8}", "cases": "[{heads: 4}]"},
        (
            "f.yaml:5:9: cases[0]: seq_len is not given, and the grid has 2 values of it; wanted"
            " one; give seq_len in the case"
        ),
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_sizes_that_do_not_fit_together_are_named_where_one_of_them_stands(case: str) -> None:
    fields, message = SHAPES[case]
    assert refusal(text_with(**fields)) == message


BAD_NAMES = [
    "../../x",
    "/abs",
    "a/b",
    "CON",
    "con",
    "a" * 300,
    "-a",
    "a.",
    "😀",
    "<img>",
    '"=cmd()"',
    '"a\\u202eb"',
    '"\\e[0m"',
    '""',
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_harm_a_path_or_a_terminal_is_refused(name: str) -> None:
    message = refusal(text_with(name=name))
    assert message.startswith("f.yaml:1:7: name: found ")
    assert message.endswith(f"; {WANTED_NAME}")
    assert message.isprintable()
    assert len(message) < 200


def test_a_billion_combinations_are_counted_without_expanding_them() -> None:
    thousand = f"[{', '.join(str(size) for size in range(1, 1001))}]"
    text = text_with(
        grid=f"{{batch: {thousand}, seq_len: {thousand}, d_model: 512, heads: {thousand}}}",
        backends="naive",
    )
    messages: list[str] = []
    assert calls(lambda: messages.append(refusal(text))) < 3_000_000  # for reading 3000 numbers
    assert (
        messages[0] == "f.yaml:4:1: grid: 1000000000 cases on cpu; wanted at most 10000; "
        "give fewer values, or raise the limit with --set limits.max_cases=1000000000"
    )


def test_the_limit_of_cases_can_be_moved() -> None:
    Path("f.yaml").write_text(text_with(), encoding="utf-8")
    assert load("f.yaml", ["limits.max_cases=2"]).count("cpu") == 2
    assert refusal(text_with(), "limits.max_cases=1").startswith(
        "f.yaml:4:1: grid: 2 cases on cpu; wanted at most 1; "
    )


CHANGES = {
    "a.b": (
        "--set a.b: not a change; wanted --set field=value, for example --set limits.memory_gib=2"
    ),
    "=3": "--set =3: not a change; wanted --set field=value, for example --set limits.memory_gib=2",
    "grid.head=4": (
        "--set grid.head=4: grid.head: not a field of a scenario; did you mean grid.heads? there"
        f" are: {GRID_FIELDS}"
    ),
    "limits.memory_gib=x": (
        "--set limits.memory_gib=x: limits.memory_gib: found 'x'; wanted a number"
    ),
    "limits.memory_gib=.inf": "--set limits.memory_gib=.inf: found .inf; finite number required",
    "grid.N=[1,0]": f"--set grid.N=[1,0]: grid.seq_len[1]: found 0; {WANTED_SIZE}",
    "name.x=3": (
        "--set name.x=3: name has no fields of its own; wanted one value for all of it; use --set"
        " name=..."
    ),
    "grid.cuda.h=3": (
        "--set grid.cuda.h=3: grid.cuda.heads: d_model (512) is not a multiple of heads (3); choose"
        " other sizes, or give d_k and d_v"
    ),
    "measure=[memory": (
        "--set measure=[memory: not valid YAML: expected ',' or ']', but got '<stream end>' (while"
        " parsing a flow sequence)"
    ),
    "grid.seq_len=64,128": (
        "--set grid.seq_len=64,128: grid.seq_len: found '64,128'; wanted a whole number from 1 on,"
        " such as 512 or 1k; several values have brackets: [64,128]"
    ),
    "backends=nave": (
        f"--set backends=nave: backends: no backend 'nave'; did you mean naive? {THERE_ARE}"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_change_is_named_as_it_was_given(change: str) -> None:
    assert refusal(text_with(), change) == CHANGES[change]


FLAGS = {
    (
        "--backends mine:attend: no backend 'mine:attend'; a function of yours is attend@mine here,"
        f" or --backend mine:attend instead; {THERE_ARE}"
    ): {"backends": "mine:attend"},
    (
        "--heads 8,3: d_model (512) is not a multiple of heads (3); choose other"
        " sizes, or give d_k and d_v"
    ): {"heads": "8,3"},
    f"--seq-len 512,x: found 'x'; {WANTED_SIZE}": {"seq_len": "512,x"},
    "--baseline x: found 'x'; wanted one of backends: naive": {"baseline": "x"},
    (
        "--seq-len [: not valid YAML: expected ',' or ']', but got '<stream end>' (while parsing a"
        " flow sequence)"
    ): {"seq_len": "["},
}


@pytest.mark.parametrize("message", FLAGS)
def test_a_wrong_flag_is_named_as_it_was_given(message: str) -> None:
    with pytest.raises(BadInput) as caught:
        from_axes(
            {
                "backends": "naive",
                "seq_len": "512",
                "d_model": "512",
                "heads": "8",
                **FLAGS[message],
            }
        )
    assert str(caught.value) == message


def test_all_mistakes_are_named_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nquestion: why\nbackends: [naive, fussed]\n"
        "grid: {head: 2, seq_len: 0}\nplan: no\n"
    )
    with pytest.raises(BadInput) as caught:
        load(str(file))
    problems = (problem.removeprefix(f"{file}:") for problem in caught.value.problems)
    places = [problem.partition(": ")[0] for problem in problems]
    assert places == ["3:19", "4:8", "4:26", "5:7"]


@pytest.mark.parametrize("text", ["", "# only words\n", "---\n"])
def test_an_empty_scenario_is_called_so(text: str) -> None:
    assert (
        refusal(text) == "f.yaml: scenario is empty; wanted name, question, backends and grid; see"
        " scenarios/README.md"
    )


def test_a_size_in_quotes_is_text() -> None:
    text = text_with(grid='{batch: [1, "4"], seq_len: 512, d_model: 512, heads: 8}')
    assert refusal(text) == f"f.yaml:4:19: grid.batch[1]: found '4'; {WANTED_SIZE}, without quotes"


@pytest.mark.parametrize("words", ["<img onerror=alert(1)>", "</script>", "[red]", "=cmd()"])
def test_free_text_is_kept_as_it_is_for_others_to_show_inert(words: str) -> None:
    Path("f.yaml").write_text(text_with(question=f"'{words}'"), encoding="utf-8")
    assert load("f.yaml").question == words
