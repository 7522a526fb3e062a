"""On which stream each node of autograd runs: the one that was current when it was made.

A leaf has one node, which lives as long as a graph that ends in it.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from .gpu import INVALIDATED, FakeGpu

STREAM = "the fake GPU's stream"  # in a node's metadata, which lives as long as the node


def note_streams(gpu: FakeGpu, result: object) -> None:
    """Of the nodes that have been made for a result."""
    waiting = [*_nodes(result)]
    while waiting:
        node = waiting.pop()
        if STREAM not in node.metadata:
            node.metadata[STREAM] = gpu.current.number
            waiting += _before(node)


def refuse_other_streams(gpu: FakeGpu, outputs: object) -> None:
    """As CUDA does if a backward pass that is captured has a node of another stream.

    Torch 2.13 can make the nodes of leaves run on the captured stream instead.
    """
    if gpu.capture is None:
        return
    overrides = getattr(torch._C, "_override_stale_capture_stream", lambda: False)()
    waiting, seen = [*_nodes(outputs)], set()
    while waiting:
        node = waiting.pop()
        is_leaf = not node.next_functions
        if node.metadata[STREAM] != gpu.capture.timeline.number and not (is_leaf and overrides):
            gpu.capture.broken = True
            raise RuntimeError(INVALIDATED)
        seen.add(node)
        waiting += [one for one in _before(node) if one not in seen]


def _nodes(result: object) -> Iterator[Any]:
    with torch._C.DisableTorchFunction():
        for one in tree_leaves(result):
            if isinstance(one, Tensor) and one.grad_fn is not None:
                yield one.grad_fn


def _before(node: Any) -> list[Any]:
    return [one for one, _ in node.next_functions if one is not None]
