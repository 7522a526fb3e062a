"""Whatever a scenario says, it is refused in a line, or its plan has every case once."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_mapping
from attnbench.harness.scenario.selection import Selection, select

SIZES = st.sampled_from([1, 2, 8, 16, 64, 0, -1, "1k", "x", None])
FEW = SIZES | st.lists(SIZES, max_size=3)
NAMES = st.sampled_from(["fused", "naive", "sdpa", "sdpa:math", "fusd", "", 3])
GRIDS = st.fixed_dictionaries(
    {"seq_len": FEW},
    optional={
        "heads": FEW,
        "kv_heads": FEW,
        "d_model": FEW,
        "batch": FEW,
        "causal": st.sampled_from([True, False, [True, False], "yes"]),
        "dtype": st.sampled_from(["fp32", ["fp32", "bf16"], "fp12"]),
        "scope": st.sampled_from(["core", ["core", "layer"], "block"]),
        "mask": st.sampled_from(["none", ["none", "padding"], "local"]),
        "window": FEW,
        "head": FEW,
    },
)
SCENARIOS = st.fixed_dictionaries(
    {
        "name": st.just("made_up"),
        "question": st.just("Which?"),
        "backends": st.lists(NAMES, max_size=3),
        "grid": GRIDS,
    },
    optional={
        "plan": st.sampled_from(["quick", "standard", {"like": "quick", "budget_s": 1}, "fast"]),
        "contrast": st.lists(st.sampled_from(["heads", "mask", "head"]), max_size=2),
        "limits": st.sampled_from([{"memory_gib": 0.5}, {"memory_gib": -1}, {"memory": 1}, []]),
    },
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(data=SCENARIOS)
def test_it_is_refused_in_a_line_or_expands_without_duplicates(data: dict[str, Any]) -> None:
    planned, refusal = [], ""
    try:
        scenario = from_mapping(data, "a test")
        planned = list(select(scenario, "cpu", Selection()).cases)
    except BadInput as bad:
        refusal = str(bad)
    assert all(line.isprintable() for line in refusal.splitlines())
    assert bool(planned) != bool(refusal)
    assert len({one.id for one in planned}) == len(set(planned)) == len(planned)
