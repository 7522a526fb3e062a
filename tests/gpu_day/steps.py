"""The steps of a day with a GPU, as data: three parts, each ordered by worth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

PYTHON = "{python}"
ATTNBENCH = (PYTHON, "-m", "attnbench")
PYTEST = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-m", "gpu")
SMALL_PLAN = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")
# torch compiles in several processes of its own; each of ours would start one per core
FEW_COMPILERS = {"TORCHINDUCTOR_COMPILE_THREADS": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command.

    `words` hold the placeholders {python}, {device}, {arch}, {jobs} and {runs}, the folder of
    runs. `gpu` follow them on a GPU, `cpu` in a rehearsal. `most_s`: it is cut off after so many
    seconds if later steps need the rest; `least_s`: not started with fewer. `resumes`: a run that
    was cut off goes on where it ended. `judges`: it exits with 1 if the machine is not fit, which
    in a rehearsal says nothing.
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


class Part(NamedTuple):
    """What one call does, in `minutes`. `calls`: how often it may have to be called."""

    name: str
    minutes: float
    steps: tuple[Step, ...]


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


def launches(name: str, most_s: float, *gpu: str) -> Step:
    """Kernels of the backend triton, each alone; on a CPU those in Gluon are compiled."""
    words, few = (PYTHON, "-m", "tests.gpu_day.launches"), ("--compile", "--only", "gluon")
    return Step(name=name, words=words, most_s=most_s, gpu=gpu, cpu=few)


AGREEMENT = "tests/impls/test_agreement.py"
SMALL_TESTS = tuple(
    f"tests/impls/test_{name}.py" for name in ("triton", "scores", "kv_storage", "shared_prefix")
)
# of Triton's problems those that differ most; the rest is for the last part
FEW = (
    "test_triton or test_kv_storage or test_shared_prefix or (test_scores and (triton or flex))"
    " or (triton and not portable and not pointers"
    " and (odd or bottom_right_grouped or padded_causal or ragged_causal))"
)
COMPILED = "compiled or flex or hf or triton"  # backends
COUNTERS = "test_counters_of_a_steady_kernel_agree_between_windows_and_name_their_tier"
SHORT = ("--set", "plan={like: quick, processes: 1, min_blocks: 4, max_blocks: 6, budget_s: 0.4}")
HANGS = ("--timeout", "30")  # seconds of a case's step, compiling included


RAGGED = "-hkv?-*q*-"  # ids of cases with lengths


def beside(name: str, most_s: float, scenario: str, backends: str, only: str, on_cpu: str) -> Step:
    """Our kernel beside others where sdpa has none, or a mask costs."""
    first, *_ = backends.split(",")
    words = ("--set", f"backends=[{backends}]", "--set", f"baseline={first}")
    gpu = (*words, *SHORT, *HANGS, "--only", only)
    return run(name, most_s, scenario, *gpu, cpu=(*words, "--only", on_cpu))


# Kernels are compiled all at once and each launched alone before runs take them from Triton's
# cache: one that hangs is found in ten seconds. Then what the two days before did not reach.
FIRST = Part(
    "first",
    9.0,
    (
        Step(
            name="audit",
            words=(*ATTNBENCH, "kernels", "audit", "--arch", "{arch}", "--out", "{runs}"),
            most_s=45,  # 21 s on an H200 with 16 cores
            gpu=("--dtype", "bf16"),
            cpu=("--dtype", "fp32", "--kernel", "grad_kv"),
        ),
        launches("launch-each", 75, "--seconds", "10"),  # 53 s there
        pytest("triton", 90, "-k", FEW, *SMALL_TESTS, AGREEMENT, jobs=True),  # 67 s
        beside("ragged", 70, "serving", "sdpa,varlen,triton,sequence_loop", RAGGED, RAGGED),
        beside("softcap", 70, "softcap", "triton,sdpa,flex", "-n4096-", "-n512-"),
        beside("sinks", 50, "sinks", "triton,sdpa,flex", "-n4096-", "-n512-"),
        beside("chunked", 50, "chunked", "sdpa,triton,flex", "-n16384-", "-n512-"),
        Step(
            name="record",
            words=(PYTHON, "-m", "tests.gpu_day.record", "--device", "{device}"),
            most_s=25,
            gpu=("--out", "{runs}/recording.jsonl"),
            cpu=("--out", "{runs}/recording.jsonl", "--seconds", "0.5"),
        ),
    ),
)
# Four groups of three backends take 12 s each, backward passes 15.
SWEEP = Part(
    "sweep",
    9.5,
    (
        run(
            "sweep-16k",
            120,
            "kernel_sweep",
            *("--only", "-n16384-", "--set", "plan.budget_s=0.5", *HANGS),
            cpu=("--only", "-n512-"),
        ),
        run(
            "sweep-2k-to-8k",
            330,
            "kernel_sweep",
            *("--only", "-n8192-", "--only", "-n4096-", "--only", "-n2048-"),
            cpu=("--only", "-n512-"),
        ),
        run(
            "sweep-512-to-1k",
            330,
            "kernel_sweep",
            *("--only", "-n1024-", "--only", "-n512-"),
            cpu=("--only", "-n512-"),
        ),
    ),
)
SHORT_N = ("--set", "grid.cpu.seq_len=[64]")
REST = Part(
    "rest",
    9.5,
    (
        Step(name="doctor", words=(*ATTNBENCH, "doctor", "--out", "{runs}"), most_s=30),
        Step(
            name="calibrate",
            words=(*ATTNBENCH, "doctor", "--calibrate", "--device", "{device}", "--out", "{runs}"),
            most_s=70,
            judges=True,
        ),
        pytest(
            "measuring",
            50,
            "tests/harness/measure/test_clock.py",
            "tests/harness/measure/test_steady_loop.py",
            "tests/harness/measure/test_peak_memory.py",
            f"tests/harness/run/test_on_gpu.py::{COUNTERS}",
        ),
        beside(
            "published-8k",
            150,
            "published",
            "sdpa:flash,sdpa:cudnn,triton",
            "-n8192-*-bf16-",
            "-n128-",
        ),
        run("quickstart", 120, "quickstart", cpu=SHORT_N),
        run("head-cost", 120, "head_cost", cpu=(*SHORT_N, "--set", "grid.heads=[1, 8]")),
        run("memory-wall", 120, "memory_wall", "--plan", "quick", cpu=SHORT_N),
        pytest(
            "harness",
            300,
            "tests/harness/run/test_on_gpu.py",
            "tests/harness/run/test_wall.py",
            "tests/harness/doctor/test_calibrate.py",
        ),
        pytest("sdpa", 60, "tests/impls/test_sdpa.py", "tests/impls/test_scores.py"),
        Step(
            name="selfcheck",
            words=(*ATTNBENCH, "selfcheck", "--device", "{device}", "--out", "{runs}"),
            most_s=150,
            judges=True,
        ),
        run("backends", 150, "backends", cpu=("--only", "n197")),
        run("training", 120, "training", cpu=SHORT_N),
        Step(
            name="audit-all",
            words=(*ATTNBENCH, "kernels", "audit", "--arch", "{arch}", "--out", "{runs}"),
            most_s=300,
            cpu=("--dtype", "fp32", "--kernel", "grad_kv"),
        ),
        # six hundred problems, each in several dtypes: those of backends that compile come last
        pytest("agreement", 200, "-k", f"not ({COMPILED})", AGREEMENT, jobs=True),
        pytest("agreement-compiled", 450, "-k", COMPILED, AGREEMENT, jobs=True),
        run("linear", 200, "linear", cpu=SHORT_N),
        run("sparse", 200, "sparse", cpu=("--set", "grid.cpu.seq_len=[256]")),
        run("recurrent", 200, "recurrent", cpu=("--only", "-n256-d256-")),
    ),
)
PARTS = {part.name: part for part in (FIRST, SWEEP, REST)}
