"""A backend that does harm: each variant is one function below, at one of three moments.

HOSTILE_WHEN says when: `prepare`, `first` call, or a `late` call, in the middle of the timing.
`good` only computes attention.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import torch

VARIANTS = (
    "good",
    "raises_keyboard_interrupt",
    "raises_system_exit",
    "raises_generator_exit",
    "raises_base_exception",
    "raises_what_has_no_text",
    "raises_escapes",
    "raises_a_long_text",
    "raises_surrogates",
    "recurses",
    "raises_stop_iteration",
    "raises_memory_error",
    "exits_0",
    "exits_3",
    "exits_in_a_thread",
    "dies_by_a_signal",
    "dies_by_another_signal",
    "stops_itself",
    "aborts",
    "segfaults",
    "writes_to_all_descriptors",
    "writes_deep_json",
    "writes_events_of_wrong_types",
    "writes_half_an_event",
    "says_done_early",
    "prints_bytes",
    "prints_200_mb",
    "closes_all_descriptors",
    "closes_the_standard_ones",
    "forks_and_stays",
    "leaves_the_session",
    "forks_twice",
    "forgets_the_environment",
    "ignores_all_signals",
    "leaves_a_thread_running",
    "removes_its_folder",
    "changes_the_folder",
    "replaces_modules",
    "sets_an_alarm",
    "limits_itself",
    "returns_none",
    "returns_another_dtype",
    "returns_another_shape",
    "returns_text",
    "returns_a_list_of_numbers",
    "returns_nan",
    "returns_infinity",
    "returns_a_meta_tensor",
    "returns_a_sparse_tensor",
    "returns_complex_numbers",
    "returns_an_empty_tensor",
    "prepares_nothing",
    "says_absurd_peaks",
    "refuses_with_a_number",
    "configures_absurdly",
)
LATE = 25  # a call in the middle of the timing
children = []


def why_not(problem, device, *, variant):
    return 7 if variant == "refuses_with_a_number" else None


def peak_bytes(problem, device, threads, *, variant):
    if variant == "says_absurd_peaks":
        return {"": 2**80, "a": -5, "b": 1.5, "c": float("nan"), "d": "much"}[
            os.environ.get("HOSTILE_PEAK", "")
        ]
    return None


def prepare(problem, inputs, weights, *, variant):
    harm = RAISES.get(variant) or globals().get(variant, nothing)
    calls = 0

    def attend():
        q, k, v = inputs
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    def call():
        nonlocal calls
        calls += 1
        if calls == {"first": 1, "late": LATE}.get(os.environ.get("HOSTILE_WHEN"), 0):
            harm()
        return RETURNS.get(variant, lambda out: out)(attend())

    if variant == "prepares_nothing":
        return None
    if variant == "configures_absurdly":
        attend.configuration = call.configuration = {"a": float("nan"), 5: {1, 2}, "c": "x" * 10**6}
    if os.environ.get("HOSTILE_WHEN", "prepare") == "prepare":
        harm()
    return call


def nothing():
    pass


class WithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def raising(error):
    def harm():
        raise error

    return harm


RAISES = {
    "raises_keyboard_interrupt": raising(KeyboardInterrupt),
    "raises_system_exit": raising(SystemExit(0)),
    "raises_generator_exit": raising(GeneratorExit),
    "raises_base_exception": raising(
        BaseExceptionGroup("several", [ValueError("a"), KeyboardInterrupt()])
    ),
    "raises_what_has_no_text": raising(WithoutText),
    "raises_escapes": raising(
        ValueError(
            "\x1b]0;title\x07\x1b[2J\u202eabc\r\nTraceback (most recent call last):\n\x9b31m"
        )
    ),
    "raises_a_long_text": raising(ValueError("x" * 20_000_000)),
    "raises_surrogates": raising(ValueError("\udcff\ud800")),
    "raises_stop_iteration": raising(StopIteration),
    "raises_memory_error": raising(MemoryError),
}


def recurses():
    return recurses()


def exits_0():
    os._exit(0)


def exits_3():
    os._exit(3)


def exits_in_a_thread():
    threading.Thread(target=os._exit, args=(0,)).start()
    time.sleep(5)


def dies_by_a_signal():
    os.kill(os.getpid(), int(os.environ["HOSTILE_SIGNAL"]))
    time.sleep(0.1)


def dies_by_another_signal():
    os.kill(os.getpid(), 65 - int(os.environ["HOSTILE_SIGNAL"]))
    time.sleep(0.1)


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


def aborts():
    os.abort()


def segfaults():
    ctypes.string_at(0)


def everywhere(data):
    for fd in range(3, 64):
        with suppress(OSError):
            os.set_blocking(fd, False)
            os.write(fd, data)


def writes_to_all_descriptors():
    everywhere(b"nonsense\n\xff\x00\n")


def writes_deep_json():
    everywhere(b"[" * 60000 + b"\n")


def writes_events_of_wrong_types():
    everywhere(
        b'{"event": 5}\n{"event": "member", "case": []}\n{"event": "samples"}\n[]\n"event"\n'
        b'{"event": "checked", "members": 3}\n{"event": ["event"]}\nnull\n1e999\n'
    )


def writes_half_an_event():
    everywhere(b'{"event": "done"')


def says_done_early():
    everywhere(b'{"event": "done"}\n' * 3)


def prints_bytes():
    for fd in (1, 2):
        os.write(fd, bytes(range(256)) * 50 + b"\nTraceback (most recent call last):\n")


def prints_200_mb():
    for _ in range(200):
        os.write(1, b"x" * (1 << 20))


def closes_all_descriptors():
    os.closerange(0, 1024)


def closes_the_standard_ones():
    os.closerange(0, 3)


def forks_and_stays():
    if os.fork() == 0:
        time.sleep(3600)
        os._exit(0)


def leaves_the_session():
    children.append(subprocess.Popen(["sleep", "3600"], start_new_session=True))


def forks_twice():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvpe("sleep", ["sleep", "3600"], {})
        os._exit(0)
    os.wait()


def forgets_the_environment():
    children.append(subprocess.Popen(["sleep", "3600"], start_new_session=True, env={}))


def ignores_all_signals():
    for number in range(1, 65):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def leaves_a_thread_running():
    threading.Thread(target=time.sleep, args=(3600,)).start()


def removes_its_folder():
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    folder.rmdir()


def changes_the_folder():
    os.chdir("/")


def replaces_modules():
    for name in list(sys.modules):
        if name.startswith("json"):
            sys.modules[name] = None


def sets_an_alarm():
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.2)


def limits_itself():
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


RETURNS = {
    "returns_none": lambda out: None,
    "returns_another_dtype": lambda out: out.to(torch.float64),
    "returns_another_shape": lambda out: out[..., :1],
    "returns_text": lambda out: "output",
    "returns_a_list_of_numbers": lambda out: out.tolist(),
    "returns_nan": lambda out: out * float("nan"),
    "returns_infinity": lambda out: out + float("inf"),
    "returns_a_meta_tensor": lambda out: torch.empty_like(out, device="meta"),
    "returns_a_sparse_tensor": lambda out: out.to_sparse(),
    "returns_complex_numbers": lambda out: out + 0j,
    "returns_an_empty_tensor": lambda out: out[:0],
}
