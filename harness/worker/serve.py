"""The disposable process in which backends run: requests in, events out, one JSON object per line
on its own two pipes.

Started as `python -m attnbench.harness.worker.serve REQUEST_FD EVENT_FD DEVICE`; stdout and stderr
stay free for whatever backends print. Requests carry the key "op": free, set, judge, open, block,
watch, dissect, close; predict and probe for a wall; study. Each is answered by the events that
measure.py lists, or by one event with what was asked for, then `done`.
"""

import faulthandler
import json
import os
import sys
from typing import Any, TextIO

from ..process.parent_death import die_with


def main() -> None:
    request_fd, event_fd, device = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    die_with(os.getppid())
    faulthandler.enable()
    for fd in (request_fd, event_fd):
        os.set_inheritable(fd, False)
    with os.fdopen(request_fd) as requests, os.fdopen(event_fd, "w") as events:
        serve(requests, events, device)


def serve(requests: TextIO, events: TextIO, wanted: str) -> None:
    """Answer requests until the parent closes its end."""
    # Imported after die_with: torch takes seconds, and an orphan must not live that long.
    import torch

    from ..cases import case_of, wall_of
    from ..environment import collect, fix_threads, pick_device
    from ..measure.memory_budget import available_bytes
    from ..measure.peak_memory import settle
    from ..nvml import Device, identity
    from .attempt import Setting
    from .measure import Bench
    from .study import inquire
    from .wall import probe
    from .wall_prediction import predict

    def say(event: dict[str, Any]) -> None:
        events.write(json.dumps(event, allow_nan=False) + "\n")
        events.flush()

    fix_threads()
    device, why = pick_device(wanted)
    warm_pools(device)
    settle()
    say({"event": "ready", "device": device.type, "why": why, "environment": collect(device)})
    bench: Bench | None = None
    for line in requests:
        request = json.loads(line)
        cases = [case_of(fields) for fields in request.get("cases", ())]
        if request["op"] == "free":
            say({"event": "free", "available_bytes": available_bytes(device)})
        elif request["op"] == "set":
            setting = Setting(
                device=torch.device(device),
                seed=request["seed"],
                budget_bytes=request["budget_bytes"],
                measure=tuple(request["measure"]),
                warm_heap=request["warm_heap"],
                most_warm_up_s=request["most_warm_up_s"],
                watched=Device(uuid=request["gpu_uuid"])
                if request["gpu_uuid"]
                else identity(torch.device(device)),
            )
            bench = Bench(setting, say)
        elif bench is None:
            raise RuntimeError(f"{request['op']} before set")
        elif request["op"] == "predict":
            with bench.attempts.budget.for_code():
                foreseen = predict(
                    wall_of(request["wall"]), bench.setting.device, bench.setting.budget_bytes
                )
            say({"event": "predicted", **foreseen})
        elif request["op"] == "probe":
            say({"event": "probed", **probe(cases[0], bench.setting, bench.attempts.budget)})
        elif request["op"] == "study":
            say({"event": "studied", **inquire(request["study"], bench.setting)})
        elif request["op"] == "judge":
            bench.judge(cases)
        elif request["op"] == "open":
            bench.open(cases)
        elif request["op"] == "block":
            bench.block(cases)
        elif request["op"] == "watch":
            bench.watch(cases[0], tuple(request["measure"]), request["window_s"], request["way"])
        elif request["op"] == "dissect":
            bench.dissect(cases)
        elif request["op"] == "close":
            bench.close()
        say({"event": "done"})


def warm_pools(device: Any) -> None:
    """Start thread pools, matrix libraries and the profiler, so that their memory is part of the
    floor and not of a backend.
    """
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
