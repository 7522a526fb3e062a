"""reports/data/telemetry.py: every readable sample is a row, and no content breaks a report."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.read import BadRun
from attnbench.reports.data.telemetry import LINE_CAP_BYTES, Telemetry, telemetry, telemetry_files

GPU = {
    "kind": "gpu",
    "uuid": "GPU-1",
    "period_s": 0.2,
    "board_wide": [],
    "missing": {"power_w": "this GPU does not offer it"},
}
HOST = {"kind": "host", "uuid": None, "period_s": 0.2, "board_wide": [], "missing": {}}


def sample(t_ns: int, **values: Any) -> dict[str, Any]:
    return {"t_ns": t_ns, "utc": "2026-11-21T09:30:00.000+00:00", "what": "fused", **values}


def read(folder: Path, *lines: Any) -> Telemetry:
    """What is read of these lines: bytes as they are, everything else as JSON."""
    texts = [
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    ]
    (folder / "telemetry.jsonl").write_bytes(b"".join(texts))
    return telemetry(folder)


def test_samples_come_in_order_with_the_kind_of_their_header(tmp_path: Path) -> None:
    values = {
        "sm_clock_mhz": 1980,
        "power_w": None,
        "clock_event_mask": 1 << 63,
        "device_used_bytes": 5 << 30,
        "kernel_busy_ratio": 0.97,
    }
    of_host = sample(3, cpu_ratio=0.5, resident_bytes=7)
    found = read(tmp_path, GPU, sample(1, **values), sample(2), HOST, of_host)
    kinds = [(one["t_ns"], one["kind"]) for one in found.samples]
    assert kinds == [(1, "gpu"), (2, "gpu"), (3, "host")]
    first, _, last = found.samples
    assert {name: first[name] for name in values} == values
    assert (last["cpu_ratio"], last["resident_bytes"], last["power_w"]) == (0.5, 7, None)
    assert (found.skipped, found.period_s) == (0, 0.2)


BROKEN = [
    b"{",
    b"",
    b"[1]",
    b"null",
    b"\xff\xfe",
    b"[" * 60_000,
    b"9" * 5_000,
    b'"' + b"x" * LINE_CAP_BYTES + b'"',
    b"{}",
    b'{"t_ns": 1, "utc": "x"}',
    b'{"t_ns": 1.5, "utc": "x", "what": "y"}',
    b'{"t_ns": true, "utc": "x", "what": "y"}',
    b'{"t_ns": 9223372036854775808, "utc": "x", "what": "y"}',
    b'{"t_ns": 1, "utc": "x", "what": "y", "power_w": NaN}',
    b'{"t_ns": 1, "utc": "x", "what": "y", "power_w": 1e999}',
    b'{"t_ns": 1, "utc": "x", "what": "y", "power_w": "70"}',
    b'{"t_ns": 1, "utc": "x", "what": "y", "resident_bytes": -1}',
    b'{"kind": "gpu"}',
    b'{"kind": [], "uuid": null, "period_s": 0.2, "board_wide": [], "missing": {}}',
]


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: line[:40].decode(errors="replace"))
def test_a_broken_line_is_left_out_and_counted(tmp_path: Path, line: bytes) -> None:
    found = read(tmp_path, GPU, sample(1), line + b"\n", sample(2))
    assert [one["t_ns"] for one in found.samples] == [1, 2]
    assert found.skipped == 1


def test_a_torn_last_line_is_left_out_even_if_it_could_be_read(tmp_path: Path) -> None:
    found = read(tmp_path, GPU, sample(1), json.dumps(sample(2)).encode())
    assert [one["t_ns"] for one in found.samples] == [1]
    assert found.skipped == 1


def test_a_pipe_is_not_waited_on_and_a_link_not_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "telemetry.jsonl")
    with pytest.raises(BadRun, match="not a plain file"):
        telemetry(tmp_path)
    (tmp_path / "telemetry.jsonl").unlink()
    (tmp_path / "telemetry.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(BadRun, match="links are not followed"):
        telemetry(tmp_path)


def test_the_samples_of_each_shard_are_a_file_of_their_own(tmp_path: Path) -> None:
    numbers = ("10", "2", "2-10", "2-9", "x", "2-9-1")
    assert telemetry_files(tmp_path) == {}
    for name in (f"telemetry-{number}.jsonl" for number in numbers):
        (tmp_path / name).write_text(json.dumps(HOST) + "\n" + json.dumps(sample(5)) + "\n")
    found = telemetry_files(tmp_path)
    assert list(found.items()) == [
        ("telemetry-2.jsonl", "shard 2"),
        ("telemetry-2-9.jsonl", "shard 2, device 9"),
        ("telemetry-2-10.jsonl", "shard 2, device 10"),
        ("telemetry-10.jsonl", "shard 10"),
    ]
    assert len(telemetry(tmp_path, "telemetry-2.jsonl").samples) == 1
    assert telemetry(tmp_path) == Telemetry(samples=[], skipped=0, period_s=None)
    (tmp_path / "telemetry.jsonl").write_text("")
    assert telemetry_files(tmp_path)["telemetry.jsonl"] == ""
