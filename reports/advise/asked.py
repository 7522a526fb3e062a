"""What is asked: a model's attention as plain problems, and the implementations to choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from ...harness.rows.model import ADDED_LATER, AXES

Phase = Literal["prefill", "chunk", "decode", "verify", "training"]
Fields = Mapping[str, Any]
"""A problem's fields, named as in a row."""

KEY = tuple(name for name in AXES if name != "d_model")
"""What a problem of scope "core" consists of; d_model does not matter there."""
LENGTHS = ("seq_len", "kv_seq_len")


def key(problem: Fields) -> tuple[Any, ...]:
    """Equal for problems that are the same computation."""
    width = None if problem.get("scope") == "core" else problem.get("d_model")
    named = (problem.get(name) or ADDED_LATER.get(name, problem.get(name)) for name in KEY)
    return (*named, width)


def growing(problem: Fields) -> tuple[str, ...]:
    """The lengths that are the context: of queries and keys alike, of keys where one token is
    decoded or a few come after many, of queries where the keys are of something else, as an
    encoder's.
    """
    if problem["seq_len"] == problem["kv_seq_len"]:
        return LENGTHS
    after = problem["seq_len"] == 1 or problem.get("causal_align") == "bottom_right"
    return LENGTHS[1:] if after else LENGTHS[:1]


def length(problem: Fields) -> int:
    """The context, in tokens."""
    return int(problem[growing(problem)[0]])


def key_over(problem: Fields) -> tuple[Any, ...]:
    """Equal for problems that differ in their context only."""
    return key({**problem, **dict.fromkeys(growing(problem), 0)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """A value of attn_implementation, and the backend that stands for it in rows.

    `own`: the backend is attnbench's, where Hugging Face's function itself cannot be called.
    `compiles`: anew for each length.
    """

    name: str
    backend: str
    own: bool = False
    compiles: bool = False

    @property
    def input_order(self) -> str:
        """The order of the inputs in memory that its rows must have (`input_order` of a row)."""
        return "heads" if self.own else "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The attention of one kind of layer in one phase, and how many layers have it.

    `problem`: None if attnbench cannot measure it; `why` says why. `cached_bytes`: of one layer's k
    and v, those in the cache of all layers, so that they count once. `appended_bytes`: what is
    beside the cache while that takes up the layer's keys and values.
    """

    phase: Phase
    layer: str
    count: int
    problem: Fields | None
    why: str = ""
    cached_bytes: int = 0
    appended_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """A number of bytes, None if it is not known; `words`: where it is from, or why there is none.

    `at_most`: it may be less.
    """

    value: int | None
    words: str
    at_most: bool = False

    def beside(self, more: int) -> "Bytes":
        """With so many more, or fewer: none at least."""
        return self if self.value is None else replace(self, value=max(0, self.value + more))


class Shapes(Protocol):
    """A model as it is used: its layers' problems and bytes at any context, in tokens."""

    def asked(self, phase: Phase, context: int) -> Sequence[Asked]:
        """Each kind of layer that takes part in the phase."""

    def input_bytes(self, problem: Fields) -> int:
        """Of q, k and v, and of the output's gradient if there is one."""

    def cache_bytes(self, context: int, *, paged: bool = False) -> int:
        """Keys and values of all layers, with windows where layers have them; paged without, in
        whole pages.
        """

    def predicted_peak(self, implementation: Implementation, problem: Fields) -> Bytes:
        """Of one call, by a formula: the backend's own, or at most that of a relative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question about a model on this device.

    `config`: what names the model on the command line; `arguments`: all that was asked there.
    `contexts`: in tokens, shortest first. `most_context`: what the model itself takes.
    `weight_bytes`: of one device's share, `memory_bytes`: None if not known. `weights_in`: the
    dtype of the weights, or how else they are stored. `weights_words`: how they are known, or why
    not. `beside_weights`: the memory is without them. `dtype_guess`: why the dtype is a guess; ""
    if it is none. `kv_dtype`: of keys and values, if it is another. `notes`: what the numbers of
    this model do not contain, in sentences. `cautions`: what of its configuration was not
    understood. `others`: layers that are not attention, with their number; `states`: bytes that one
    of them keeps of a sequence, None if not known.
    """

    config: str
    arguments: Sequence[str]
    model: str
    model_type: str
    device: str
    device_name: str
    dtype: str
    batch: int
    tp: int
    phases: Sequence[Phase]
    contexts: Sequence[int]
    most_context: int | None
    weight_bytes: int | None
    memory_bytes: int | None
    memory_from: str
    implementations: Sequence[Implementation]
    others: Mapping[str, int]
    shapes: Shapes
    weights_in: str = ""
    weights_words: str = ""
    beside_weights: bool = False
    dtype_guess: str = ""
    kv_dtype: str = ""
    notes: Sequence[str] = ()
    cautions: Sequence[str] = ()
    states: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def state_bytes(self) -> int | None:
        """Of all sequences, in the layers that are not attention; None if some are not known."""
        found = [(self.states.get(what, 0), count) for what, count in self.others.items()]
        known = [count * size for size, count in found if size is not None]
        return self.batch * sum(known) if len(known) == len(found) else None

    @property
    def left_bytes(self) -> int | None:
        """Of the memory, what the weights leave; below 0 if they do not fit."""
        if self.weight_bytes is None or self.memory_bytes is None:
            return None
        return self.memory_bytes - self.weight_bytes

    @property
    def devices_for_weights(self) -> int | None:
        """With this memory, for the weights alone."""
        if self.weight_bytes is None or not self.memory_bytes:
            return None
        return -(-self.weight_bytes * self.tp // self.memory_bytes)
