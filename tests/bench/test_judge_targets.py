"""The judge of timed calls convicts no honest backend: 2 000 blocks of random problems. About ten
minutes on one core.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from attnbench import impls
from attnbench.harness.measure.judge import Judge, Seeds
from attnbench.impls.problem import Problem
from tests.judged_blocks import CPU, judged

BLOCKS = 2000
BACKENDS = (
    "naive",
    "fused",
    "sdpa",
    "sdpa:math",
    "torch_mha",
    "mla",
    "kv_cache",
    "kv_cache:blocks",
)
LENGTHS = {64: 12, 100: 8, 128: 8, 256: 6, 512: 4, 1024: 2, 4096: 1}
PASSES = ("forward", "backward", "forward+backward")


def random_problems() -> Iterator[tuple[int, Problem]]:
    """And the seed of each."""
    seed = 0
    while True:
        seed += 1
        random = Random(seed)
        heads, width = random.choice((1, 2, 4, 8)), random.choice((8, 16, 32, 64))
        n = random.choices(list(LENGTHS), list(LENGTHS.values()))[0]
        masks = ("none", "none", "none", "padding", "random", "local", "strided", "blocks")
        shape = {
            "batch": random.randint(1, 4),
            "seq_len": n,
            "d_model": heads * width,
            "heads": heads,
            "dtype": random.choice(("fp32", "bf16", "fp16")),
            "causal": random.random() < 0.4,
            "mask": random.choice(masks),
            "passes": random.choice(PASSES),
        }
        kind = random.choice(
            ("core", "core", "grouped", "layer", "block", "sinks", "cap", "stored")
        )
        if kind == "grouped":
            shape["kv_heads"] = random.choice([one for one in (1, 2, 4) if heads % one == 0])
        elif kind in ("layer", "block"):
            shape["scope"] = kind
        elif kind == "sinks":
            shape["sinks"] = True
        elif kind == "cap":
            shape["softcap"] = 5.0
        elif kind == "stored":
            shape |= random.choice(
                (
                    {"page": 16, "passes": "forward"},
                    {"kv_dtype": "int8", "passes": "forward"},
                    {"page": 32, "kv_dtype": "fp8", "passes": "forward"},
                    {"latent": 24, "rope": 4, "passes": "forward"},
                    {"prefix": n // 2, "kv_seq_len": 2 * n, "causal": False, "mask": "none"},
                )
            )
        yield seed, Problem(**shape)


def test_no_honest_block_is_convicted():
    def convicted() -> tuple[list[str], Counter[str], float]:
        found, counts, worst = [], Counter[str](), 0.0
        for seed, problem in random_problems():
            judge, seeds = Judge(), Seeds(values=3 * seed, first=3 * seed + 1, places=3 * seed + 2)
            for name in BACKENDS:
                if impls.load(name).why_not(problem, CPU):
                    continue
                verdict = judged(problem, name, seeds=seeds, judge=judge)
                if verdict.complaint:
                    found.append(f"{name}, {problem}: {verdict.complaint}")
                counts.update((name, problem.dtype, problem.passes, str(problem.seq_len)))
                counts["all"] += 1
                ratio, limit = verdict.error_ratio or 0.0, verdict.error_limit_ratio or 2.0
                worst = max(worst, ratio / limit)
            if counts["all"] >= BLOCKS:
                return found, counts, worst
        raise AssertionError

    found, counts, worst = convicted()
    print(dict(counts), f"worst: {worst:.3f} of the limit")
    assert found == []
