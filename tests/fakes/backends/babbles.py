"""Backends that send events of their own on the harness's pipe: each is malformed in its way."""

import json
import os
import stat
from contextlib import suppress

EVENTS = {
    "deeply": '{"event":' + "[" * 100_000,
    "wrong_type": json.dumps({"event": "facts", "case": 7, "fields": "none"}),
    "wrong_field": json.dumps({"event": "running", "case": None, "phase": "x", "more": 1}),
    "unknown_event": json.dumps({"event": "finished"}),
    "unknown_case": json.dumps({"event": "running", "case": "another", "phase": "gate"}),
    "another_answer": json.dumps({"event": "free", "available_bytes": 1}),
    "too_long": '{"event": "' + "x" * (17 << 20),
}
VARIANTS = (
    "deeply",
    "wrong_type",
    "wrong_field",
    "unknown_event",
    "unknown_case",
    "another_answer",
    "too_long",
)


def prepare(problem, inputs, weights, *, variant):
    line = f"{EVENTS[variant]}\n".encode()
    for fd in range(3, 12):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                sent = line
                while sent:
                    sent = sent[os.write(fd, sent) :]
    return lambda: inputs.query
