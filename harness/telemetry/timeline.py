"""The parent's end of the sampler (telemetry.py): when to sample, when to be quiet. A run is never
broken by its telemetry.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..process.worker_process import worker_environment

TELEMETRY = "telemetry.jsonl"
START_S = 10.0  # opening NVML takes seconds where nothing else keeps the driver loaded
QUIET_S = 2.0  # a sample takes milliseconds, unless the driver holds its caller up
CLOSE_S = 2.0


class Lost(Exception):
    """The sampler is gone or cannot be trusted any more."""


class Timeline:
    """Samples a device while a run says so. No method raises; `failure` says why telemetry has
    ended early, and None where it has not.

    Whoever calls `go` first must live as long as the timeline: the sampler dies with the thread
    that started it.
    """

    def __init__(self, run: Path, uuid: str | None) -> None:
        """Into the folder of a run. `uuid`: of the GPU, as NVML writes it; None for the host."""
        self.failure: str | None = None
        self._command = [
            sys.executable,
            "-m",
            "attnbench.harness.telemetry.sampler",
            str(run / TELEMETRY),
            *([uuid] if uuid else []),
        ]
        self._child: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._patience_s = START_S
        self._going = self._ended = False

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def go(self, what: str, pids: Iterable[int] = ()) -> None:
        """Sample from now on, under the name of a case or a phase; on the host also the memory of
        these processes. Waits for nothing.
        """
        if self._ended:
            return
        try:
            self._child = self._child or self._start()
            self._going = True
            self._ask({"op": "go", "what": what, "pids": list(pids)})
        except (Lost, OSError) as error:
            self._lose(error)

    def quiet(self) -> None:
        """Returns when no sample is taken any more. A sampler that does not say so in time is
        killed.
        """
        if not self._going:
            return
        self._going = False
        try:
            self._ask({"op": "quiet"})
            deadline_s = time.monotonic() + self._patience_s
            while self._event(deadline_s) != "quiet":
                pass
            self._patience_s = QUIET_S
        except (Lost, OSError) as error:
            self._lose(error)

    def close(self) -> None:
        """End the sampler; safe to call twice."""
        if self._child is not None and not self._ended:
            try:
                _end_of(self._child.stdin).close()
                deadline_s = time.monotonic() + CLOSE_S
                while self._event(deadline_s) != "ended":
                    pass
                if self._child.wait(CLOSE_S):
                    raise Lost(self._death())
            except (Lost, OSError, subprocess.TimeoutExpired) as error:
                self._lose(error)
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        # A session of its own: Ctrl-C is for the run, which then closes the timeline.
        child = subprocess.Popen(
            self._command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
            env=worker_environment(),
        )
        for end in (child.stdin, child.stderr):
            os.set_blocking(
                _end_of(end).fileno(), False
            )  # a sampler that has stopped must not stop the run
        return child

    def _ask(self, request: Mapping[str, Any]) -> None:
        assert self._child is not None
        data = (json.dumps(request) + "\n").encode()
        with suppress(
            BrokenPipeError
        ):  # its last words say more, and are heard when it is asked to be quiet
            if os.write(_end_of(self._child.stdin).fileno(), data) < len(data):
                raise Lost("the sampler takes no requests")

    def _event(self, deadline_s: float) -> str:
        """The name of the next event: ready, quiet; `ended` where there will be none.
        Raises Lost.
        """
        assert self._child is not None
        stdout = _end_of(self._child.stdout).fileno()
        while b"\n" not in self._heard:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([stdout], [], [], left_s)[0]:
                raise Lost("the sampler did not answer in time and was ended")
            chunk = os.read(stdout, 1 << 12)
            if not chunk:
                return self._last_event()
            self._heard += chunk
        line, self._heard = self._heard.split(b"\n", 1)
        try:
            event = json.loads(line)
            name = event["event"]
        except (ValueError, KeyError, TypeError):
            raise Lost(f"{line[:80]!r} is no event of the sampler") from None
        if name == "failed":
            raise Lost(event["reason"])
        return str(name)

    def _last_event(self) -> str:
        """Only a sampler whose requests have ended may end."""
        assert self._child is not None
        if not _end_of(self._child.stdin).closed:
            raise Lost(self._death())
        return "ended"

    def _death(self) -> str:
        assert self._child is not None
        try:
            end = f"ended with exit code {self._child.wait(CLOSE_S)}"
        except subprocess.TimeoutExpired:
            end = "closed its reply pipe"
        said = b""
        with suppress(OSError):  # nothing was said
            said = os.read(_end_of(self._child.stderr).fileno(), 1 << 16)
        last_line = said.decode(errors="replace").strip().rpartition("\n")[2]
        return f"the sampler {end}" + (f": {last_line}" if last_line else "")

    def _lose(self, error: Exception) -> None:
        self.failure = self.failure or str(error)
        self._end()

    def _end(self) -> None:
        self._ended, self._going = True, False
        if self._child is None:
            return
        self._child.kill()
        with suppress(subprocess.TimeoutExpired):  # it hangs in the driver, and ends with that
            self._child.wait(CLOSE_S)
        for end in (self._child.stdin, self._child.stdout, self._child.stderr):
            with suppress(OSError):
                _end_of(end).close()


def _end_of(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
