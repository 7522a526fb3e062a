"""The fields of a scenario below its top level: what each may hold, and what it means.

Everything is strict: "4", 1.0 and true are no numbers. A single value stands for a list of one. The
descriptions are the documentation: editors show them through scenarios/schema.json.
"""

import re
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ...impls.problem import Dtype, Mask, Passes, Scope

DeviceKind = Literal["cpu", "cuda"]
Align = Literal["top_left", "bottom_right"]
AxisName = Literal[
    "batch", "seq_len", "kv_seq_len", "d_model", "heads", "kv_heads", "d_k", "d_v",
    "dtype", "causal", "causal_align", "mask", "window", "passes", "scope",
]  # fmt: skip

ALIASES = {"N": "seq_len", "h": "heads", "B": "batch"}
LARGEST_SIZE = 1 << 40
RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}  # device files on Windows
WANTED_SIZE = "a whole number from 1 on, such as 512 or 1k"


def wanted(what: str) -> PydanticCustomError:
    """The error of a value that is not `what`."""
    return PydanticCustomError("wanted", "{what}", {"what": what})


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def as_size(value: Any) -> Any:
    if isinstance(value, str):
        if found := re.fullmatch(r"([0-9]{1,12})([kKmM])", value):
            value = int(found[1]) * {"k": 1024, "m": 1024**2}[found[2].lower()]
        elif value.isdecimal():
            raise wanted(f"{WANTED_SIZE}, without quotes")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wanted(WANTED_SIZE)
    if value > LARGEST_SIZE:
        raise wanted(f"at most {LARGEST_SIZE}")
    return value


def inert(text: str) -> str:
    """Free text without what could drive a terminal or turn the reading direction; markup stays,
    and is escaped where shown.
    """
    for character in text.strip():
        if unicodedata.category(character) in ("Cc", "Cf", "Cs") and character != "\n":
            raise wanted(f"plain text without U+{ord(character):04X}")
    return text.strip()


def asked(text: str) -> str:
    if not text.strip():
        raise wanted("a question in plain words")
    return inert(text)


def safe_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) or name in RESERVED:
        raise wanted("a name of at most 64 lowercase letters, digits, _ and -, such as memory_wall")
    return name


SizeText = Annotated[str, Field(pattern=r"^[0-9]+[kKmM]$")]
SizeInput = Annotated[int, Field(ge=1)] | SizeText
Size = Annotated[int, BeforeValidator(as_size, json_schema_input_type=SizeInput)]
Text = Annotated[str, AfterValidator(inert)]
Question = Annotated[str, AfterValidator(asked)]
Name = Annotated[
    str,
    AfterValidator(safe_name),
    Field(json_schema_extra={"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}),
]
AtLeastOne = Field(min_length=1)
Sizes = Annotated[
    tuple[Size, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=SizeInput | list[SizeInput]),
]
Dtypes = Annotated[
    tuple[Dtype, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=Dtype | list[Dtype]),
]
Bools = Annotated[
    tuple[bool, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=bool | list[bool]),
]
Aligns = Annotated[
    tuple[Align, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=Align | list[Align]),
]
Masks = Annotated[
    tuple[Mask, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=Mask | list[Mask]),
]
PassesList = Annotated[
    tuple[Passes, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=Passes | list[Passes]),
]
Scopes = Annotated[
    tuple[Scope, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, json_schema_input_type=Scope | list[Scope]),
]

MEANING: dict[str, str] = {
    "batch": "Sequences at a time; 1 if not given. Also written B.",
    "seq_len": (
        "Length of the query sequence in tokens; 1k = 1024, 1m = 1024 * 1024. Also written N."
    ),
    "kv_seq_len": "Length of the key and value sequence, where it differs from seq_len.",
    "d_model": "Width of the model: the last dimension of the layer's input.",
    "heads": "Number of query heads. Also written h.",
    "kv_heads": (
        "Number of key and value heads, where it differs from heads (grouped queries); heads must"
        " be a multiple of it."
    ),
    "d_k": "Width of one head's queries and keys; d_model / heads if not given.",
    "d_v": "Width of one head's values; d_model / heads if not given.",
    "dtype": "Number format: fp32, bf16 or fp16.",
    "causal": "Whether a token sees only itself and what came before it.",
    "causal_align": (
        "From which corner the causal triangle starts; must be given where kv_seq_len differs from"
        " seq_len."
    ),
    "mask": (
        "Which pairs count beside causal: none (no mask), padding, random, local, strided or"
        " blocks."
    ),
    "window": (
        "Size of a mask that has one: keys to either side (local), the stride (strided), blocks of"
        " 64 keys per query block (blocks)."
    ),
    "passes": (
        "What is computed: forward, backward (alone, after a forward pass that is not timed) or"
        " forward+backward."
    ),
    "scope": (
        "core starts from q, k and v per head; layer adds the projections into them and the output"
        " projection."
    ),
}


class Strict(BaseModel):
    """No field beyond those named, no conversion of types, no change afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Axes(Strict):
    """Values to measure, per axis; every combination is one problem. An axis that is left out keeps
    its usual value.
    """

    batch: Sizes = Field(default=(), description=MEANING["batch"])
    seq_len: Sizes = Field(default=(), description=MEANING["seq_len"])
    kv_seq_len: Sizes = Field(default=(), description=MEANING["kv_seq_len"])
    d_model: Sizes = Field(default=(), description=MEANING["d_model"])
    heads: Sizes = Field(default=(), description=MEANING["heads"])
    kv_heads: Sizes = Field(default=(), description=MEANING["kv_heads"])
    d_k: Sizes = Field(default=(), description=MEANING["d_k"])
    d_v: Sizes = Field(default=(), description=MEANING["d_v"])
    dtype: Dtypes = Field(default=(), description=MEANING["dtype"])
    causal: Bools = Field(default=(), description=MEANING["causal"])
    causal_align: Aligns = Field(default=(), description=MEANING["causal_align"])
    mask: Masks = Field(default=(), description=MEANING["mask"])
    window: Sizes = Field(default=(), description=MEANING["window"])
    passes: PassesList = Field(default=(), description=MEANING["passes"])
    scope: Scopes = Field(default=(), description=MEANING["scope"])


class Grid(Axes):
    """The axes, and what differs on one kind of device."""

    cpu: Axes | None = Field(default=None, description="Axes that take other values on a CPU.")
    cuda: Axes | None = Field(default=None, description="Axes that take other values on a GPU.")


class ExtraCase(Strict):
    """One problem that fits no grid. An axis that is left out takes the grid's value, which must
    then be a single one.
    """

    device: DeviceKind | None = Field(
        default=None, description="Measure this case on this kind of device only."
    )
    batch: Size | None = Field(default=None, description=MEANING["batch"])
    seq_len: Size | None = Field(default=None, description=MEANING["seq_len"])
    kv_seq_len: Size | None = Field(default=None, description=MEANING["kv_seq_len"])
    d_model: Size | None = Field(default=None, description=MEANING["d_model"])
    heads: Size | None = Field(default=None, description=MEANING["heads"])
    kv_heads: Size | None = Field(default=None, description=MEANING["kv_heads"])
    d_k: Size | None = Field(default=None, description=MEANING["d_k"])
    d_v: Size | None = Field(default=None, description=MEANING["d_v"])
    dtype: Dtype | None = Field(default=None, description=MEANING["dtype"])
    causal: bool | None = Field(default=None, description=MEANING["causal"])
    causal_align: Align | None = Field(default=None, description=MEANING["causal_align"])
    mask: Mask | None = Field(default=None, description=MEANING["mask"])
    window: Size | None = Field(default=None, description=MEANING["window"])
    passes: Passes | None = Field(default=None, description=MEANING["passes"])
    scope: Scope | None = Field(default=None, description=MEANING["scope"])


Allocator = Literal["warm_heap", "default"]

PLANS: dict[str, dict[str, int | float]] = {
    "quick": {
        "processes": 1,
        "min_blocks": 6,
        "max_blocks": 11,
        "precision_ratio": 0.05,
        "budget_s": 2.0,
        "windows": 1,
        "window_s": 2.0,
    },
    "standard": {
        "processes": 5,
        "min_blocks": 2,
        "max_blocks": 6,
        "precision_ratio": 0.03,
        "budget_s": 10.0,
        "windows": 3,
        "window_s": 6.0,
    },
    "rigorous": {
        "processes": 10,
        "min_blocks": 3,
        "max_blocks": 15,
        "precision_ratio": 0.01,
        "budget_s": 60.0,
        "windows": 5,
        "window_s": 6.0,
    },
}


class Plan(Strict):
    """How long and how often to measure. Fields that are left out come from the named plan."""

    like: Literal["quick", "standard", "rigorous"] = Field(
        default="standard", description="The named plan that gives the other fields."
    )
    processes: int = Field(
        default=5,
        ge=1,
        le=64,
        description=(
            "Worker processes that each measure every case: with one, run-to-run variation is not"
            " included."
        ),
    )
    min_blocks: int = Field(
        default=2,
        ge=1,
        le=1000,
        description="Fewest blocks per process; a block calls all backends in turn.",
    )
    max_blocks: int = Field(default=6, ge=1, le=1000, description="Most blocks per process.")
    precision_ratio: float = Field(
        default=0.03,
        gt=0,
        le=1,
        description=(
            "Stop once the 95 % intervals of the latency and of its ratios are this wide to either"
            " side: 0.05 is 5 %."
        ),
    )
    budget_s: float = Field(
        default=10.0,
        gt=0,
        le=86_400,
        description="Stop a case after this many seconds of sampling, precise or not.",
    )
    windows: int = Field(
        default=3,
        ge=1,
        le=100,
        description=(
            "How often utilization and energy are measured per case; with one there is no interval."
        ),
    )
    window_s: float = Field(
        default=6.0,
        ge=0.2,
        le=600,
        description=(
            "How long one such window is. Counters are averages over 0.1 to 1 s: short windows are"
            " coarse."
        ),
    )
    allocator: Allocator = Field(
        default="warm_heap",
        description=(
            "On a CPU: warm_heap keeps freed memory while latency is measured, so that no call pays"
            " for page faults; default leaves the C library as it is."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def fill(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in PLANS:
                raise PydanticCustomError("choice", "{options}", {"options": tuple(PLANS)})
            value = {"like": value}
        if not isinstance(value, dict | Plan):
            raise wanted("quick, standard, rigorous or a mapping of fields")
        if isinstance(value, dict):
            like = value.get("like", "standard")
            return {**PLANS.get(like if isinstance(like, str) else "", {}), **value}
        return value

    @model_validator(mode="after")
    def ordered(self) -> "Plan":
        if self.min_blocks > self.max_blocks:
            found = f"min_blocks ({self.min_blocks}) is larger than max_blocks ({self.max_blocks})"
            raise PydanticCustomError(
                "told", "{found}; wanted it the other way; set both", {"found": found}
            )
        return self


class Limits(Strict):
    """What a case may cost before it is stopped, and how many cases a scenario may have."""

    timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description=(
            "A case of which one step takes longer (a call, a warm-up, a block) is stopped, with"
            " the status timeout."
        ),
    )
    memory_gib: float | None = Field(
        default=None,
        gt=0,
        description=(
            "Memory for inputs and peak together, in GiB; a safe share of what is available if not"
            " given."
        ),
    )
    max_cases: int = Field(
        default=10_000,
        ge=1,
        description="A scenario with more cases is refused before anything is expanded.",
    )
