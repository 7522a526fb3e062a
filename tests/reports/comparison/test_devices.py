"""Copies on two devices give their spread; copies on one device say nothing about devices."""

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.reports.comparison.devices import Copies, Device, copies_of, device_of, finding
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from tests.made_runs import case, problem, timed, write_run

BACKENDS = ("naive", "fused", "sdpa")
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
NAME = "NVIDIA H100 80GB HBM3"
DRIFT_SD = 0.004  # of a device's speed from group to group


def gpu(number: int, host: str = "node1", **changes: Any) -> dict[str, Any]:
    uuid = f"GPU-{number:08x}-0000-0000-0000-000000000000"
    return {"device": "cuda", "host": host, "device_uuid": uuid, "device_name": NAME, **changes}


def copies_run(
    folder: Path,
    where: Sequence[Mapping[str, Any]],
    ratios: Sequence[float],
    *,
    lengths: Sequence[int] = LENGTHS,
    seed: int = 1,
    processes: int = 5,
    shuffled: bool = True,
    statuses: Mapping[str, str] = {},
    **meta: Any,
) -> Path:
    """Copy n of each group is measured on `where[n]`, where cases take 10 ms times `ratios[n]`;
    `shuffled`: which copy is on which device differs from group to group.
    """
    random = Random(seed)
    cases, rows = [], []
    for number, n in enumerate(lengths):
        turn = number % len(where) if shuffled else 0
        for copy in range(len(where)):
            at = (copy + turn) % len(where)
            level_ms = 10.0 * ratios[at] * exp(random.gauss(0, DRIFT_SD))
            for backend in BACKENDS:
                planned = copied(backend, n, number, copy, len(lengths), **where[at])
                cases.append(planned)
                fields = {name: value for name, value in planned.items() if name != "replica_of"}
                status = statuses.get(planned["case"], "ok")
                one = timed(fields, level_ms, random, processes, **where[at])
                if status != "ok":
                    one |= {"status": status, "reason": f"made up: {status}", "block_ms": None}
                rows.append(one)
    device = where[0].get("device", "cpu")
    return write_run(folder, cases, rows, name="copies", **{"device": device, **meta})


def copied(
    backend: str, n: int, number: int, copy: int, groups: int, **where: Any
) -> dict[str, Any]:
    """As run.json plans it."""
    one = case(backend, problem(n, device=where.get("device", "cpu")))
    more = {"replica_of": number} if copy else {}
    name = one["case"] + (f"-replica{copy + 1}" if copy else "")
    group = copy * groups + number
    return {**one, "case": name, "group": group, "replica": copy + 1, **more}


TWO = (gpu(1), gpu(2, "node2"))


def found_in(run: Path) -> Copies:
    read = [read_run(run)]
    (found,) = copies_of(rows_of(read), run_meta(read))
    return found


@pytest.mark.parametrize("ratio", [1.06, 1 / 1.06])
def test_the_slower_device_is_found_whichever_copy_it_measured(
    tmp_path: Path, ratio: float
) -> None:
    found = found_in(copies_run(tmp_path, TWO, (1.0, ratio)))
    pair = found.spread
    assert pair.new.host == ("node2" if ratio > 1 else "node1")
    assert pair.ratio.low < 1.06 < pair.ratio.high
    assert pair.ratio.low > 1.03
    assert (pair.word, pair.groups) == ("more", len(LENGTHS))
    assert finding(found).startswith("2 devices of one kind differ by more than 3 %: GPU ")
    assert list(found.devices.values()) == [18, 18]


@pytest.mark.parametrize(
    ("where", "ratio", "changes", "word", "said"),
    [
        (TWO, 1.0, {}, "same", "2 devices of one kind agree within 3 %"),
        (TWO, 1.2, {"lengths": (128, 256)}, "not decided", "(2 groups: no interval)"),
        ((gpu(1), gpu(2, contended_blocks=20)), 1.3, {}, "not decided", "other work competed"),
        ((gpu(1), gpu(2, device_name="NVIDIA A100")), 2.0, {}, None, "different kinds"),
        (({"host": None},) * 2, 1.1, {}, None, "do not say which devices measured"),
        ((gpu(1, device_uuid=None),) * 2, 1.1, {}, None, "do not say which devices measured"),
    ],
)
def test_only_what_separates_two_devices_of_one_kind_is_a_spread(
    tmp_path: Path,
    where: tuple[dict[str, Any], ...],
    ratio: float,
    changes: dict[str, Any],
    word: str | None,
    said: str,
) -> None:
    found = found_in(copies_run(tmp_path, where, (1.0, ratio), **changes))
    assert (found.spread and found.spread.word) == word
    assert said in finding(found)


def test_copies_on_one_device_are_repeats_and_no_spread_between_devices(tmp_path: Path) -> None:
    found = found_in(copies_run(tmp_path, (gpu(1), gpu(1)), (1.0, 1.0)))
    assert found.spread is None
    assert not found.pairs
    assert "how much devices differ is not known" in finding(found)
    (repeats,) = found.repeats
    assert repeats.groups == len(LENGTHS)
    assert repeats.ratio.low < 1.0 < repeats.ratio.high
    assert 0.002 < repeats.spread.ratio < 0.2


def test_a_cpu_is_known_by_its_host_and_a_gpu_by_its_uuid_wherever_it_is() -> None:
    cpu = {"device": "cpu", "host": "a", "device_uuid": None, "device_name": "EPYC"}
    assert device_of(cpu) == Device(identity="a", name="EPYC", host="a", uuid="")
    assert device_of({**cpu, "host": "b"}) != device_of(cpu)
    assert device_of({**gpu(1), "host": "a"}) == device_of({**gpu(1), "host": "b"})
    assert device_of(gpu(1)) != device_of(gpu(2))


def test_three_devices_are_compared_pair_by_pair_and_the_worst_pair_comes_first(
    tmp_path: Path,
) -> None:
    where = (gpu(1), gpu(2), gpu(3))
    found = found_in(copies_run(tmp_path, where, (1.0, 1.05, 1.1)))
    assert len(found.pairs) == 3
    values = [pair.ratio.value for pair in found.pairs]
    assert values == sorted(values, reverse=True)
    assert found.spread.new.uuid.startswith("GPU-00000003")
    assert found.between.ratio > 0.1
    two = found_in(copies_run(tmp_path / "two", where[::2], (1.0, 1.1)))
    assert two.spread.ratio.half_width_ratio < found.spread.ratio.half_width_ratio


def test_a_case_that_failed_on_one_device_leaves_the_others_of_its_group(tmp_path: Path) -> None:
    name = copied("naive", 128, 0, 0, len(LENGTHS), **TWO[0])["case"]
    found = found_in(copies_run(tmp_path, TWO, (1.0, 1.1), statuses={name: "crashed"}))
    assert found.spread.groups == len(LENGTHS)
    assert len(found.cases) == 3 * len(LENGTHS) - 1
