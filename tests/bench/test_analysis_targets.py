"""How long loading and analysing many rows takes, and how much memory, against the targets. `make
bench` runs these.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import environment
from tests.made_runs import case, problem, row, write_run

ROWS = 20_000
BACKENDS = (
    "naive",
    "fused",
    "sdpa",
    "sdpa:math",
    "sdpa:flash",
    "sdpa:efficient",
    "sdpa:cudnn",
    "triton",
    "sparse_local",
    "linformer",
)
MOST_S = 10.0
MOST_BYTES = 1 << 30
ANALYSE = """
import json, resource, sys, time
start = time.process_time()  # of the processor: what else runs on the machine is not ours
from attnbench.reports import growth_fit as growth
from attnbench.reports.subjects import energy, roofline
from attnbench.reports.claims import ledger
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
stages = {}
def stage(name):
    stages[name] = time.process_time() - start - sum(stages.values())
run = read_run(sys.argv[1]); stage("read")
rows = rows_of([run]); stage("rows")
meta = run_meta([run])
fits = sum(not one.reason for _, members in growth.growths(rows) for one in members)
found = {"rows": len(rows), "fits": fits}; stage("growth")
roofline.places(rows, meta); stage("roofline")
energy.energy_costs(rows, meta); stage("energy")
found["cells"] = len(winner_map.winner_map(rows)); stage("winner_map")
heads.comparable(rows); stage("heads")
found["claims"] = len(ledger.ledger(rows, next(iter(meta.values())))); stage("claims")
peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
found |= {"stages_s": stages, "total_s": sum(stages.values()), "peak_bytes": peak_bytes}
print(json.dumps(found))
"""


def many_rows(parent: Path) -> Path:
    sizes = [
        (batch, d, dtype, scope)
        for batch in (1, 2)
        for d in (256, 512, 1024, 2048, 4096)
        for dtype in ("fp32", "bf16")
        for scope in ("core", "layer")
    ]
    shapes = [
        problem(2**n, h, batch=batch, d_model=d, dtype=dtype, scope=scope)
        for batch, d, dtype, scope in sizes
        for h in (1, 2, 4, 8, 16, 32)
        for n in range(7, 16)
    ]
    cases = [case(backend, shape) for shape in shapes for backend in BACKENDS][:ROWS]
    return write_run(parent, cases, [row(planned) for planned in cases])


def analysed(run: Path) -> dict[str, object]:
    """In a process of its own, so that its peak is that of the analysis."""
    command = [sys.executable, "-c", ANALYSE, str(run)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_20_000_rows_are_loaded_and_analysed_in_10_s_and_1_gb(benchmark, tmp_path):
    run = many_rows(tmp_path)
    found = benchmark.pedantic(analysed, args=(run,), rounds=1)
    benchmark.extra_info.update(found)
    assert (found["rows"], found["claims"]) == (ROWS, 18)
    assert found["fits"] > 2000
    assert found["peak_bytes"] <= MOST_BYTES
    assert found["total_s"] <= MOST_S, found["stages_s"]
