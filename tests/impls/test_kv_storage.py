"""Latent, quantized and paged keys and values: the reference, every backend that computes them,
their bytes, and what is refused.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.cases.costs import input_bytes, minimal_bytes, work_flops
from attnbench.harness.measure.physical_floor import least_flops
from attnbench.impls import Problem, load, make_inputs, names
from attnbench.impls.axes.kv_storage import token_bytes
from attnbench.impls.peak_formulas import nearest
from attnbench.impls.problem import ALL_MASKS
from attnbench.impls.reference import reference
from attnbench.impls.shared.kv_tensors import from_fp8, quantized
from attnbench.impls.shared.mask_counts import form_flops
from tests.budget import first
from tests.impls.conftest import complaints
from tests.impls.peak_formulas.test_peak_bytes import held

CPU = torch.device("cpu")
DECODE: dict[str, Any] = {"causal": True, "causal_align": "bottom_right"}
LATENT = Problem(
    batch=2, seq_len=3, kv_seq_len=11, d_model=32, heads=4, d_k=12, d_v=6, latent=16, rope=4,
    **DECODE,
)  # fmt: skip
INT8 = Problem(batch=2, seq_len=2, kv_seq_len=21, d_model=32, heads=4, kv_heads=2, kv_dtype="int8")
STORED = {
    "int8": INT8,
    "fp8": replace(INT8, kv_dtype="fp8", dtype="bf16", **DECODE),
    "paged": replace(INT8, kv_dtype="same", page=8),
    "paged_int8": replace(INT8, page=4, **DECODE),
    "paged_fp8": replace(INT8, kv_dtype="fp8", page=16),
}
OFTEN, COUNT = 12, 40


def random_problems(kind: str, dtype: Any, count: int = COUNT) -> Iterator[Problem]:
    """So many of them: lengths, heads, widths, masks, and how keys and values are stored."""
    random = Random(kind)
    for _ in range(count):
        n_q, heads = random.choice((1, 1, 5, random.randint(2, 40))), random.choice((1, 2, 4))
        mask = random.choice(ALL_MASKS) if random.random() < 0.3 else "none"
        alone = mask in ("none", "padding", "random")
        causal = not alone or random.random() < 0.7
        shape: dict[str, Any] = {
            "batch": random.randint(1, 3),
            "seq_len": n_q,
            "kv_seq_len": n_q + random.choice((0, 1, random.randint(2, 600))),
            "d_model": 32,
            "heads": heads,
            "d_k": random.randint(6, 20),
            "d_v": random.randint(2, 20),
            "dtype": dtype,
            "mask": mask,
        } | (DECODE if causal else {})
        if kind == "latent":
            shape |= {"latent": random.randint(4, 40), "rope": random.choice((0, 2, 5))}
            yield Problem(**shape, passes=random.choice(("forward", "forward+backward")))
        else:
            kv_dtype = random.choice(("int8", "fp8")) if "kv_dtype" in kind else "same"
            page = random.choice((1, 8, 16, 48)) if "page" in kind else 0
            kv_heads = random.choice((1, heads))
            yield Problem(**shape, kv_heads=kv_heads, kv_dtype=kv_dtype, page=page)


@pytest.mark.parametrize("count", first(1, [OFTEN, COUNT]))
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", ["latent", "kv_dtype", "page", "page and kv_dtype"])
def test_backends_are_as_close_as_the_textbook_on_random_problems(
    kind: str, dtype: str, count: int
) -> None:
    ran: set[str] = set()
    some = [one for one in names() if one.partition(":")[0] in ("mla", "kv_cache")]
    for seed, problem in enumerate(random_problems(kind, dtype, count)):
        found = complaints(problem, some, seed)
        assert not any(found.values()), (found, problem)
        ran |= found.keys()
    wanted = {"mla", "mla:absorbed", "mla:unabsorbed"}
    assert ran == (wanted if kind == "latent" else {"kv_cache", "kv_cache:blocks"})


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["kv_cache", "kv_cache:blocks", "triton"])
def test_pages_are_read_as_closely_on_cuda(name: str) -> None:
    backend, cuda = load(name), torch.device("cuda")
    drawn = (replace(one, d_k=16, d_v=16) for one in random_problems("page", "bf16"))
    computed = [one for one in drawn if not backend.why_not(one, cuda)][:12]
    assert len(computed) == 12
    for seed, problem in enumerate(computed):
        assert complaints(problem, [name], seed, "cuda") == {name: ""}, problem


def attended(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """softmax(q . k / sqrt(d_k)) over these keys, of one query."""
    weights = (keys @ q / len(q) ** 0.5).exp()
    return weights @ values / weights.sum()


def test_the_reference_makes_every_heads_keys_and_values_from_the_latent() -> None:
    p = LATENT
    inputs = make_inputs(p, CPU, 0)
    found = reference(p, inputs, None, torch.arange(p.seq_len))
    cache = inputs.key[:, 0].double()
    w_uk = inputs.more["w_uk"].double().view(p.heads, -1, p.latent)
    w_uv = inputs.more["w_uv"].double().view(p.heads, -1, p.latent)
    for entry, head, row in ((0, 0, 0), (1, 3, 2), (0, 2, 1)):
        seen = cache[entry, : p.kv_seq_len - p.seq_len + row + 1]
        latent, rope = seen.split([p.latent, p.rope], -1)
        keys = torch.cat([latent @ w_uk[head].mT, rope], -1)
        wanted = attended(inputs.query[entry, head, row].double(), keys, latent @ w_uv[head].mT)
        assert torch.allclose(found[entry, head, row], wanted, rtol=1e-9)


@pytest.mark.parametrize("name", STORED)
def test_the_reference_reads_what_stored_numbers_stand_for(name: str) -> None:
    p = STORED[name]
    inputs = make_inputs(p, CPU, 0)
    found = reference(p, inputs, None, torch.arange(p.seq_len))

    def row(tensor: str, entry: int, head: int, token: int) -> Tensor:
        place, within = entry, token
        if p.page:
            place = int(inputs.more["page_table"][entry, token // p.page])
            within = token % p.page
        codes = inputs.named()[tensor][place, head, within].double()
        if p.kv_dtype == "same":
            return codes
        return codes * inputs.more[f"{tensor}_scale"][place, head, within].double()

    for entry, head, query in ((0, 0, 0), (1, 3, 1), (0, 2, 1)):
        seen = range(p.kv_seq_len - (p.seq_len - 1 - query if p.causal else 0))
        keys, values = (
            torch.stack([row(tensor, entry, head // 2, token) for token in seen])
            for tensor in ("key", "value")
        )
        wanted = attended(inputs.query[entry, head, query].double(), keys, values)
        assert torch.allclose(found[entry, head, query], wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_quantizing_is_off_by_half_a_step_at_most(dtype: torch.dtype) -> None:
    values = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    values[0] = 0.0
    codes, scale = quantized(values, dtype)
    error = (codes.float() * scale[:, None] - values).abs()
    # int8 has equal steps; e4m3 has 3 binary digits behind the point, and 2**-9 as its least step
    size = codes.float().abs() if dtype != torch.int8 else torch.ones_like(error)
    step = torch.maximum(size * 2.0**-3, torch.tensor(2.0**-9)) if dtype != torch.int8 else size
    assert (error <= 0.5001 * step * scale[:, None]).all()
    assert not codes[0].float().any()


@pytest.mark.parametrize("name", [*STORED, "latent"])
def test_the_bytes_are_those_of_the_tensors(name: str) -> None:
    p = {**STORED, "latent": LATENT}[name]
    tensors = {id(one): one for one in make_inputs(p, CPU, 0).named().values()}.values()
    assert input_bytes(p) == sum(one.numel() * one.element_size() for one in tensors)
    unused = p.batch * (-p.kv_seq_len % p.page if p.page else 0) * token_bytes(p)
    outputs = p.batch * p.heads * p.seq_len * p.d_v * p.item_bytes
    entries = p.batch * -(-p.kv_seq_len // p.page) * 4 if p.page else 0
    least = -(-p.batch * p.kv_seq_len // p.page) * 4 if p.page else 0
    assert minimal_bytes(p) == input_bytes(p) + outputs - unused - entries + least


V2 = Problem(batch=1, seq_len=1, kv_seq_len=4096, d_model=5120, heads=128, d_k=192, d_v=128,
             latent=512, rope=64, dtype="bf16", **DECODE)  # fmt: skip


def test_a_latent_cache_has_the_bytes_of_the_papers() -> None:
    # DeepSeek-V2, table 1: (d_c + d_h^R) l = 9/2 d_h l numbers per token, d_h = 128
    assert token_bytes(V2) == 4.5 * 128 * V2.item_bytes
    # "Insights into DeepSeek-V3" (arXiv:2505.09343), table 1: KB per token of all layers
    assert 61 * token_bytes(V2) == 70_272
    llama = Problem(batch=1, seq_len=1, d_model=16384, heads=128, kv_heads=8, dtype="bf16")
    qwen = Problem(batch=1, seq_len=1, d_model=8192, heads=64, kv_heads=8, dtype="bf16")
    assert (126 * token_bytes(llama), 80 * token_bytes(qwen)) == (516_096, 327_680)


def test_the_flops_of_the_absorbed_form_are_those_of_flashmla_and_the_projections() -> None:
    # FlashMLA, tests/test_flash_mla_decoding.py: s_q * total_seqlens * h_q * (d + dv) * 2
    products = V2.kv_seq_len * 128 * (576 + 512) * 2
    assert form_flops(V2, "absorbed") == products + 2 * 128 * (128 + 128) * 512
    assert work_flops(V2) == form_flops(V2, "absorbed") < form_flops(V2, "unabsorbed")
    prefill = replace(V2, seq_len=4096)
    assert (
        work_flops(prefill) == form_flops(prefill, "unabsorbed") < form_flops(prefill, "absorbed")
    )
    assert all(least_flops(p) <= work_flops(p) for p in (V2, prefill, LATENT))


def test_bare_mla_takes_the_form_with_fewer_flops() -> None:
    found = {}
    for n in (1, 4096):
        problem = replace(V2, seq_len=n, heads=1, kv_heads=1)
        call = load("mla").prepare(problem, make_inputs(problem, torch.device("meta"), 0), None)
        found[n] = call.facts["form"]  # type: ignore[attr-defined]
        assert call.facts["form_flops"] == work_flops(problem)  # type: ignore[attr-defined]
    assert found == {1: "absorbed", 4096: "unabsorbed"}


@pytest.mark.filterwarnings("ignore")  # the profiler's warnings without a GPU
@pytest.mark.parametrize("changes", [{"mask": "none"}, {"mask": "local", "window": 8}])
@pytest.mark.parametrize("name", ["mla", "mla:absorbed", "mla:unabsorbed"])
def test_the_formula_for_a_latent_cache_is_exact(name: str, changes: dict[str, Any]) -> None:
    known = 0
    for batch, heads, (n_q, n_kv) in product((1, 2), (1, 4), ((1, 200), (3, 11), (40, 2000))):
        sizes = {"heads": heads, "kv_heads": heads, "seq_len": n_q, "kv_seq_len": n_kv}
        known += held(name, replace(LATENT, batch=batch, **sizes, **changes)) == "exact"
    assert known == (12 if name == "mla:unabsorbed" else 8)


@pytest.mark.filterwarnings("ignore")  # the profiler's warnings without a GPU
@pytest.mark.parametrize(
    ("name", "dtype"), [("kv_cache", "fp32"), ("kv_cache", "bf16"), ("kv_cache:blocks", "fp32")]
)
def test_the_formula_for_the_peak_is_exact_in_fp32_and_a_bound_in_bf16(
    name: str, dtype: str
) -> None:
    shapes = [(1, 1, 4, 16, 16), (3, 1, 2, 8, 8), (2, 5, 1, 16, 16)]
    if (name, dtype) == ("kv_cache", "fp32"):  # torch's math kernel
        shapes += [(1, 1, 4, 16, 8), (2, 5, 1, 16, 4)]
    stored = product(shapes, (0, 16, 48), ("same", "int8", "fp8"), (40, 1100))
    for (batch, n_q, kv_heads, d_k, d_v), page, kv_dtype, n_kv in stored:
        problem = Problem(
            batch=batch, seq_len=n_q, kv_seq_len=n_kv, d_model=64, heads=4, kv_heads=kv_heads,
            d_k=d_k, d_v=d_v, page=page, kv_dtype=kv_dtype, dtype=dtype,
            **(DECODE if n_q == 1 else {}),
        )  # fmt: skip
        assert held(name, problem) == ("exact" if dtype == "fp32" else "bound"), problem
    assert not [*nearest("kv_cache:blocks", replace(INT8, dtype="bf16"), 1)]


@pytest.mark.parametrize("changes", [{"seq_len": 4, **DECODE}, {"mask": "padding"}])
def test_the_peak_under_a_mask_has_no_formula(changes: dict[str, Any]) -> None:
    for name in ("kv_cache", "kv_cache:blocks"):
        assert load(name).peak_bytes(replace(INT8, **changes), CPU, 1) is None
        assert load(name).peak_bytes(INT8, torch.device("cuda"), 1) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_all_256_codes_of_fp8_become_the_numbers_that_torch_makes_of_them(
    dtype: torch.dtype,
) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).view(2, 128)
    for some in (codes, codes.mT, codes[:, 3::2]):
        expected = some.to(dtype)
        found = from_fp8(some, dtype)
        assert found.dtype == dtype
        assert torch.equal(found.isnan(), expected.isnan())
        assert torch.equal(found.nan_to_num(0.5), expected.nan_to_num(0.5))
        assert torch.equal(1 / found == -torch.inf, 1 / expected == -torch.inf)  # -0.0
