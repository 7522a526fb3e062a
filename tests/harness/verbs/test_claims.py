"""attnbench run claims: what it measures, and the verdicts that show prints."""

import pytest

from attnbench.harness.scenario import load, read_change
from attnbench.harness.scenario.names import claims

pytestmark = pytest.mark.long

ONE_LENGTH = ("claims_pruning",)


def test_the_scenarios_of_claims_hold_what_the_claims_need():
    scenarios = {name: load(name) for name in claims()}
    backends = {
        name.partition(":")[0] for scenario in scenarios.values() for name in scenario.backends
    }
    sparse = {"sparse_local", "sparse_strided", "sparse_random"}
    assert {"naive", "fused", "sdpa", "linformer", "performer", "rnn"} | sparse <= backends
    for name, scenario in scenarios.items():
        for device in ("cpu", "cuda"):
            load(
                name, [read_change(f"device={device}")]
            )  # as `attnbench run claims --device` asks for it
            groups, _ = scenario.problem_groups(device)
            lengths = {problem.kv_seq_len for group in groups for problem in group}
            assert len(lengths) >= 5 or scenario.name in ONE_LENGTH
