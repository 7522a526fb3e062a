"""The tensors and the metadata of safetensors files."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

from torch import Tensor

from ...files.errors import BadInput, first_line
from ...files.printable import visible


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
                            " bytes, in fp32; wanted a smaller model; raise it with --memory-gib"
                        )
                    tensors[name] = file.get_tensor(name)
    except BadInput:
        raise
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        why = visible(first_line(error)[:200])
        raise BadInput(f"{place}: {why}; wanted a whole safetensors file") from None
    return tensors, about
