"""The disposable process in which kernels are compiled: requests in, answers out, as worker.py does
it for backends.

Started as `python -m attnbench.harness.audit.child REQUEST_FD EVENT_FD DEVICE`. Requests carry the
key "op": `plan`, which is answered by the kernels that a selection has and must come first, and
`compile`, by what came of one of them.
"""

import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

from ..process.parent_death import die_with


def main() -> None:
    request_fd, answer_fd = int(sys.argv[1]), int(sys.argv[2])
    die_with(os.getppid())
    faulthandler.enable()
    for fd in (request_fd, answer_fd):
        os.set_inheritable(fd, False)
    with os.fdopen(request_fd) as requests, os.fdopen(answer_fd, "w") as answers:
        serve(requests, answers)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer requests until the parent closes its end."""
    os.environ.pop(
        "TRITON_INTERPRET", None
    )  # it would make of the kernels something that cannot be compiled
    import torch

    from ..environment import collect
    from .examine import TRITON

    torch.set_num_threads(1)

    def say(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()

    say({"event": "ready", "environment": collect(torch.device("cpu")) | {"triton": TRITON}})
    jobs: dict[str, Any] = {}
    for line in requests:
        request = json.loads(line)
        if request["op"] == "plan":
            answer, jobs = plan(request)
            say(answer)
        elif request["op"] == "compile":
            say({"event": "compiled", **outcome(jobs[request["case"]])})


def plan(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer, and the jobs by the ids that it names."""
    from .examine import planned
    from .tools import known_to_ptxas, ptxas_version

    capabilities = [(major, minor) for major, minor in request["capabilities"]]
    strange = [one for one in capabilities if (known := known_to_ptxas(one)) and one not in known]
    if strange:
        can = sorted(known_to_ptxas(strange[0]))
        return {
            "event": "strange",
            "capability": strange[0],
            "ptxas": ptxas_version(strange[0]),
            "known": can,
        }, {}
    found = list(planned(capabilities, tuple(request["dtypes"]), request["kernels"]))
    return {"event": "planned", "kernels": [fields for fields, _ in found]}, {
        fields["case"]: job for fields, job in found
    }


def outcome(job: Any) -> dict[str, Any]:
    """What came of compiling it, in the fields of its row."""
    from ..worker.attempt import first_line
    from .examine import facts

    try:
        return {"status": "ok", "reason": "", "log_tail": None, **facts(job)}
    except Exception as error:  # noqa: BLE001 - a compiler may raise anything, and the other kernels must go on
        return {
            "status": "error",
            "reason": first_line(error),
            "log_tail": traceback.format_exc()[-4096:],
        }


if __name__ == "__main__":
    main()
