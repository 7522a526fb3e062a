"""Which implementation over which lengths, to paste."""

from pathlib import Path

from attnbench.reports.advise.answer import Advice, advise
from attnbench.reports.advise.policy import policy, turns
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import EAGER, FLEX, SDPA, inquiry, measured, rows_of

BOTH = {"implementations": (EAGER, SDPA), "contexts": (2048,)}
SHORT, LONG = (256, 512), (1024, 2048)


def turned(folder: Path, **asked: object) -> Advice:
    """Eager is faster at short lengths, sdpa at long ones."""
    question = inquiry(**{**BOTH, **asked})
    folders = (
        measured(folder / "short", question, SHORT, {"hf:sdpa": {"speed": 8.0}}),
        measured(folder / "long", question, LONG, {"hf:eager": {"speed": 8.0}}),
    )
    return advise(question, rows_of(question, *folders))


def test_ranges_end_where_the_choice_turns_and_lines_of_python_switch_there(tmp_path: Path):
    found = policy(turned(tmp_path, phases=("decode",)))
    assert [
        (one["from_tokens"], one["to_tokens"], one["attn_implementation"], one["measured_tokens"])
        for one in found["ranges"]
    ] == [(1, 1023, "eager", [256, 512]), (1024, 2048, "sdpa", [1024, 2048])]
    assert all(one["confirmed"] for one in found["ranges"])
    first, model, switch = found["python"]
    assert first == "from transformers import AutoModelForCausalLM"
    assert 'from_pretrained("./mine", attn_implementation="eager")' in model
    assert switch.startswith('model.set_attn_implementation("sdpa")  # before decode of 1')
    for line in found["python"]:
        compile(line, "policy.py", "exec")
    assert list(turns(turned(tmp_path / "again", phases=("decode",)))) == [
        "In decode the choice turns between 512 and 1\u202f024 tokens, from eager to sdpa."
    ]


def test_a_length_at_which_something_is_not_measured_turns_no_choice(tmp_path: Path):
    question = inquiry(implementations=(EAGER, SDPA, FLEX), contexts=(2048,))
    folders = (
        measured(tmp_path / "a", question, (512, 1024), implementations=(EAGER, SDPA)),
        measured(tmp_path / "b", question, (2048,), {"hf:flex_attention": {"speed": 0.1}}),
    )
    (only,) = policy(advise(question, rows_of(question, *folders)))["ranges"]
    assert (only["from_tokens"], only["measured_tokens"]) == (1, [2048])
    assert only["attn_implementation"] == "flex_attention"


def test_what_is_not_decided_is_not_confirmed_and_turns_no_choice(tmp_path: Path):
    question = inquiry(**BOTH)
    rows = rows_of(question, measured(tmp_path, question, (*SHORT, *LONG)))
    (only,) = policy(advise(question, rows))["ranges"]
    assert (only["confirmed"], only["measured_tokens"]) == (False, [*SHORT, *LONG])


def test_vllm_has_an_option_only_for_what_it_runs_too(tmp_path: Path):
    names = {"implementations": (EAGER, FLEX), "contexts": (512,)}
    fast = {"hf:flex_attention": {"speed": 0.1}}
    for device, option in (("cpu", None), ("cuda", "--attention-backend FLEX_ATTENTION")):
        question = inquiry(**names)
        rows = rows_of(question, measured(tmp_path / device, question, (512,), fast))
        assert policy(advise(inquiry(**names, device=device), rows))["vllm"] == option


def test_without_times_there_is_no_policy():
    found = policy(advise(inquiry(), StoredRows()))
    assert (found["ranges"], found["python"], found["vllm"]) == ([], [], None)
