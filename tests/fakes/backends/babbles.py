"""Backends that send replies of their own on the harness's line: each is malformed in its way."""

import json
import os
import stat
from contextlib import suppress

REPLIES = {
    "deeply": '{"op":' + "[" * 100_000,
    "wrong_type": json.dumps({"op": "check", "fields": "none"}),
    "wrong_field": json.dumps({"op": "check", "fields": {}, "more": 1}),
    "unknown_op": json.dumps({"op": "finished"}),
    "another_answer": json.dumps({"op": "free", "available_bytes": 1}),
    "our_words": json.dumps({"op": "check", "fields": {"status": "ok"}}),
    "too_long": '{"op": "' + "x" * (17 << 20),
}
VARIANTS = (
    "deeply",
    "wrong_type",
    "wrong_field",
    "unknown_op",
    "another_answer",
    "our_words",
    "too_long",
)


def prepare(problem, inputs, weights, *, variant):
    line = f"{REPLIES[variant]}\n".encode()
    for fd in range(3, 12):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                sent = line
                while sent:
                    sent = sent[os.write(fd, sent) :]
    return lambda: inputs.query
