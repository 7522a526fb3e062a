"""A question about a model: as options have it, and as reports.advise answers it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..files.errors import BadInput, option, shown
from ..verbs import completion
from ..verbs.fields import LIMITS, SHAPE
from ..verbs.request import Option

if TYPE_CHECKING:
    from ...impls.problem import Dtype
    from ...reports.advise.asked import Inquiry, Phase
    from ..devices.this_device import ThisDevice
    from ..models.layers import Model

USUAL_CONTEXT = 8192  # tokens, if the model takes so many
MOST_TOKENS = 1 << 27
MOST_GIB = 1 << 20
GIB = 2**30


def text_of(value: Any) -> Any:
    """`512,1k` of [512, "1k"]."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value) if type(value) in (int, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The model, and the shapes that are asked about."""

    model: Annotated[
        str | Path,
        Option(
            "MODEL", argument=True, complete=completion.models, wanted="a name or a config.json"
        ),
    ]
    """Name from attnbench list models, a Hugging Face config.json or its folder."""
    context: Annotated[str | None, Option("SIZE,SIZE", SHAPE, parse=text_of)] = None
    """Tokens of context (default: 8k or the model's limit); such as 8k,32k."""
    batch: Annotated[int, Option("COUNT", SHAPE, least=1)] = 1
    """Number of sequences."""
    dtype: Annotated[str | None, Option("NAME", SHAPE, complete=completion.values_of("dtype"))] = (
        None
    )
    """fp32, bf16 or fp16 (default: that of the model's weights)."""
    kv_dtype: Annotated[str | None, Option("fp8|q8|q4", SHAPE)] = None
    """Format of stored keys and values, for their bytes."""
    phase: Annotated[str | None, Option("A,B", SHAPE, parse=text_of)] = None
    """Some of prefill, chunk, decode, verify, training (default: prefill,decode)."""
    chunk: Annotated[int | None, Option("COUNT", SHAPE, least=1)] = None
    """Prompt tokens computed in phase chunk (default: 512)."""
    draft: Annotated[int | None, Option("COUNT", SHAPE, least=1)] = None
    """Drafted tokens computed in phase verify (default: 4)."""
    tp: Annotated[int, Option("COUNT", SHAPE, least=1)] = 1
    """Tensor parallelism: devices that share the heads; bytes are per device."""
    memory_gib: Annotated[float | None, Option("G", LIMITS, above=0, most=MOST_GIB)] = None
    """Memory in GiB (default: the device's); for weights, keys, values and attention."""
    beside_weights: Annotated[bool, Option(group=LIMITS)] = False
    """--memory-gib excludes the weights."""


def inquiry_of(asked: Question, here: "ThisDevice", arguments: Sequence[str]) -> "Inquiry":
    """`arguments`: the question as a shell takes it. Raises BadInput."""
    from ...impls.problem import ITEM_BYTES
    from ...reports.advise.asked import Inquiry
    from ..models.questions import KV_BITS
    from ..models.resolve import model_of
    from .shapes import ModelShapes, implementations, weights_of

    if asked.kv_dtype not in (None, *KV_BITS):
        raise BadInput(
            f"{option('kv_dtype', shown(asked.kv_dtype))}: wanted one of {', '.join(KV_BITS)}"
        )
    model = model_of(str(asked.model)).divided(asked.tp)
    phases, (dtype, guess) = _phases(asked.phase, model), _dtype(asked.dtype, model)
    memory_gib, kv_dtype = asked.memory_gib, asked.kv_dtype or model.kv_dtype
    weights, stored, words = weights_of(model, dtype, given=asked.dtype is not None)
    return Inquiry(
        config=str(asked.model),
        arguments=[*arguments],
        model=model.name,
        model_type=model.model_type,
        device=here.kind,
        device_name=here.name,
        dtype=dtype,
        batch=asked.batch,
        tp=asked.tp,
        phases=phases,
        contexts=_contexts(asked.context, model),
        most_context=model.max_context,
        weight_bytes=None if weights is None or asked.beside_weights else weights // asked.tp,
        weights_in=f"{stored}, which is a guess" if guess and stored == f"in {dtype}" else stored,
        weights_words=words,
        beside_weights=asked.beside_weights,
        dtype_guess=guess,
        kv_dtype=kv_dtype,
        notes=_notes(model),
        cautions=model.cautions,
        memory_bytes=here.memory_bytes if memory_gib is None else int(memory_gib * GIB),
        memory_from=here.memory_from if memory_gib is None else f"{memory_gib:g} GiB, as given",
        implementations=implementations(),
        others={layer.what: count for layer, count in model.others()},
        states={layer.what: layer.state_bytes(ITEM_BYTES[dtype]) for layer, _ in model.others()},
        shapes=ModelShapes(
            model=model,
            batch=asked.batch,
            dtype=dtype,
            device=here.kind,
            kv_dtype=kv_dtype,
            queries=_queries(asked, phases),
        ),
    )


def _queries(asked: Question, phases: "Sequence[Phase]") -> "dict[Phase, int]":
    """Tokens of a chunk and of a verification, where they are given. Raises BadInput."""
    given: dict[Phase, int | None] = {"chunk": asked.chunk, "verify": asked.draft}
    for (phase, count), name in zip(given.items(), ("chunk", "draft"), strict=True):
        if count is not None and phase not in phases:
            raise BadInput(f"{option(name, count)}: wanted it with {option('phase', phase)}")
    return {phase: n + (phase == "verify") for phase, n in given.items() if n is not None}


def _notes(model: "Model") -> list[str]:
    """What numbers of this model do not contain, in sentences."""
    found = [model.reader] if model.reader else []
    found += [f"Left out: attention of {part}; its weights count." for part in model.left_out]
    if any(layer.latent for layer, _ in model.attention()):
        found.append(
            "transformers keeps one latent per token and expands it to all heads' keys and values"
            " at each call. Attention's time leaves this expansion out. Engines that attend to"
            " the latent itself in decode were not measured."
        )
    return found


def _contexts(text: str | None, model: "Model") -> list[int]:
    """Shortest first. Raises BadInput, also beyond what the model takes."""
    fixed = {layer.seq_len for layer, _ in model.attention()}
    if text is None:
        if fixed and 0 not in fixed:
            return [max(fixed)]
        return [min(USUAL_CONTEXT, model.max_context or USUAL_CONTEXT)]
    found = sorted({_tokens(part.strip()) for part in text.split(",")})
    if model.max_context is not None and found[-1] > model.max_context:
        raise BadInput(
            f"{option('context', found[-1])}: {model.name} takes at most {model.max_context}"
            " tokens; wanted no more"
        )
    return found


def _tokens(text: str) -> int:
    """8192 or 8k, as scenarios write sizes."""
    if match := re.fullmatch(r"([0-9]{1,12})([kKmM]?)", text):
        tokens = int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()]
        if 1 <= tokens <= MOST_TOKENS:
            return tokens
    raise BadInput(
        f"{option('context', shown(text))}: wanted a number of tokens from 1 to {MOST_TOKENS}, as"
        " 8192 or 8k"
    )


def _dtype(text: str | None, model: "Model") -> "tuple[Dtype, str]":
    """The weights' own, unless another is given. A guess where theirs is none of ours, and why:
    fp32, as transformers has it then, or bf16 for what is quantized.
    """
    from ...impls.problem import ITEM_BYTES
    from ..cases.case import VALUE_ALIASES
    from ..models.questions import DTYPES

    if text is None:
        if known := DTYPES.get(model.dtype or ""):
            return known, ""
        found = (
            f"config.json has dtype {model.dtype}" if model.dtype else "config.json names no dtype"
        )
        # what is quantized was trained in bf16 by all that publish it, and computes in it
        quantized = model.weights is not None and model.weights.method
        return "bf16" if quantized else "fp32", f"{found}; set it with --dtype"
    name = VALUE_ALIASES.get("dtype", {}).get(text, text)
    for one in ITEM_BYTES:
        if name == one:
            return one, ""
    raise BadInput(f"{option('dtype', shown(text))}: wanted one of {', '.join(ITEM_BYTES)}")


def _phases(text: str | None, model: "Model") -> "list[Phase]":
    """Raises BadInput for a phase in which the model has no attention."""
    from ..models.questions import GENERATING, PHASES

    stacks = {layer.stack for layer, _ in model.attention()}
    decodes = bool(stacks - {"encoder"})
    if text is None:
        return ["prefill", "decode"] if decodes else ["prefill"]
    names = [part.strip() for part in text.split(",")]
    found: list[Phase] = [phase for phase in PHASES if phase in names]
    if wrong := [name for name in names if name not in PHASES]:
        raise BadInput(f"{option('phase', shown(wrong[0]))}: wanted one of {', '.join(PHASES)}")
    after = [phase for phase in found if phase in GENERATING]
    if after and not decodes:
        raise BadInput(
            f"{option('phase', after[0])}: {model.name} has no decoder; wanted prefill or training"
        )
    return found
