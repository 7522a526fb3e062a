"""Bad scenarios beyond those of tests/contract/test_refusals.py: each is refused at its place."""

from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_axes, load, read_change
from tests.counted_calls import calls

GOOD = {
    "name": "mine",
    "question": "What?",
    "backends": "[naive, fused]",
    "grid": "{seq_len: 512, d_model: 512, heads: 8}",
}
WANTED_NAME = "wanted a name of at most 64 lowercase letters, digits, _ and -, such as memory_wall"
WANTED_SIZE = "wanted a whole number of 1 or more, such as 512 or 1k"
NOT_WHOLE = "d_model (512) is not a multiple of heads"


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
        load("f.yaml", [*map(read_change, changes)])
    return str(caught.value)


def grid(text: str) -> dict[str, str]:
    return {"grid": f"{{{text}}}"}


WALL: dict[str, str | None] = {"find_wall": "true"}
# What is changed in GOOD, how the refusal begins, and what it says further on.
FIELDS: list[tuple[dict[str, str | None], str, str]] = [
    ({"question": None}, "1:1: question: missing; ", "Add question"),
    ({"backends": "flashattn"}, "3:11: ", "did you mean flex:flash, library:flash_attn_2, sdpa:fl"),
    ({"measure": "[latency, graphs]"}, "5:10: measure: ", "graphs needs the windows of"),
    (
        grid("lengths: [2k, 1k], seq_len: 512, d_model: 512, heads: 8"),
        "4:18: grid.lengths[0]: seq_len is 512, but lengths have 3072 tokens in all; ",
        "leave seq_len out",
    ),
    (
        grid("lengths: 'lognormal:mean=1k', d_model: 8, heads: 8"),
        "4:17: ",
        "wanted lognormal:count",
    ),
    (grid("lengths: 'file:none.txt', d_model: 8, heads: 8"), "4:17: ", "none.txt: no such file"),
    (WALL | grid("lengths: 2k, d_model: 8, heads: 8"), "4:17: ", "leave lengths out"),
    (WALL | grid("seq_len: 512, heads: 8"), "4:7: grid.d_model: missing; ", "add d_model"),
    (WALL | grid("d_model: 512") | {"cases": "[{N: 9, h: 1}]"}, "4:7: grid.heads: missing", ""),
    (WALL | grid("d_model: 510, heads: 8"), "4:29: grid.heads: d_model (510) is not a ", ""),
    (WALL | grid("d_model: 8, h: 8, causal: true, kv_seq_len: 9"), "4:34: ", "set causal_align"),
    ({"watch": "{N: [512, 65]}"}, "5:18: watch.seq_len[1]: ", "no problem has seq_len 65"),
    ({"watch": "{kv_heads: 2}"}, "5:19: watch.kv_heads: ", "kv_heads at its default"),
    (
        grid('batch: [1, "4"], seq_len: 512, d_model: 512, heads: 8'),
        "4:19: grid.batch[1]: found '4'; ",
        f"{WANTED_SIZE}, without quotes",
    ),
    (
        grid("seq_len: 1, d_model: 512, heads: 8, cuda: {kv_heads: 3}"),
        "4:61: grid.cuda.kv_heads: ",
        "must be a multiple of kv_heads (3)",
    ),
    (
        {**grid("seq_len: [1, 2], d_model: 512, heads: 8"), "cases": "[{heads: 4}]"},
        "5:9: cases[0]: seq_len is not given, ",
        "give seq_len in the case",
    ),
]


@pytest.mark.parametrize(("fields", "begins", "named"), FIELDS)
def test_a_wrong_field_is_named_with_its_place(
    fields: dict[str, str | None], begins: str, named: str
) -> None:
    message = refusal(text_with(**fields))
    assert message.startswith(f"f.yaml:{begins}")
    assert named in message


@pytest.mark.parametrize("text", ["", "# only words\n", "---\n", "[1]"])
def test_what_has_no_fields_is_no_scenario(text: str) -> None:
    begins = "f.yaml:1:1: found a list of 1;" if text == "[1]" else "f.yaml: scenario is empty;"
    assert refusal(text).startswith(begins)


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


BAD_NAMES = ["../../x", "/abs", "a/b", "CON", "con", "a" * 300, "-a", "a.", "😀", "<img>"]
BAD_NAMES += ['"=cmd()"', '"a\u202eb"', r'"\e[0m"', '""']


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
    assert load("f.yaml", [read_change("limits.max_cases=2")]).count("cpu") == 2
    assert refusal(text_with(), "limits.max_cases=1").startswith(
        "f.yaml:4:1: grid: 2 cases on cpu; wanted at most 1; "
    )


CHANGES = {
    "a.b": "not a change; wanted --set field=value",
    "=3": "not a change; wanted --set field=value",
    "limits.memory_gib=x": "limits.memory_gib: found 'x'; wanted a number",
    "limits.memory_gib=.inf": "found .inf; finite number required",
    "grid.N=[1,0]": f"grid.seq_len[1]: found 0; {WANTED_SIZE}",
    "name.x=3": "name has no fields of its own",
    "grid.cuda.h=3": f"grid.cuda.heads: {NOT_WHOLE}",
    "measure=[memory": "not valid YAML",
    "grid.seq_len=64,128": "grid.seq_len: found '64,128'",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_change_is_named_as_it_was_given(change: str) -> None:
    assert refusal(text_with(), change).startswith(f"--set {change}: {CHANGES[change]}")


FLAGS = [
    ({"backends": "mine:attend"}, "--backends mine:attend: no backend 'mine:attend'"),
    ({"heads": "8,3"}, f"--heads 8,3: {NOT_WHOLE}"),
    ({"seq_len": "512,x"}, f"--seq-len 512,x: found 'x'; {WANTED_SIZE}"),
    ({"baseline": "x"}, "--baseline x: found 'x'; wanted one of backends: naive"),
    ({"seq_len": "["}, "--seq-len [: not valid YAML"),
]


@pytest.mark.parametrize(("flags", "begins"), FLAGS)
def test_a_wrong_flag_is_named_as_it_was_given(flags: dict[str, str], begins: str) -> None:
    good = {"backends": "naive", "seq_len": "512", "d_model": "512", "heads": "8"}
    with pytest.raises(BadInput) as caught:
        from_axes(good | flags)
    assert str(caught.value).startswith(begins)


@pytest.mark.parametrize("words", ["<img onerror=alert(1)>", "</script>", "[red]", "=cmd()"])
def test_free_text_is_kept_as_it_is_for_others_to_show_inert(words: str) -> None:
    Path("f.yaml").write_text(text_with(question=f"'{words}'"), encoding="utf-8")
    assert load("f.yaml").question == words


@pytest.mark.parametrize(
    "changes",
    [("plan=quick", "plan=standard"), ("grid.N=[8]", "grid.seq_len=[9]"), ("name=a", "name=a")],
)
def test_a_field_that_two_changes_set_is_refused(changes: tuple[str, str]) -> None:
    said = refusal(text_with(), *changes)
    assert said.startswith(f"--set {changes[1]}: --set {changes[0]} already sets ")


def test_the_order_of_changes_does_not_count() -> None:
    texts = ("plan=quick", "plan.budget_s=0.3", "grid={d_model: 512}", "grid.heads=8")
    changes = [*map(read_change, texts)]
    Path("f.yaml").write_text(text_with(find_wall="true"), encoding="utf-8")
    assert load("f.yaml", changes) == load("f.yaml", changes[::-1])
    assert load("f.yaml", changes).plan.budget_s == 0.3
