"""Lines of telemetry.jsonl."""

import json


def lines_of(folder):
    path = folder / "telemetry.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def samples_of(folder):
    return [line for line in lines_of(folder) if "kind" not in line]


def headers_of(folder):
    return [line for line in lines_of(folder) if "kind" in line]
