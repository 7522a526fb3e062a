"""The functions of the real package, called as its models call them."""

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.measure.prepared_call import make_gradient
from attnbench.impls import Problem, input_order, load, make_inputs, missing
from attnbench.impls.shared import flash_attention

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
installed = pytest.mark.skipif(missing("hf") is not None, reason=str(missing("hf")))


def output(name: str, problem: Problem) -> Tensor:
    with torch.no_grad():
        inputs = make_inputs(problem, CPU, 0, input_order(name, problem))
        return load(name).prepare(problem, inputs, None)()


BERT = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 10,
    "num_attention_heads": 4, "max_position_embeddings": 64,
}  # fmt: skip
LLAMA = {**BERT, "num_key_value_heads": 2}


def axes_in_memory(tensor: Tensor) -> list[int]:
    """From the slowest to the fastest, without those of one element."""
    axes = [axis for axis in range(tensor.dim()) if tensor.shape[axis] > 1]
    return sorted(axes, key=lambda axis: -tensor.stride(axis))


def tensors_of_a_model(
    monkeypatch: pytest.MonkeyPatch, config: Any, run: Any
) -> tuple[list[Tensor], list[Tensor]]:
    """q, k and v that a model's layer gives its attention function, and its output's gradient."""
    import transformers
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    theirs = ALL_ATTENTION_FUNCTIONS["sdpa"]
    seen: list[list[Tensor]] = []
    gradients: list[Tensor] = []

    def watched(layer: Any, q: Tensor, k: Tensor, v: Tensor, *rest: Any, **named: Any) -> Any:
        seen.append([q, k, v])
        o, weights = theirs(layer, q, k, v, *rest, **named)
        if o.requires_grad:
            o.register_hook(lambda gradient: gradients.append(gradient.transpose(1, 2)))
        return o, weights

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", watched)
    torch.manual_seed(0)
    run(transformers.AutoModel.from_config(config))
    return seen[-1], gradients


def forward(model: Any) -> None:
    with torch.no_grad():
        model.eval()(torch.randint(0, 10, (2, 9)))


def decode(model: Any) -> None:
    with torch.no_grad():
        first = model.eval()(torch.randint(0, 10, (2, 9)))
        model(torch.randint(0, 10, (2, 1)), past_key_values=first.past_key_values)


def train(model: Any) -> None:
    found = model.train()(torch.randint(0, 10, (2, 9)), use_cache=False)
    found.last_hidden_state.sum().backward()


@installed
@pytest.mark.parametrize(
    ("kind", "run", "changes"),
    [
        ("Llama", forward, {"causal": True}),
        ("Llama", decode, {"seq_len": 1, "causal": True, "causal_align": "bottom_right"}),
        ("Llama", train, {"causal": True, "passes": "forward+backward"}),
        ("Bert", forward, {"kv_heads": 4}),
    ],
)
def test_inputs_lie_in_memory_as_those_of_a_real_model(
    monkeypatch: pytest.MonkeyPatch, kind: str, run: Any, changes: dict[str, Any]
) -> None:
    import transformers

    sizes = LLAMA if kind == "Llama" else BERT
    config = getattr(transformers, f"{kind}Config")(**sizes, attn_implementation="sdpa")
    theirs, gradients = tensors_of_a_model(monkeypatch, config, run)
    queries = changes.get("seq_len", 9)
    given = {"seq_len": 9, "kv_seq_len": 9 + (queries == 1), "kv_heads": 2, **changes}
    problem = Problem(batch=2, d_model=32, heads=4, **given)
    ours = make_inputs(problem, CPU, 0, "model")
    for mine, of_model in zip(ours, theirs, strict=True):
        assert mine.shape == of_model.shape
        assert axes_in_memory(mine) == axes_in_memory(of_model)
        assert mine.is_leaf
        assert mine.requires_grad == problem.backward
    gradient = make_gradient(problem, CPU, 0, "model")
    assert (gradient is None) == (not gradients)
    for of_model in gradients:
        assert gradient.shape == of_model.shape
        assert axes_in_memory(gradient) == axes_in_memory(of_model)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What their function sdpa is given; it returns the values."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    seen = []

    def theirs(layer: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, **options: Any) -> tuple:
        of_layer = layer.config._attn_implementation, layer.num_key_value_groups
        seen.append({"layer": of_layer, "keys": tuple(k.shape), "mask": mask, **options})
        return v.repeat_interleave(layer.num_key_value_groups, 1).transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", theirs)
    return seen


@installed
def test_it_is_their_functions_that_run(calls: list[dict[str, Any]]) -> None:
    problem = Problem(batch=1, seq_len=4, d_model=16, heads=2, kv_heads=1, causal=True)
    assert output("hf", problem).shape == (1, 2, 4, 8)
    given = {"layer": ("sdpa", 2), "keys": (1, 1, 4, 8), "mask": None}
    assert calls == [{**given, "scaling": problem.scale, "dropout": 0.0, "is_causal": True}]


HUB = "org/attention@v1"


def fake_flash_attn(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=None,
                    softcap=0.0):  # fmt: skip
    """The signature of flash-attn 2, computed by torch: [batch, n, heads, width]."""
    q, k, v = (one.transpose(1, 2) for one in (q, k, v))
    visible = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    more = k.shape[2] - q.shape[2]
    visible = visible.tril(more) if causal else visible
    if window_size is not None and window_size[0] >= 0:
        visible = visible.triu(more - window_size[0]).tril(more + window_size[1])
    o = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, visible, scale=softmax_scale, enable_gqa=True
    )
    return o.transpose(1, 2)


@installed
@pytest.mark.parametrize("mask", ["none", "local"])
def test_a_kernel_of_the_hub_is_asked_for_by_its_name_and_called_as_models_call_it(
    monkeypatch: pytest.MonkeyPatch, mask: str
) -> None:
    from types import SimpleNamespace

    from transformers.integrations import hub_kernels

    kernel = SimpleNamespace(
        flash_attn_func=fake_flash_attn, flash_attn_varlen_func=fake_flash_attn
    )
    fetched: list[tuple[str, str]] = []

    def from_hub(name: str, *, revision: str, **_: Any) -> Any:
        fetched.append((name, revision))
        return kernel

    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    monkeypatch.setattr(hub_kernels, "get_kernel", from_hub)
    problem = Problem(
        batch=2, seq_len=4, kv_seq_len=9, d_model=16, heads=4, kv_heads=2, causal=True,
        causal_align="bottom_right", mask=mask, window=3 if mask == "local" else 0, dtype="bf16",
    )  # fmt: skip
    assert torch.allclose(output(HUB, problem), output("naive", problem), atol=0.02)
    assert set(fetched) <= {("org/attention", "v1")}  # once for both masks


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hf:flash_attention_2", "flash-attn, which is not installed: pip install flash-attn;"),
        ("flash_attention_3", "or --backends kernels-community/vllm-flash-attn3 --allow-import"),
        ("hf:flash_attention_3", "--find-links https://download.pytorch.org/whl/flash-attn-3/;"),
        ("paged|flash_attention_4", "kernels-community/flash-attn4"),
        ("paged|eager", "needs the paged cache of continuous batching"),
        ("hf:kernel", "wanted a kernel of the Hub"),
        ("hf:kernel[repo=no-owner]", "wanted a kernel of the Hub"),
        ("org/attention", "needs kernels, which is not installed"),
    ],
)
@installed
def test_what_is_not_here_is_named_and_never_fetched(
    monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    def absent(package: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(flash_attention, "version", absent)
    assert said in (load(name).unavailable(CUDA) or "")
