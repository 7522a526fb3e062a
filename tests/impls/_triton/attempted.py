"""What notes of launches, in Triton's cache, say to a later process, as JSON: `python -m
tests.impls._triton.attempted`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import torch

from attnbench.impls._triton.attempts import HUNG_S, Attempt
from tests.fakes.cuda import FakeGpu, fake_cuda

DEVICE = torch.device("cuda", 0)


def answers(gpu: FakeGpu) -> Iterator[tuple[str, str | None]]:
    def attempt(code: str = "a kernel") -> Attempt:
        return Attempt(code, DEVICE, "forward")

    yield "never launched", attempt().unreturned()
    with attempt():
        yield "another kernel", attempt("another").unreturned()
    yield "returned", attempt().unreturned()
    for name, error in (("refused", ValueError), ("interrupted", KeyboardInterrupt)):
        try:
            with attempt():
                raise error
        except error:
            yield name, attempt().unreturned()
    gpu.broken = "CUDA error: an illegal memory access was encountered"
    try:
        with attempt():
            raise RuntimeError
    except RuntimeError:
        gpu.broken = ""
        yield "broke the context", attempt().unreturned()
    with attempt():
        pass
    yield "returned this time", attempt().unreturned()

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    now = datetime.now(UTC)
    long_ago = now - timedelta(seconds=HUNG_S + 1)
    note = attempt().note
    for name, pid, when, host in (
        ("its process ended", ended.pid, now, os.uname().nodename),
        ("its process runs", os.getppid(), now, os.uname().nodename),
        ("its process hangs", os.getppid(), long_ago, os.uname().nodename),
        ("on another host", ended.pid, now, "elsewhere"),
    ):
        note.write_text(json.dumps({"pid": pid, "host": host, "started_utc": when.isoformat()}))
        yield name, attempt().unreturned()
    note.write_text("{")
    yield "unreadable", attempt().unreturned()


if __name__ == "__main__":
    with fake_cuda() as fake:
        print(json.dumps(dict(answers(fake))))
