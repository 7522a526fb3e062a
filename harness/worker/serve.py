"""The worker's program: requests in, events out, one JSON object per line (process/child.py).

Started with the argument DEVICE, and with `allow-import [FOLDER...]` if backends may be imported
from the current folder and these; nothing else is. Requests carry the key "op". Each is answered by
the events that measure.py lists, or by one event with the answer, and then by `done`.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..process.child import ALLOW_IMPORT, Parent

if TYPE_CHECKING:
    import torch

    from .judge_process import JudgeProcess

HELD = "busy or unavailable"  # of CUDA's error, as a second process gets it
ONE_PROCESS = (
    "a worker and its judge are two processes, and in exclusive mode a GPU is for one:"
    " nvidia-smi -c 0, as root"
)


def main() -> None:
    parent = Parent()
    if ALLOW_IMPORT in parent.arguments[1:]:
        # the last places: they stand in for no installed package
        sys.path += [str(Path.cwd()), *parent.arguments[2:]]
    # Imported after Parent: torch takes seconds, and an orphan must not live that long.
    import torch

    from ..cases.case import case_of, wall_of
    from ..machine.environment import collect, fix_threads
    from ..machine.free_memory import available_bytes
    from ..machine.nvml import Device, nvml_device
    from ..measure.peak_memory import freeze_gc
    from ..process.fingerprint import git_commit
    from ..scenario.preflight import predict
    from .judge_process import start_judge
    from .measure import Measurer
    from .phases import WorkerConfig
    from .study import run_study, try_attachment
    from .wall import try_length

    judge = start_judge(parent, parent.arguments[0])  # before any thread pool and any device
    fix_threads()
    device, why = open_device(parent.arguments[0], judge)
    freeze_gc()
    environment = collect(device) | {"git": git_commit()}
    ready = {"device": device.type, "why": why, "environment": environment}
    parent.say({"event": "ready", **ready})
    measurer: Measurer | None = None
    for request in parent.requests():
        op = request["op"]
        cases = [case_of(fields) for fields in request.get("cases", ())]
        if op == "free":
            parent.say({"event": "free", "available_bytes": available_bytes(device)})
        elif op == "try_attachment":
            parent.say({"event": "opened", **try_attachment(request, torch.device(device))})
        elif op == "configure":
            gpu = request["gpu_uuid"]
            config = WorkerConfig(
                device=torch.device(device),
                seed=request["seed"],
                budget_bytes=request["budget_bytes"],
                measure=tuple(request["measure"]),
                warm_heap=request["warm_heap"],
                cold_caches=request["cold_caches"],
                first_warm_up_s=request["first_warm_up_s"],
                max_warm_up_s=request["max_warm_up_s"],
                watched=Device(uuid=gpu) if gpu else nvml_device(torch.device(device)),
            )
            measurer = Measurer(config, parent.say, judge.ask)
            parent.say({"event": "configured"})
        elif measurer is None:
            raise RuntimeError(f"{op} before configure")
        elif op == "predict":
            with measurer.phases.budget.for_code():
                found = predict(wall_of(request["wall"]), device, measurer.config.budget_bytes)
            parent.say({"event": "predicted", **found})
        elif op == "trial":
            found = try_length(cases[0], measurer.config, measurer.phases.budget)
            parent.say({"event": "tried", **found})
        elif op == "study":
            parent.say({"event": "studied", **run_study(request, measurer.config)})
        elif op in ("check", "warm_up", "confirm", "profile_kernels"):
            getattr(measurer, op)(cases)
        elif op == "sample":
            measurer.sample(cases, request["calls"])
        elif op == "watch":
            measure, window_s = tuple(request["measure"]), request["window_s"]
            measurer.watch(cases[0], measure, window_s, request["mode"])
        elif op == "release":
            measurer.release()
        parent.say({"event": "done"})


def open_device(requested: str, judge: "JudgeProcess") -> tuple["torch.device", str]:
    """As pick_device; used once by both processes."""
    import torch

    from ..files.errors import first_line
    from ..machine.environment import pick_device

    device, why = pick_device(requested)
    failed = ""
    try:
        warm_pools(device)
    except RuntimeError as error:
        failed = first_line(error)
        if HELD not in failed:
            raise
    failed = failed or judge.wait_ready()
    if HELD in failed:
        return torch.device("cpu"), f"{failed}: {ONE_PROCESS}"
    return device, why


def warm_pools(device: "torch.device") -> None:
    """Start thread pools, matrix libraries and the profiler, so that no case pays their memory."""
    import torch

    from ..measure.graph_capture import capture_stream
    from ..measure.peak_memory import peak
    from .judge_process import warm_up

    def work(_: object) -> object:
        x = torch.randn(2, 4, 256, 64, device=device)
        attended = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        return attended, torch.softmax(x @ x.mT, -1)

    def backward() -> None:
        x = torch.ones(64, 64, device=device, requires_grad=True)
        torch.autograd.grad((x @ x).sum(), x)

    def backward_of_attention() -> None:
        x = torch.randn(2, 4, 256, 64, device=device, requires_grad=True)
        attended = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        weights = torch.softmax(x @ x.mT, -1)
        torch.autograd.grad(attended.sum() + weights.sum(), x)

    peak(lambda: None, work, device)
    backward_of_attention()
    warm_up(device)  # the textbook's operators: the first case that uses one maps its code
    if device.type == "cuda":
        # cuBLAS keeps a workspace for each stream and thread
        for stream in (torch.cuda.current_stream(device), capture_stream(device)):
            with torch.cuda.stream(stream):
                backward()
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
