"""Kernels compiled by Triton and executed in numpy, compared with float64: `python -m
tests.impls._triton.executed CHECK`. It prints JSON; the tests check it.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
import triton
from torch import Tensor

from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import FEW_QUERIES, Config, Kernel, candidates
from attnbench.impls.problem import ITEM_BYTES
from tests.impls._triton.conftest import in_pages, pairs_seen
from tests.ptxrun.block import Timing
from tests.ptxrun.launched import compiled, execute
from tests.ptxrun.memory import Fault

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
TIMES_ROUNDED = 2.0  # errors, of those of rounding the float64 result once
# Of fp32, and of lse, which is a sum in fp32 in any dtype: some hundred terms.
FP32_ERROR = 1e-5
LATE = Timing(moment="late")
TIMINGS = (Timing(), LATE, *(Timing(moment="random", seed=seed) for seed in range(2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`offset` is that of the diagonal, by default the one that ends in the last corner. `merged`:
    the heads of a token lie side by side, as a layer has them.
    """

    n_q: int = 200
    n_kv: int = 330
    heads: int = 2
    kv_heads: int = 1
    batch: int = 1
    d_k: int = 64
    d_v: int = 64
    causal: bool = True
    offset: int | None = None
    dtype: str = "bf16"
    masked: bool = False
    band: str = ""
    window: int = 0
    softcap: float = 0.0
    sinks: bool = False
    sequences: tuple[tuple[int, int], ...] = ()
    page: int = 0
    merged: bool = False

    def tensors(self) -> dict[str, Tensor]:
        make, b = torch.Generator().manual_seed(0), self.batch
        shapes = {
            "q": (b, self.heads, self.n_q, self.d_k),
            "k": (b, self.kv_heads, self.n_kv, self.d_k),
            "v": (b, self.kv_heads, self.n_kv, self.d_v),
            "do": (b, self.heads, self.n_q, self.d_v),
        }
        found = {
            name: torch.randn(shape, generator=make).to(DTYPES[self.dtype])
            for name, shape in shapes.items()
        }
        if self.merged:
            found = {name: side_by_side(one) for name, one in found.items()}
        if self.masked:
            found["mask"] = torch.rand((b, self.n_kv), generator=make) < 0.6
            found["mask"][0, : self.n_kv // 2] = False
        if self.sinks:
            found["sinks"] = torch.randn(self.heads, generator=make).to(DTYPES[self.dtype]) + 3.0
        return found

    @property
    def setting(self) -> launch.Setting:
        offset = self.n_kv - self.n_q if self.offset is None else self.offset
        return launch.Setting(
            scale=self.d_k**-0.5, causal=self.causal, causal_offset=offset, tf32=False,
            softcap=self.softcap, band=self.band, window=self.window,
        )  # fmt: skip

    def exact(self) -> dict[str, Tensor]:
        """In float64; lse to base 2."""
        x = self.tensors()
        q, k, v, do = (x[name].double().requires_grad_() for name in ("q", "k", "v", "do"))
        keys, values = (one.repeat_interleave(self.heads // self.kv_heads, 1) for one in (k, v))
        each = self.sequences or ((self.n_q, self.n_kv),)
        how: dict[str, Any] = {"causal": self.causal, "band": self.band, "window": self.window}
        offsets = (
            [n_kv - n_q for n_q, n_kv in each] if self.sequences else [self.setting.causal_offset]
        )
        seen = torch.block_diag(
            *(
                pairs_seen(*one, offset=offset, **how)
                for one, offset in zip(each, offsets, strict=True)
            )
        ).bool()
        seen = seen & x["mask"][:, None, None, :] if self.masked else seen
        scores = q @ keys.mT * self.setting.scale
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        scores = scores.masked_fill(~seen, -torch.inf)
        lse = scores.logsumexp(-1)
        sinks = x["sinks"].double().requires_grad_() if self.sinks else None
        if sinks is not None:
            lse = torch.logaddexp(lse, sinks[:, None])
        o = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0.0)[..., None]) @ values
        grads = torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
        found = {"o": o, "lse": lse / torch.log(torch.tensor(2.0, dtype=torch.float64))}
        if sinks is not None:  # a query's term is the gradient through its own log-sum-exp
            (of_lse,) = torch.autograd.grad(o, lse, do)
            weights = (sinks[:, None] - lse).exp()
            found["sink_terms"] = of_lse * weights
        return {name: one.detach() for name, one in found.items()} | dict(
            zip(("dq", "dk", "dv"), grads, strict=True)
        )


def side_by_side(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def launched(
    kernel: Kernel, config: Config, p: Problem, exact: dict[str, Tensor]
) -> tuple[launch.Launch, dict[str, Tensor]]:
    """The launch and what it fills, NaN so far; gradients get o and lse of float64, rounded."""
    x, mask = p.tensors(), p.tensors().get("mask")
    q, k, v, do = (x[name] for name in ("q", "k", "v", "do"))
    o, lse = exact["o"].to(q.dtype).contiguous(), exact["lse"].float().contiguous()
    o = side_by_side(o) if p.merged else o
    delta = (do.double() * exact["o"]).sum(-1).float().contiguous()
    packed = launch.Packed.of("_".join(f"q{n_q}s{n_kv}" for n_q, n_kv in p.sequences), q.device)
    how: dict[str, Any] = {"setting": p.setting, "config": config, "packed": packed}
    if kernel == "forward":
        fills = {"o": torch.empty_like(o), "lse": torch.empty_like(lse)}
        if p.page:
            k, v, table = in_pages(k, v, p.page)
            how["paged"] = launch.Paged(table, p.n_kv)
        made = launch.forward(q, k, v, mask, *fills.values(), **how, sinks=x.get("sinks"))
    elif kernel == "grad_q":
        fills = {"dq": torch.empty_like(q)}
        if p.sinks:
            fills["sink_terms"] = torch.empty_like(lse)
            how |= {"sinks": x["sinks"], "sink_terms": fills["sink_terms"]}
        made = launch.grad_q(q, k, v, mask, o, do, lse, delta.fill_(torch.nan), fills["dq"], **how)
    else:
        fills = {"dk": torch.empty_like(k), "dv": torch.empty_like(v)}
        made = launch.grad_kv(q, k, v, mask, do, lse, delta, *fills.values(), **how)
    for one in fills.values():
        one.fill_(torch.nan)
    assert made.config == config, (made.config, made.why_not)
    return made, fills


def complaint(
    kernel: Kernel,
    config: Config,
    capability: tuple[int, int],
    p: Problem,
    timing: Timing,
    **how: Any,
) -> str:
    """What is wrong with what a kernel computes; "" if nothing is."""
    exact = p.exact()
    made, fills = launched(kernel, config, p, exact)
    try:
        execute(made, capability, timing, **how)
    except Fault as fault:
        return f"{fault} {' '.join(fault.__notes__ if hasattr(fault, '__notes__') else ())}"
    wrong = []
    for name, found in fills.items():
        right, allowed = exact[name], FP32_ERROR
        if name not in ("lse", "sink_terms") and p.dtype != "fp32":
            allowed = TIMES_ROUNDED * distance(right.to(found.dtype), right)
        if (off := distance(found, right)) > allowed:
            wrong.append(f"{name} is off by {off:.2e}; allowed are {allowed:.2e}")
    return "; ".join(wrong)


def distance(found: Tensor, right: Tensor) -> float:
    """Relative, in the L2 norm; inf where what is infinite differs."""
    finite = right.isfinite()
    if (
        not torch.equal(found[~finite].double(), right[~finite])
        or not found[finite].isfinite().all()
    ):
        return torch.inf
    return float((found.double() - right)[finite].norm() / right[finite].norm())


# ---- checks --------------------------------------------------------------------------------------

GLUON = Config(128, 128, 8, 3, descriptors=True, gluon=True)
WIDE_GLUON = replace(GLUON, stages=2)
WIDE = {"d_k": 128, "d_v": 128}
SEVERAL = Problem(n_q=140, n_kv=400, heads=2, batch=2, offset=10)
# The last 20 keys are seen by no query, and the first 30 queries see no key.
EMPTY = Problem(n_q=130, n_kv=120, heads=4, kv_heads=2, offset=-30)
FEW = Problem(n_q=3, n_kv=171, heads=4, kv_heads=2)
# Whole tiles of keys within the window, and before it.
WINDOW = Problem(n_q=150, n_kv=400, band="local", window=130, softcap=2.0, sinks=True)
CHUNKS = Problem(n_q=330, causal=False, band="chunked", window=150, softcap=2.0, offset=0)
# Tiles behind the end of all sequences but the longest, and one that is one query.
RAGGED = Problem(n_q=181, n_kv=331, sequences=((100, 100), (1, 111), (80, 120)))
CHOSEN: tuple[tuple[Kernel, tuple[int, int], Config, Problem, dict[str, Any]], ...] = (
    ("forward", (8, 0), Config(64, 64, 4, 3), replace(EMPTY, masked=True), {}),
    ("forward", (9, 0), Config(16, 128, 4, 3), FEW, {}),
    ("forward", (9, 0), Config(128, 64, 8, 3, descriptors=True), Problem(), {}),
    ("forward", (9, 0), GLUON, SEVERAL, {"strict": True, "programs": 3}),
    ("forward", (9, 0), WIDE_GLUON, Problem(**WIDE, causal=False, dtype="fp16"), {"strict": True}),
    ("grad_q", (8, 0), Config(64, 64, 4, 2), Problem(d_k=72, d_v=96, n_q=100, n_kv=171), {}),
    ("grad_q", (9, 0), Config(128, 64, 8, 2, descriptors=True), EMPTY, {}),
    ("grad_kv", (9, 0), Config(64, 128, 8, 2, descriptors=True), Problem(), {}),
    ("forward", (9, 0), Config(128, 64, 8, 3, descriptors=True), WINDOW, {}),
    ("grad_q", (8, 0), Config(64, 64, 4, 2), replace(CHUNKS, sinks=True), {}),
    ("grad_kv", (9, 0), Config(64, 64, 4, 2, descriptors=True), CHUNKS, {}),
    ("forward", (9, 0), Config(64, 64, 4, 3), RAGGED, {}),
    ("grad_q", (9, 0), Config(64, 64, 4, 2), RAGGED, {}),
    ("grad_kv", (8, 0), Config(32, 64, 4, 2), RAGGED, {}),
    ("forward", (9, 0), Config(16, 128, 4, 3), replace(FEW, batch=2, page=16), {}),
    ("forward", (8, 0), Config(64, 64, 4, 3), replace(WINDOW, masked=True, page=48), {}),
)


def chosen() -> dict[str, str]:
    """Complaints by kernel, configuration, problem and timing."""
    return dict(
        asked(kernel, config, capability, p, TIMINGS[number % len(TIMINGS)], how)
        for number, (kernel, capability, config, p, how) in enumerate(CHOSEN)
    )


def asked(
    kernel: Kernel, config: Config, capability: tuple[int, int], p: Problem, timing: Timing,
    how: dict[str, Any],
) -> tuple[str, str]:  # fmt: skip
    name = f"{kernel} {capability} {config} {p} {timing} {how}"
    return name, complaint(kernel, config, capability, p, timing, **how)


def listed(major: str, kernel: Kernel) -> dict[str, str]:
    """The same of all listed entries of a capability, at the widest heads that they are for."""
    return dict(
        asked(
            kernel, config, (int(major), 0), p, TIMINGS[number % len(TIMINGS)],
            {"strict": config.gluon},
        )
        for number, (config, p) in enumerate(entries(int(major), kernel))
    )  # fmt: skip


def entries(major: int, kernel: Kernel) -> Iterator[tuple[Config, Problem]]:
    kinds = [("bf16", width, causal) for width in (64, 128, 256) for causal in (True, False)]
    lengths = (100,) if kernel == "grad_kv" else (100, FEW_QUERIES)
    for (dtype, width, causal), n_q in product([*kinds, ("fp32", 64, True)], lengths):
        p = Problem(n_q=n_q, n_kv=171, d_k=width, d_v=width, causal=causal, dtype=dtype)
        for config in candidates(
            kernel, capability=(major, 0), item_bytes=ITEM_BYTES[dtype], width=width, n_q=n_q,
            causal=causal,
        ):  # fmt: skip
            yield config, p


def hanging() -> str:
    """What Triton 3.6 makes of a forward kernel whose warps it specializes on 9.0."""
    config = Config(128, 128, 4, 2, descriptors=True, specialize=True)
    return complaint("forward", config, (9, 0), Problem(), LATE, races=False)


Change = Callable[[str], str]
MUTATIONS: tuple[tuple[str, Change], ...] = (
    (r"bar\.sync\s+\d+.*;", lambda line: ""),
    (r"wgmma\.wait_group\.sync\.aligned\s+\d+;", lambda line: re.sub(r"\d+;", _one_more, line)),
    (r"fence\.proxy\.async.*;", lambda line: ""),
    (r".*mbarrier\.arrive\.(?!expect).*;", lambda line: ""),
    (r".*mbarrier\.try_wait.*;", lambda line: f"setp.eq.s32 {line.split()[1]} 0, 0;"),
    (r".*mbarrier\.init.*, 2;", lambda line: line.replace(", 2;", ", 1;")),
)


def _one_more(found: re.Match[str]) -> str:
    return f"{int(found[0][:-1]) + 1};"


def mutants() -> dict[str, str]:
    """One synchronizing instruction of the Gluon kernel changed at a time: what was noticed, by the
    line of PTX, the line of Python and the instruction.
    """
    p, how = Problem(n_q=256, n_kv=700, heads=1), {"strict": True, "programs": 1}
    made, _ = launched("forward", GLUON, p, p.exact())
    ptx = compiled(made, (9, 0)).asm["ptx"].split(".section")[0]
    reached = execute(made, (9, 0), Timing(), **how)
    lines, source, found = ptx.split("\n"), "", {}
    for number, line in enumerate(lines, 1):
        if line.strip().startswith(".loc"):
            source = line.split("//")[-1].strip()
        code = line.split("//")[0].strip()
        for pattern, change in MUTATIONS:
            if number in reached and re.fullmatch(pattern, code):
                changed = "\n".join([*lines[: number - 1], change(code), *lines[number:]])
                found[f"{number} {source}: {code}"] = next(
                    filter(None, (_fate(p, timing, changed, how) for timing in TIMINGS)), ""
                )
    return found


def _fate(p: Problem, timing: Timing, ptx: str, how: dict[str, Any]) -> str:
    return complaint("forward", GLUON, (9, 0), p, timing, ptx=ptx, **how)


if __name__ == "__main__":
    torch.set_num_threads(1)
    result = globals()[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({"triton": triton.__version__, "found": result}))
