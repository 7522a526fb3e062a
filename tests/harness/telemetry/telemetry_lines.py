"""Lines of telemetry.jsonl, and waiting for them, as long as a busy machine may take."""

import json
import time


def lines_of(folder):
    path = folder / "telemetry.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def samples_of(folder):
    return [line for line in lines_of(folder) if "kind" not in line]


def headers_of(folder):
    return [line for line in lines_of(folder) if "kind" in line]


def wait_for(condition, timeout_s=120):
    """The condition's value, once it is true."""
    ends_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < ends_s, "did not come true in time"
        time.sleep(0.02)
    return found
