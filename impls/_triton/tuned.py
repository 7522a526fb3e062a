"""The configurations that earlier runs on GPUs chose, tuned.json: they are not timed again.

A choice holds for all problems of its Kind. Batch and heads are not part of a Kind: they change the
number of programs, not what one does. Neither is TF32: choices for fp32 are for full precision.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..problem import ITEM_BYTES, Dtype, Problem
from .configs import KERNELS, Config, Kernel, candidates, padded

FILE = Path(__file__).with_name("tuned.json")
LONGEST = 4096  # the last bucket: longer sequences only repeat the same tiles
PASSES = ("forward", "forward+backward")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kind:
    """What a choice depends on.

    `width`, `queries` and `keys` are the smallest powers of two that hold d_k and d_v, n_q and
    n_kv.
    """

    capability: str
    dtype: Dtype
    width: int
    causal: bool
    passes: str
    queries: int
    keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The fastest listed configurations of a kind, and the run, GPU and Triton that timed them."""

    kind: Kind
    configs: Mapping[Kernel, Config]
    run: str
    gpu: str
    triton: str

    def __post_init__(self) -> None:
        k = self.kind
        kernels = KERNELS if k.passes != "forward" else KERNELS[:1]
        if set(self.configs) != set(kernels):
            raise ValueError(f"configurations of {list(self.configs)}; wanted {list(kernels)}")
        major, minor = map(int, k.capability.split("."))
        for kernel, config in self.configs.items():
            listed = candidates(
                kernel,
                capability=(major, minor),
                item_bytes=ITEM_BYTES[k.dtype],
                width=k.width,
                n_q=k.queries,
                causal=k.causal,
                triton=self.triton,
            )
            if config not in listed:
                raise ValueError(
                    f"{kernel}: {config} is not listed for {k}; wanted one of {list(listed)}"
                )
        for name in ("run", "gpu", "triton"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} is {value!r}; wanted the name of the one that chose")


def kind_of(problem: Problem, capability: tuple[int, int]) -> Kind:
    p = problem
    return Kind(
        capability=f"{capability[0]}.{capability[1]}",
        dtype=p.dtype,
        width=padded(max(p.d_k, p.d_v)),
        causal=p.causal,
        passes=PASSES[p.backward],
        queries=_bucket(p.seq_len - p.empty_rows),
        keys=_bucket(p.kv_seq_len),
    )


def read(path: Path = FILE) -> dict[Kind, Choice]:
    """Raises ValueError, with the choice's number, for what the table cannot hold."""
    choices: dict[Kind, Choice] = {}
    for number, entry in enumerate(json.loads(path.read_text())["choices"], 1):
        try:
            choice = _parsed(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path.name}: choice {number}: {error}") from error
        if choice.kind in choices:
            raise ValueError(
                f"{path.name}: choice {number}: a second one for {choice.kind}; wanted one"
            )
        choices[choice.kind] = choice
    return choices


def _parsed(entry: Mapping[str, Any]) -> Choice:
    rest = dict(entry)
    kind = Kind(**{field.name: rest.pop(field.name) for field in fields(Kind)})
    configs: dict[Kernel, Config] = {
        kernel: Config(**numbers) for kernel, numbers in rest.pop("configuration").items()
    }
    return Choice(kind=kind, configs=configs, **rest)


def _bucket(tokens: int) -> int:
    return min(LONGEST, 1 << (tokens - 1).bit_length())
