"""Numbers by place: the same in any memory order and of any part, others for other seeds."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.measure.prepared_call import make_tensors
from attnbench.impls import Problem, make_inputs, make_weights
from attnbench.impls.shared import inputs as drawing
from attnbench.impls.shared.inputs import draw, draw_inputs, made_entries
from attnbench.impls.shared.kv_tensors import plain

CPU = torch.device("cpu")
P = Problem(batch=5, seq_len=37, d_model=36, heads=4, kv_heads=2, d_v=7)
DECODING = {"seq_len": 3, "kv_seq_len": 40}
STORED = [
    replace(P, **DECODING, page=8),
    replace(P, **DECODING, kv_dtype="int8"),
    replace(P, **DECODING, page=8, kv_dtype="fp8"),
    replace(P, **DECODING, prefix=16),
    replace(P, **DECODING, kv_heads=4, latent=10, rope=2),
]


KNOWN = [0.007745319977402687, 0.21426869928836823, -0.19127215445041656, 0.37676990032196045]


def drawn(name: str = "query", seed: int = 1, numbers: int = 1 << 20, **options) -> torch.Tensor:
    tensor = torch.empty(numbers)
    draw(tensor, name, seed, **options)
    return tensor


def test_numbers_are_known_to_the_bit():
    """On every device and in every version: results of earlier runs are drawn again from these."""
    assert drawn(numbers=4).tolist() == KNOWN


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_a_gpu_draws_the_same_numbers(dtype):
    cuda = torch.device("cuda")
    for problem in (
        replace(P, sinks=True),
        *STORED,
        replace(P, scope="block", kv_seq_len=0, d_v=0),
    ):
        p = replace(problem, dtype=dtype)
        tensors = [make_tensors(p, device, 1) for device in (CPU, cuda)]
        for one in tensors:
            draw_inputs(p, one.inputs, 2)
        ours, theirs = (one.inputs.named() for one in tensors)
        for name, one in ours.items():
            assert torch.equal(one.double(), theirs[name].cpu().double()), name
        if p.scope == "block":
            weights = (one.weights.tensors() for one in tensors)
            assert all(torch.equal(a, b.cpu()) for a, b in zip(*weights, strict=True))


def test_numbers_are_normal_and_independent():
    x = drawn()
    normal = torch.special.ndtr(x.sort().values)
    steps = (torch.arange(len(x)) + 0.5) / len(x)
    assert float((normal - steps).abs().max()) < 1.63 / 1024  # Kolmogorov and Smirnov, 1 %
    assert abs(float(x.mean())) < 4 / 1024
    assert float(x.var()) == pytest.approx(1, abs=4 * 2**0.5 / 1024)
    apart = [(x[:-k], x[k:]) for k in (1, 2, 64, 4096)]
    others = [(x, drawn(seed=2)), (x, drawn("key")), (x[1:], drawn(seed=2)[:-1])]
    for one, other in apart + others:
        for power in (1, 2):
            both = torch.stack((one.pow(power), other.pow(power)))
            assert abs(float(torch.corrcoef(both)[0, 1])) < 4.5 / 1024
    assert float(drawn(shape="uniform").abs().max()) < 1
    assert float(drawn(shape="uniform").var()) == pytest.approx(1 / 3, abs=0.003)


@pytest.mark.parametrize("chunk", [7, 64, 1000])
def test_numbers_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch, chunk):
    whole = torch.empty(3, 5, 11, 13)
    draw(whole, "key", 4)
    monkeypatch.setattr(drawing, "CPU_CHUNK", chunk)
    for again in (torch.empty_like(whole), torch.empty(3, 11, 5, 13).transpose(1, 2)):
        draw(again, "key", 4)
        assert torch.equal(again, whole)
    part = torch.empty(5, 11, 13)
    draw(part, "key", 4, first=part.numel())  # an odd place
    assert torch.equal(part, whole[1])


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_both_orders_in_memory_have_the_same_numbers(dtype):
    p = replace(P, dtype=dtype, passes="forward+backward", sinks=True)
    heads, model = (make_inputs(p, CPU, 3, order) for order in ("heads", "model"))
    assert not model.query.is_contiguous()
    for name, tensor in heads.named().items():
        assert torch.equal(tensor, model.named()[name])


@pytest.mark.parametrize("problem", [P, replace(P, scope="layer", d_v=0), *STORED])
def test_entries_alone_have_the_numbers_of_the_whole(problem):
    whole = make_inputs(problem, CPU, 1)
    draw_inputs(problem, whole, 2)
    entries = [1, 4]
    _, alone = plain(replace(problem, batch=2), made_entries(problem, entries, 2, 1), torch.float32)
    _, whole = plain(problem, whole, torch.float32)
    for part, tensor in zip(alone, whole, strict=True):
        assert torch.equal(part, tensor[entries])
    if problem.scope == "layer":
        assert alone.query is alone.key is alone.value


def test_a_narrow_dtype_has_the_same_numbers_rounded():
    for scope in ("core", "layer"):
        p = replace(P, scope=scope, d_v=0 if scope == "layer" else 7)
        wide, narrow = make_inputs(p, CPU, 1), make_inputs(replace(p, dtype="bf16"), CPU, 1)
        assert torch.equal(wide.query.bfloat16(), narrow.query)
    weights = make_weights(p, CPU, 1), make_weights(replace(p, dtype="fp16"), CPU, 1)
    assert torch.equal(weights[0].w_o.half(), weights[1].w_o)
