"""A child for tests of the parent's end: it does what each request says."""

import os
import signal
import subprocess
import sys
import time

from attnbench.harness.devices.probes.gpu_memory import own_run
from attnbench.harness.process.child import Parent
from attnbench.harness.process.replies import CaseEnd, Replies, Reply


class Said(Reply):
    value: object


OPS = ("ready", "echo", "escape", "start", "own_run", "environment", "compute", "print", "kill")
REPLIES: Replies = {**dict.fromkeys(OPS, Said), "ended": CaseEnd}
ENDED = {"status": "oom", "reason": "too large", "phase": "memory", "log_tail": None, "fields": {}}


def warm() -> None:
    """What a fork server does before it forks."""
    compute()


def compute() -> float:
    """A product and both passes of attention, on all threads, as a worker does both."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention

    x = torch.ones(2, 4, 512, 64, requires_grad=True)
    scores = torch.softmax(x @ x.mT, -1)
    torch.autograd.grad(attention(x, x, x).sum() + scores.sum(), x)
    return float((torch.ones(1000, 1000) @ torch.ones(1000, 1000)).sum())


def computed(threads: int) -> float:
    """Also under the profiler, which starts a thread."""
    import torch
    from torch.autograd.profiler import profile

    torch.set_num_threads(threads)
    with profile(use_cpu=True, use_kineto=True, profile_memory=True):
        return compute()


def main() -> None:
    parent = Parent()
    if parent.arguments == ["dies at once"]:
        print("last words")
        sys.exit(3)
    parent.reply("ready", value=parent.arguments)
    for request in parent.requests():
        op, value = request["op"], request.get("value")
        if op == "escape":
            value = escaped()
        elif op == "start":
            value = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
        elif op == "own_run":
            value = sorted(own_run())
        elif op == "environment":
            value = os.environ.get(request["name"])
        elif op == "compute":
            value = computed(request["threads"])
        elif op == "too large":
            parent.reply("ended", **ENDED)
            continue
        elif op == "sleep":
            time.sleep(600)
        elif op == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif op == "abort":
            print("dying", flush=True)
            os.abort()
        elif op == "die":
            os.kill(os.getpid(), request["signal"])
        elif op == "kill":
            os.kill(request["pid"], signal.SIGKILL)
            time.sleep(600)
        elif op == "print":
            print("x" * request["count"])
        elif op == "end":
            sys.exit(0)
        elif op == "babble":
            os.write(parent.line_fd, request["line"].encode())
        parent.reply(op, value=value)


def escaped() -> int:
    """A grandchild in a session of its own, without our environment, whose parent has ended.

    It ignores SIGTERM and holds whatever descriptors it got.
    """
    ours, its = os.pipe()
    os.set_inheritable(its, True)
    program = f'trap "" TERM HUP; echo $$ >&{its}; exec {its}>&-; sleep 60'
    start = f"exec env -i setsid sh -c '{program}' >/dev/null 2>&1"
    subprocess.run(["sh", "-c", f"({start}) & exit 0"], close_fds=False, check=True)
    return int(os.read(ours, 100))


if __name__ == "__main__":
    main()
