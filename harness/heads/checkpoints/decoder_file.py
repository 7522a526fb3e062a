"""Safetensors files: what they hold, and a small decoder of impls/modules/block.py in one.

A decoder's tensors have the names of its parameters. The metadata, all text, are `format` and
`heads`, which the shapes do not show, and what it was trained on: `task`, `train_seed`, `steps`.
Every other size follows from shapes. Needs the package safetensors.
"""

import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ....impls.modules.block import Decoder
from ....impls.problem import Problem
from ...files.errors import BadInput, first_line, option, shown
from ...files.printable import visible
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
    tensors, words = read_tensors([path], place, most_bytes)
    about = {name: value[:MOST_TEXT] for name, value in words.items()}
    if about.pop("format", None) != FORMAT:
        raise BadInput(
            f"{place}: not a decoder of attnbench (no format {FORMAT} in its metadata); wanted one"
            " that a run with save_models wrote; for a model of Hugging Face name its folder"
        )
    for name, one in tensors.items():
        if one.dtype not in DTYPES or not bool(one.isfinite().all()):
            what = f"{one.dtype}".removeprefix("torch.") if one.dtype not in DTYPES else ""
            raise BadInput(
                f"{place}: {shown(name)}: {what or 'a weight that is not a finite number'}; wanted"
                " finite fp32, fp16 or bf16"
            )
    heads = about.pop("heads", "")
    try:
        model = _empty(tensors, heads)
        ready = {name: one.to(device, torch.float32) for name, one in tensors.items()}
        model.load_state_dict(ready, assign=True)
    except (KeyError, ValueError, RuntimeError) as error:
        why = visible(str(error).splitlines()[-1].strip()[:200])
        raise BadInput(
            f"{place}: heads {shown(heads)}: {why}; wanted all weights of a decoder, of sizes that"
            " fit"
        ) from None
    return Stored(model.requires_grad_(requires_grad=False), about)


def _empty(tensors: Mapping[str, Tensor], heads: str) -> Decoder:
    """A decoder without memory, of the sizes that the tensors have. Raises KeyError, ValueError."""
    blocks = {int(match[1]) for name in tensors if (match := BLOCK_NAME.fullmatch(name))}
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
    return Decoder(
        problem, vocabulary, len(blocks), BACKEND, device=torch.device("meta"), d_ff=d_ff
    )


def read_tensors(
    files: Sequence[Path], place: str, most_bytes: int | None
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """By name. `most_bytes`: that they may take in fp32. Raises BadInput."""
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Tensor] = {}
    about: dict[str, str] = {}
    taken = 0
    try:
        for path in files:
            with safe_open(path, framework="pt") as file:
                about |= file.metadata() or {}
                for name in file.keys():  # noqa: SIM118 - no mapping
                    taken += 4 * prod(file.get_slice(name).get_shape())
                    if most_bytes is not None and taken > most_bytes:
                        raise BadInput(
                            f"{place}: its weights take more than the memory budget, {most_bytes}"
                            " bytes, in fp32; wanted a smaller model; raise it with"
                            f" {option('memory_gib')}"
                        )
                    tensors[name] = file.get_tensor(name)
    except BadInput:
        raise
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        why = visible(first_line(error)[:200])
        raise BadInput(f"{place}: {why}; wanted a whole safetensors file") from None
    return tensors, about
