"""The steps of nine minutes with a GPU, as data, most worth first."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PYTHON = "{python}"
ATTNBENCH = (PYTHON, "-m", "attnbench")
PYTEST = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-m", "gpu")
CALIBRATE = (  # of `attnbench doctor --deep` what fits into nine minutes
    "from pathlib import Path; from sys import argv, exit;"
    " from attnbench.harness.doctor.calibrate import calibrate;"
    " found = calibrate(argv[1], Path(argv[2]), wait=False);"
    " print(found); exit(any(one['verdict'] == 'off' for one in found['checks']))"
)
SMALL = "processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1, windows: 1, window_s: 0.2"
SMALL_PLAN = ("--set", f"plan={{{SMALL}}}")
# torch compiles in several processes of its own; each of ours would start one per core
FEW_COMPILERS = {"TORCHINDUCTOR_COMPILE_THREADS": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command.

    `words` hold the placeholders {python}, {device}, {memory_gib}, {jobs} and {runs}, the folder of
    runs. `gpu` follow them on a GPU, `cpu` in a rehearsal. `most_s`: it is cut off after so many
    seconds if later steps need the rest, 0 for what gets only time that is left; `least_s`: not
    started with fewer. `resumes`: a run that was cut off goes on where it ended. `judges`: it exits
    with 1 if the machine is not fit, which in a rehearsal says nothing.
    """

    name: str
    words: tuple[str, ...]
    most_s: float
    gpu: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    least_s: float = 15.0
    resumes: bool = False
    judges: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


def run(name: str, most_s: float, scenario: str, *gpu: str, cpu: tuple[str, ...] = ()) -> Step:
    return Step(
        name=name,
        words=(*ATTNBENCH, "run", scenario, "--device", "{device}", "--out", "{runs}"),
        most_s=most_s,
        gpu=gpu,
        cpu=(*SMALL_PLAN, *cpu),
        resumes=True,
    )


def pytest(name: str, most_s: float, *words: str, jobs: bool = False) -> Step:
    """`jobs`: several processes at once, for tests that compile and do not time."""
    xdist = ("--numprocesses", "{jobs}", "--dist", "worksteal", "--benchmark-disable")
    together = xdist if jobs else ()  # pytest-benchmark 5.2 warns of xdist, which is an error here
    environment = FEW_COMPILERS if jobs else {}
    return Step(
        name=name, words=(*PYTEST, *together, *words), most_s=most_s, environment=environment
    )


MEASURE = ("--set", "measure=[latency,memory,utilization,energy]")
NARROW = ("--set", "grid.d_model=256")  # wider heads than 256 run other kernels of sdpa
WALL_SHARE = 0.9  # of the card's memory
SHORT_N = ("--set", "grid.cpu.seq_len=[64]")
WIDE = ("--only", "-n2048-d2048-h16-", "--only", "-n4096-d2048-h16-")  # heads of 128
OF_64 = ("--only", "-n4096-d2048-h32-")
IN_THREE = ("--set", "plan.processes=3", "--set", "plan.min_blocks=3", "--timeout", "30")
TIMED = ("--set", "measure=[latency,memory]", *IN_THREE)
AGREEMENT = "tests/impls/test_agreement.py"
TESTS = (
    "tests/harness/measure/test_clock.py",
    "tests/harness/measure/test_steady_loop.py",
    "tests/harness/measure/test_peak_memory.py",
    "tests/harness/doctor/test_calibrate.py",
    "tests/harness/run/test_on_gpu.py",
    "tests/harness/run/test_wall.py",
)
OF_BACKENDS = (
    *(f"tests/impls/test_{name}.py" for name in ("triton", "sdpa", "scores", "kv_storage")),
    "tests/impls/test_shared_prefix.py",
    "tests/impls/test_drawing.py",
    AGREEMENT,
)
COMPILED = "compiled or flex or hf or triton"  # six hundred problems of these take minutes

# Seconds by what an H200's kept runs took: quickstart 51 s for 36 rows in six processes, and 2.6 s
# for each of 26 timed cases more, for a window. head_cost has 15 cases of 4 s with one, at one N:
# quickstart has several. A wall of 9 lengths has 27, the longest of which take seconds a call.
# kernel_sweep took 2.4 to 4.0 s a row in one process, at N = 16k; here 24 rows in three, heads of
# 64 at one N, and no windows, which would take 94 s.
STEPS = (
    Step(
        name="calibrate",
        words=(PYTHON, "-c", CALIBRATE, "{device}", "{runs}"),
        most_s=60,
        judges=True,
    ),
    run("quickstart", 120, "quickstart", *MEASURE, *NARROW, cpu=(*MEASURE, *SHORT_N)),
    run(
        "head-cost",
        65,
        "head_cost",
        *(*MEASURE, *NARROW, "--set", "grid.heads=[1,2,4,8,16]", "--set", "grid.seq_len=4k"),
        cpu=(*MEASURE, *SHORT_N, "--set", "grid.heads=[1, 8]"),
    ),
    run(
        "memory-wall",
        100,
        "memory_wall",
        *(*MEASURE, "--memory-gib", "{memory_gib}"),
        cpu=(*MEASURE, *SHORT_N),
    ),
    run("kernel-sweep", 95, "kernel_sweep", *WIDE, *TIMED, cpu=("--only", "-n512-")),
    run("heads-of-64", 50, "kernel_sweep", *OF_64, *TIMED, cpu=("--only", "-n512-")),
    Step(
        name="kernels",
        words=(PYTHON, "-m", "tests.gpu_day.kernels", "--device", "{device}"),
        most_s=0,
        gpu=("--out", "{runs}/ran_on_gpu.json"),
        cpu=("--out", "{runs}/ran_on_gpu.json"),
    ),
    pytest("tests", 0, *TESTS),
    pytest("tests-of-backends", 0, "-k", f"not ({COMPILED})", *OF_BACKENDS, jobs=True),
    pytest("tests-of-compiled", 0, "-k", COMPILED, *OF_BACKENDS, jobs=True),
    Step(
        name="record",
        words=(PYTHON, "-m", "tests.gpu_day.record", "--device", "{device}"),
        most_s=0,
        gpu=("--out", "{runs}/recording.jsonl"),
        cpu=("--out", "{runs}/recording.jsonl", "--seconds", "0.5"),
    ),
)
