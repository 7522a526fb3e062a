"""Calibration: real and small on the CPU; its counter checks through a scripted driver; its file,
whole and torn.
"""

import json
import subprocess
import sys
import time

import pytest
import torch

from attnbench.harness.calibration import calibrate, checks, peaks
from attnbench.harness.calibration.calibrate import (
    FILE,
    Calibration,
    judge,
    keep,
    line_of,
    newest_calibration,
)
from attnbench.harness.calibration.checks import Check, disorder, within
from attnbench.harness.calibration.peaks import Peak, Sizes
from attnbench.harness.calibration.specified import SPECIFIED, specified
from attnbench.harness.cli.calibration_table import sentences, tables
from attnbench.harness.errors import BadInput, EnvironmentUnmet
from attnbench.harness.probes import Readings
from tests.conftest import environment
from tests.fakes.nvml.driver import H100

pytestmark = pytest.mark.long

SMALL = Sizes(gemm=128, copy_bytes=4 << 20, warm_up_s=0.01, block_s=0.005, blocks=6, most_s=0.2)
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def made(**changes):
    values = {
        "utc": "2026-01-01T00:00:00+00:00", "device": "cuda", "device_name": "NVIDIA H100 PCIe", "device_uuid": UUID, "torch": "2.11",
        "peaks": [Peak(name="gemm_bf16_flops_per_s", work=1e12, block_ms=[[2.0], [2.0, 2.02], [2.02]])],
        "specified": specified("NVIDIA H100 PCIe"), "checks": [Check(name="a", wanted="b", found=1.0, verdict="ok")],
    }  # fmt: skip
    return Calibration(**values | changes)


# ---- on this machine -----------------------------------------------------------------------------


def test_a_cpu_is_calibrated_for_real(tmp_path):
    found = calibrate.calibrate("cpu", tmp_path, wait=False, sizes=SMALL, window_s=0.2)
    assert found.device_uuid is None
    assert [peak.name for peak in found.peaks] == [
        "gemm_fp32_flops_per_s",
        "gemm_bf16_flops_per_s",
        "copy_bytes_per_s",
    ]
    assert all(peak.best_per_s > 1e6 and len(peak.block_ms) >= 3 for peak in found.peaks)
    assert {check.name: check.verdict for check in found.checks}["idle: host_busy_cores"] == "ok"
    assert len(found.checks) == 5
    line = newest_calibration(tmp_path, None, found.device_name)
    assert line == json.loads(json.dumps(line_of(found)))
    assert line["peaks"] == {peak.name: peak.best_per_s for peak in found.peaks}
    assert set(line["specified"].values()) == {None}
    assert newest_calibration(tmp_path, UUID, found.device_name) is None


def test_the_verb_prints_a_table_and_json(attnbench, tmp_path):
    # The sizes of a real calibration are too long for a test.
    code = (
        "import sys\nfrom attnbench.harness.calibration import checks, peaks\nfrom"
        " attnbench.harness.cli.app import main\npeaks.CPU = peaks.Sizes(gemm=64, copy_bytes=1 <<"
        " 20, warm_up_s=0.01, block_s=0.005, most_s=0.1)\nchecks.WINDOW_S = 0.1\nsys.argv ="
        " ['attnbench', 'doctor', '--calibrate', '--device', 'cpu', *sys.argv[1:]]\nmain()"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(
        run, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode in (0, 1), shown.stderr
    assert "FLOP/s" in shown.stdout
    assert "Appended to results/calibration.jsonl." in shown.stdout
    told = subprocess.run(
        [*run, "--json"], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    line = json.loads(told.stdout)
    assert told.returncode == int(any(check["verdict"] == "off" for check in line["checks"]))
    assert len((tmp_path / "results" / FILE).read_text().splitlines()) == 2


def test_a_gpu_that_is_not_there_is_refused_in_words(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentUnmet, match=r"no cuda device: torch .*--device cpu"):
        calibrate.calibrate("cuda", tmp_path, wait=False)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_refused_before_measuring(tmp_path):
    (tmp_path / "file").write_text("")
    started = time.monotonic()
    with pytest.raises(BadInput, match="--out DIR"):
        calibrate.calibrate("cpu", tmp_path / "file", wait=False)
    assert time.monotonic() - started < 1


# ---- peaks ---------------------------------------------------------------------------------------


def test_a_peak_is_work_over_the_best_blocks_median():
    assert Peak(
        name="x", work=10.0, block_ms=[[4.0, 5.0, 9.0], [0.1, 6.0, 7.0]]
    ).best_per_s == pytest.approx(10 / 5e-3)


def test_what_cannot_be_measured_says_why():
    def make():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB\nand more")

    peak = peaks.measured("copy_bytes_per_s", make, None, SMALL)
    assert (peak.best_per_s, peak.reason) == (None, "CUDA out of memory. Tried to allocate 1 GiB")
    (check,) = judge(peak, 1e9)
    assert (check.verdict, check.reason) == ("not measured", peak.reason)


def test_a_copy_counts_bytes_read_and_written_and_a_product_two_flops_per_step():
    assert peaks.copy(torch.device("cpu"), 1 << 20)()[0] == 2 << 20
    assert peaks.gemm(torch.device("cpu"), torch.bfloat16, 64)()[0] == 2 * 64**3


def test_tf32_is_put_back():
    before = torch.get_float32_matmul_precision()
    with peaks.tf32(allowed=True):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(("stated", "verdict"), [(1e12, "ok"), (0.9e12, "off"), (4e12, "off")])
def test_a_peak_is_judged_by_the_specified_one(stated, verdict):
    peak = Peak(name="gemm_bf16_flops_per_s", work=1e9, block_ms=[[1.0]] * 4)
    assert judge(peak, stated)[-1].verdict == verdict


def test_repeats_that_differ_are_off():
    peak = Peak(name="copy_bytes_per_s", work=1.0, block_ms=[[1.0], [3.0], [1.0], [3.0]])
    (check,) = judge(peak, None)
    assert check.verdict == "off"


def test_specified_peaks_are_dense_and_by_exact_name():
    assert specified("NVIDIA H200")["gemm_bf16_flops_per_s"] == pytest.approx(989.4e12)
    assert specified("NVIDIA A10G") == specified(None) == {}
    for rates in SPECIFIED.values():
        assert (
            rates["gemm_fp32_flops_per_s"]
            <= rates["gemm_tf32_flops_per_s"]
            <= rates["gemm_bf16_flops_per_s"]
        )


# ---- checks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "verdict"), [(0.5, "ok"), (0.41, "ok"), (0.39, "off"), (None, "not measured")]
)
def test_a_check_says_what_it_wanted_and_why_it_failed(found, verdict):
    check = within("x", 0.4, 0.6, found, "no such counter", "something runs")
    assert (check.wanted, check.verdict) == ("0.4 to 0.6", verdict)
    assert (
        check.reason
        == {"ok": "", "off": "something runs", "not measured": "no such counter"}[verdict]
    )


def test_a_part_that_exceeds_its_whole_is_disorder():
    good = {
        "sm_occupancy_ratio": 0.2,
        "sm_active_ratio": 0.9,
        "graphics_ratio": 1.0,
        "hmma_ratio": 0.7,
        "any_tensor_ratio": 0.7,
    }
    assert disorder(good) == 0
    assert disorder(good | {"hmma_ratio": 0.9}) == pytest.approx(0.2)
    assert disorder(good | {"graphics_ratio": None}) is None


def test_every_wanted_reading_has_a_load_and_a_probe_that_gives_it():
    columns = {name for probe in ("busy", "gpm") for name in checks.probe(probe).COLUMNS} | {
        checks.DISORDER
    }
    loads = {"idle", "one block", "half the time", "large bf16 product"}
    assert {one.load for one in checks.cuda_wanted(132)} == loads
    assert {one.column for one in checks.cuda_wanted(132)} <= columns
    assert {one.load for one in checks.CPU_WANTED} == set(checks.cpu_loads())
    one_block = next(
        one
        for one in checks.cuda_wanted(132)
        if (one.load, one.column) == ("one block", "sm_active_ratio")
    )
    assert one_block.check(Readings({"sm_active_ratio": 1 / 132}, {})).verdict == "ok"
    assert one_block.check(Readings({"sm_active_ratio": 1.0}, {})).verdict == "off"


CHECKED = f"""
import json
from dataclasses import asdict
from attnbench.harness.calibration import checks
from attnbench.harness.nvml import Device
loads = dict.fromkeys(("idle", "one block", "half the time", "large bf16 product"), checks.IDLE)
found = checks.checked(loads, checks.cuda_wanted(100), checks.CUDA_PROBES, Device(uuid="{UUID}"), 0.8)
print(json.dumps([asdict(check) for check in found]))
"""


def verdicts(fake, script):
    fake.write(script)
    done = subprocess.run(
        [sys.executable, "-c", CHECKED],
        env=environment(fake.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stderr
    return {check["name"]: (check["verdict"], check["reason"]) for check in json.loads(done.stdout)}


def test_counters_are_read_through_the_driver(fake_nvml):
    metrics = "".join(
        f"gpm_metric {number} {value}\n"
        for number, value in {1: 100, 2: 1, 3: 0.5, 5: 60, 7: 60, 10: 5}.items()
    )
    found = verdicts(fake_nvml, H100 + metrics + "busy_percent 50\nsample_period_ms 100\n")
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "idle: kernel_busy_ratio": "off",
        "idle: sm_active_ratio": "ok",
        "one block: kernel_busy_ratio": "off",
        "one block: sm_active_ratio": "ok",
        "half the time: kernel_busy_ratio": "ok",
        "large bf16 product: sm_active_ratio": "off",
        "large bf16 product: any_tensor_ratio": "ok",
        "large bf16 product: hmma_ratio": "ok",
        "large bf16 product: disorder_ratio": "ok",
    }


def test_a_driver_without_counters_leaves_checks_unmeasured_with_its_reason(old_fake_nvml):
    found = verdicts(old_fake_nvml, H100 + "sample_period_ms 100\n")
    assert found["idle: kernel_busy_ratio"][0] == "ok"
    assert found["one block: sm_active_ratio"][0] == "not measured"
    assert "too old" in found["one block: sm_active_ratio"][1]
    assert found["large bf16 product: disorder_ratio"][0] == "not measured"


def test_gpu_loads_are_made_and_half_the_time_is_rest(monkeypatch):
    slept = []
    monkeypatch.setattr(checks, "GEMM", 64)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(
        torch.cuda, "_sleep", lambda cycles: (slept.append(cycles), time.sleep(checks.ON_S))
    )
    loads = checks.cuda_loads(torch.device("cpu"))
    assert {one.load for one in checks.cuda_wanted(132)} == set(loads)
    for load in loads.values():
        load.call()
    start = time.perf_counter()
    loads["half the time"].call()
    assert time.perf_counter() - start >= 2 * checks.ON_S
    assert set(slept) == {int(checks.ON_S * 2e9)}


# ---- the file ------------------------------------------------------------------------------------


def test_the_newest_line_of_this_device_is_found_past_torn_ones(tmp_path):
    keep(tmp_path, made(utc="1"))
    keep(tmp_path, made(utc="2"))
    keep(tmp_path, made(utc="3", device_uuid="GPU-other"))
    with (tmp_path / FILE).open("a") as file:
        file.write('{"schema": 1, "utc": "torn", "device_uu')
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "2"
    keep(tmp_path, made(utc="4"))
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "4"
    with (tmp_path / FILE).open("a") as file:
        file.write('\n[1]\n{"schema": 99}\n\xff\n')
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "4"


def test_a_cpu_is_known_by_its_name_and_nothing_is_found_where_nothing_is(tmp_path):
    assert newest_calibration(tmp_path, UUID, None) is None
    keep(tmp_path, made(device="cpu", device_uuid=None, device_name="Some CPU"))
    assert newest_calibration(tmp_path, None, "Some CPU")
    assert newest_calibration(tmp_path, None, "Other CPU") is None
    assert newest_calibration(tmp_path, None, None) is None


def test_a_calibration_is_told_in_two_tables_and_what_is_off_in_words(tmp_path):
    off = Check(
        name="idle: kernel_busy_ratio",
        wanted="at most 0.05",
        found=0.9,
        verdict="off",
        reason="other work runs on this GPU",
    )
    calibration = made(
        checks=[
            off,
            *judge(made().peaks[0], specified("NVIDIA H100 PCIe")["gemm_bf16_flops_per_s"]),
        ]
    )
    assert calibration.exit_code == 1
    assert made().exit_code == 0
    assert [drawn.row_count for drawn in tables(calibration)] == [1, 3]
    told = list(sentences(calibration, tmp_path))
    assert any("other work runs on this GPU" in sentence for sentence in told)
    assert any("1 of 3 checks are off" in sentence for sentence in told)


# ---- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_this_gpus_counters_read_what_they_should(attnbench, tmp_path):
    # In a process of its own: this one must not stay on the GPU, where others are then measured.
    done = attnbench("doctor", "--calibrate", "--device", "cuda", "--wait", "--json")
    line = json.loads(done.stdout)
    assert [check for check in line["checks"] if check["verdict"] == "off"] == []
    assert done.returncode == 0
    assert all(line["peaks"].values())
    assert (
        newest_calibration(tmp_path / "results", line["device_uuid"], line["device_name"]) == line
    )
