"""attnbench claims: what it measures, what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest

from attnbench.harness.scenario import load
from attnbench.harness.scenario.names import claims
from attnbench.harness.studies import names as studies
from attnbench.reports.claims.ledger import STATEMENTS
from tests.conftest import command_line, ran

pytestmark = pytest.mark.long

ONE_LENGTH = ("claims_generation", "claims_pruning", "claims_quality")
SMALL = "--backends fused --batch 1 --seq-len 32,48,64,96 --d-model 32 --heads 2 --device cpu"
QUICK = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"

OF_NO_CLAIM = {
    "linformer_projections",
    "trained_projections",
    "trained_head_width",
    "trained_roles",
    "batch_invariance",
    "kv_quantization",
}
"""Studies of the scenarios linear, what_heads_learn and kv_cache."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> list[Path]:
    """Two runs, the second with studies."""
    out = tmp_path_factory.mktemp("claims")

    def run(*more: str) -> Path:
        command = command_line("run", *SMALL.split(), "--set", QUICK, "--out", out, *more)
        return Path(ran(command, check=True).stdout.strip())

    return [run(), run("--set", "studies=[head_copies, layer_properties]")]


def test_runs_are_judged_together(attnbench, measured):
    done = attnbench(
        "claims", *(part for run in measured for part in ("--run", str(run))), "--json", check=True
    )
    found = {claim["id"]: claim for claim in json.loads(done.stdout)["claims"]}
    assert list(found) == list(STATEMENTS)
    assert found["C1"]["verdict"] == "supported"
    assert len(found["C1"]["parts"]) == 2
    assert {name: found[name]["verdict"] for name in ("C6", "C7", "C8", "C9")} == {
        "C6": "depends", "C7": "supported", "C8": "supported", "C9": "refuted",
    }  # fmt: skip
    assert all(bool(claim["needs"]) == (claim["verdict"] == "not run") for claim in found.values())


def test_what_contradicts_itself_is_refused(attnbench, measured):
    done = attnbench("claims", "--run", str(measured[0]), "--plan", "quick")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "error: --run measures nothing; leave out --device, --plan and --timeout\n"
    )


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
            load(name, [f"device={device}"])  # as `attnbench claims --device` asks for it
            groups, _ = scenario.problem_groups(device)
            lengths = {problem.seq_len for group in groups for problem in group}
            assert len(lengths) >= 5 or scenario.name in ONE_LENGTH
