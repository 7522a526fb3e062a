"""The worker's program: one step of one case per request, and one reply to each.

Started with the argument DEVICE, and with `allow-import [FOLDER...]` if backends may be imported
from the current folder and these; nothing else is. The case is sent with its first request, `draw`
or `warm_up`; later ones name it by its id. replies.py has the fields of every reply; a step that
raises ends its case, with the reply `ended`.
"""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..process.child import ALLOW_IMPORT, PHASES, CaseEnded, Parent

if TYPE_CHECKING:
    import torch

    from .steps import Steps


def main() -> None:
    """Until the run has no more requests."""
    parent = Parent()
    if ALLOW_IMPORT in parent.arguments[1:]:
        # the last places: they stand in for no installed package
        sys.path += [str(Path.cwd()), *parent.arguments[2:]]
    # Imported after Parent: torch takes seconds, and an orphan must not live that long.
    from ..devices.environment import collect, fix_threads, pick_device
    from ..measure.peak_memory import freeze_gc
    from ..process.command import git_commit
    from .steps import Steps

    fix_threads()
    device, why = pick_device(parent.arguments[0])
    why = warm_up_device(device) or why
    freeze_gc()
    environment = collect(device) | {"git": git_commit()}
    parent.reply("ready", device=device.type, why=why, environment=environment)
    steps = Steps(device)
    for request in parent.requests():
        parent.reply(**answer(steps, request))


def answer(steps: "Steps", request: dict[str, Any]) -> dict[str, Any]:
    """The one place that catches everything: a backend may raise anything, the others go on."""
    from .trials import outcome

    op = request.pop("op")
    try:
        return {"op": op, **steps.step(op, request.get("case"))(**request)}
    except CaseEnded as end:
        ended = {"status": end.status, "reason": end.reason, "log_tail": None}
        phase = end.phase
    except Exception as error:  # noqa: BLE001 - see above
        ended, phase = outcome(error, steps.budget_bytes), PHASES.get(op, "")
    fields = steps.fields
    steps.forget()
    return {"op": "ended", **ended, "phase": phase, "fields": fields}


def warm_up_device(device: "torch.device") -> str:
    """Start what every call needs; why the device cannot be used, "" if it can."""
    from ..files.errors import first_line

    try:
        warm_libraries(device)
        warm_profiler(device)
    except RuntimeError as error:
        failed = first_line(error)
        if "busy or unavailable" not in failed:  # CUDA's error in exclusive mode
            raise
        return f"{failed}: another process uses it"
    return ""


def warm() -> None:
    """What a fork server does, with one thread, for the processes that are forked from it."""
    import torch

    warm_libraries(torch.device("cpu"))


@cache
def warm_libraries(device: "torch.device") -> None:
    """Load the operators and matrix libraries that cases use, so that none pays their memory."""
    import torch

    from ..measure.correctness import CorrectnessCheck
    from ..measure.graph_capture import capture_stream
    from ..measure.prepared_call import make_tensors
    from ..process.command import git_commit
    from .steps import TINY

    git_commit()  # known from here on

    def backward() -> None:
        x = torch.ones(64, 64, device=device, requires_grad=True)
        torch.autograd.grad((x @ x).sum(), x)

    x = torch.randn(2, 4, 256, 64, device=device, requires_grad=True)
    attended = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    weights = torch.softmax(x @ x.mT, -1)
    torch.autograd.grad(attended.sum() + weights.sum(), x)
    # the textbook's operators: the first case that uses one maps its code
    CorrectnessCheck(TINY, *make_tensors(TINY, device, 0), 0)
    if device.type == "cuda":
        # cuBLAS keeps a workspace for each stream and thread
        for stream in (torch.cuda.current_stream(device), capture_stream(device)):
            with torch.cuda.stream(stream):
                backward()
        torch.cuda.synchronize(device)


def warm_profiler(device: "torch.device") -> None:
    """It starts a thread, and what it calls the thread pools: a fork would lack them."""
    import torch

    from ..measure.peak_memory import peak

    def work(_: object) -> object:
        x = torch.randn(2, 4, 256, 64, device=device)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x), torch.softmax(
            x @ x.mT, -1
        )

    peak(lambda: None, work, device)


if __name__ == "__main__":
    main()
