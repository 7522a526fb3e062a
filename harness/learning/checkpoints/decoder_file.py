"""A small decoder of impls/block.py as a safetensors file: weights, and a few words about them.

The tensors have the names of the decoder's parameters. The metadata, all text, are `format` and
`heads`, which the shapes do not show, and what it was trained on: `task`, `train_seed`, `steps`.
Every other size follows from shapes. Needs the package safetensors.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ....impls.block import Decoder
from ....impls.problem import Problem
from ...files.errors import BadInput, shown
from ...files.safe_files import make_folder, write_whole

FORMAT = "attnbench-decoder-1"
BACKEND = "fused"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
BLOCK_NAME = re.compile(r"blocks\.([0-9]{1,4})\..+")
MOST_TEXT = 64  # characters of a value of the metadata


class Stored(NamedTuple):
    """A decoder and its metadata, without `format` and `heads`."""

    model: Decoder
    about: dict[str, str]


def save(model: Decoder, path: Path, about: Mapping[str, str | int]) -> None:
    """Written whole or not at all; the folder is made. Raises OSError; ImportError without the
    package.
    """
    from safetensors.torch import save as as_bytes

    tensors = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    words = {"format": FORMAT, "heads": str(model.problem.heads)}
    data = as_bytes(tensors, metadata=words | {name: str(one) for name, one in about.items()})
    make_folder(path.parent)
    write_whole(path, data)


def read(path: Path, device: torch.device, most_bytes: int | None = None) -> Stored:
    """The decoder of a file, in fp32, causal. Raises BadInput.

    `most_bytes`: that its weights may take.
    """
    place = shown(str(path))
    tensors, about = _content(path, place)
    if about.pop("format", None) != FORMAT:
        raise BadInput(
            f"{place}: not a decoder of attnbench (no format {FORMAT} in its metadata); wanted one"
            " that a run with save_models wrote; for a model of Hugging Face name its folder"
        )
    wanted = 4 * sum(one.numel() for one in tensors.values())
    if most_bytes is not None and wanted > most_bytes:
        raise BadInput(
            f"{place}: its weights take {wanted} bytes; wanted at most the memory budget,"
            f" {most_bytes}; raise it with --memory-gib"
        )
    for name, one in tensors.items():
        if one.dtype not in DTYPES or not bool(one.isfinite().all()):
            what = f"{one.dtype}".removeprefix("torch.") if one.dtype not in DTYPES else ""
            raise BadInput(
                f"{place}: {shown(name)}: {what or 'a weight that is not a finite number'}; wanted"
                " finite fp32, fp16 or bf16"
            )
    model = _empty(tensors, about.pop("heads", ""), place)
    expected = {name: tuple(one.shape) for name, one in model.state_dict().items()}
    found = {name: tuple(one.shape) for name, one in tensors.items()}
    if different := sorted(
        name for name in {*expected, *found} if expected.get(name) != found.get(name)
    ):
        name = different[0]
        raise BadInput(
            f"{place}: {shown(name)}: {_shape(found.get(name))}; wanted"
            f" {_shape(expected.get(name))}, as the other tensors and {model.problem.heads} heads"
            " ask for"
        )
    ready = {name: one.to(device, torch.float32) for name, one in tensors.items()}
    model.load_state_dict(ready, assign=True)
    return Stored(model.requires_grad_(requires_grad=False), about)


def _content(path: Path, place: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{place}: {reason[:200]}; wanted a whole safetensors file") from None
    return tensors, {str(name): str(value)[:MOST_TEXT] for name, value in about.items()}


def _empty(tensors: Mapping[str, Tensor], heads: str, place: str) -> Decoder:
    """A decoder without memory, of the sizes that the tensors have. Raises BadInput."""
    blocks = {int(match[1]) for name in tensors if (match := BLOCK_NAME.fullmatch(name))}
    try:
        vocabulary, d_model = tensors["embedding.weight"].shape
        longest, _ = tensors["position.weight"].shape
        d_ff, _ = tensors["blocks.0.up.weight"].shape
        problem = Problem(
            batch=1,
            seq_len=longest,
            d_model=d_model,
            heads=int(heads) if heads.isdecimal() else 0,
            causal=True,
            scope="layer",
        )
    except KeyError as error:
        raise BadInput(f"{place}: {error} is missing; wanted all weights of a decoder") from None
    except ValueError as error:
        raise BadInput(f"{place}: heads {shown(heads)}: {error}; wanted sizes that fit") from None
    return Decoder(
        problem, vocabulary, len(blocks), BACKEND, device=torch.device("meta"), d_ff=d_ff
    )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "no such tensor" if shape is None else f"shape {list(shape)}"
