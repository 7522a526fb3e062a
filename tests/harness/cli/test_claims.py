"""attnbench run claims: what it measures, and the verdicts that show prints."""

from pathlib import Path

import pytest

from attnbench.harness.scenario import load
from attnbench.harness.scenario.names import claims
from attnbench.harness.studies import names as studies
from attnbench.reports.claims.ledger import STATEMENTS
from tests.conftest import command_line, ran

pytestmark = pytest.mark.long

ONE_LENGTH = ("claims_pruning",)
SMALL = "--backends fused --batch 1 --seq-len 32,48,64,96 --d-model 32 --heads 2 --device cpu"
QUICK = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"

OF_NO_CLAIM = {
    "linformer_projections",
    "trained_heads",
    "trained_head_width",
    "trained_roles",
    "gradient_distance",
    "generation",
    "attention_facts",
    "batch_invariance",
    "kv_quantization",
}
"""Studies of other scenarios."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> list[Path]:
    """Two runs, the second with studies."""
    out = tmp_path_factory.mktemp("claims")

    def run(*more: str) -> Path:
        command = command_line("run", *SMALL.split(), "--set", QUICK, "--out", out, *more)
        return Path(ran(command, check=True).stdout.strip())

    return [run(), run("--set", "studies=[head_copies, layer_properties]")]


@pytest.mark.nightly
def test_runs_are_judged_together(attnbench, measured):
    done = attnbench("show", *map(str, measured), "--sections", "claims", check=True)
    told = " ".join(done.stdout.split())
    assert f"Of {len(STATEMENTS)} claims " in told
    assert "C1 │ supported" in told or "C1 supported" in told


def test_the_scenarios_of_claims_hold_what_the_claims_need():
    scenarios = {name: load(name) for name in claims()}
    named = {name for scenario in scenarios.values() for name in scenario.studies}
    assert {name.partition(":")[0] for name in named} == set(studies()) - OF_NO_CLAIM
    backends = {
        name.partition(":")[0] for scenario in scenarios.values() for name in scenario.backends
    }
    sparse = {"sparse_local", "sparse_strided", "sparse_random"}
    assert {"naive", "fused", "sdpa", "linformer", "performer", "rnn"} | sparse <= backends
    for name, scenario in scenarios.items():
        for device in ("cpu", "cuda"):
            load(name, [f"device={device}"])  # as `attnbench run claims --device` asks for it
            groups, _ = scenario.problem_groups(device)
            lengths = {problem.seq_len for group in groups for problem in group}
            assert len(lengths) >= 5 or scenario.name in ONE_LENGTH
