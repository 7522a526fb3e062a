"""Which implementation over which lengths, to paste."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from attnbench.reports.advise.answer import Advice, advise
from attnbench.reports.advise.policy import NO_CHECKPOINT, policy, turns
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
    assert len([*turns(turned(tmp_path / "again", phases=("decode",)))]) == 1


@pytest.mark.parametrize(
    ("changes", "maker", "loaded"),
    [
        ({"phases": ("decode",)}, "AutoModelForCausalLM", NO_CHECKPOINT),
        ({"phases": ("prefill",), "checkpoint": 'own/"mine"'}, "AutoModel", 'own/"mine"'),
        (
            {"phases": ("prefill", "decode"), "model_type": "whisper", "checkpoint": "a/b"},
            "AutoModelForSpeechSeq2Seq",
            "a/b",
        ),
    ],
)
def test_the_lines_of_python_load_the_first_choice_and_switch_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes, maker, loaded
):
    calls: list[tuple[object, ...]] = []

    class Model:
        def set_attn_implementation(self, name: str) -> None:
            calls.append((name,))

        @classmethod
        def from_pretrained(cls, place: str, *, attn_implementation: str) -> "Model":
            calls.append((place, attn_implementation))
            return cls()

    transformers = ModuleType("transformers")
    setattr(transformers, maker, Model)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    exec("\n".join(policy(turned(tmp_path, **changes))["python"]), {})
    assert calls == [(loaded, "eager"), ("sdpa",)]


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
