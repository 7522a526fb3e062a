"""`attnbench doctor --calibrate`: whether counters read what they should, and what this device can
reach. Kept in calibration.jsonl.

Light: a run asks for the newest calibration in a process that does not import torch.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, EnvironmentUnmet

if TYPE_CHECKING:
    from .checks import Check
    from .peaks import Peak, Sizes

FILE = "calibration.jsonl"
SCHEMA = 1
STEADY_RATIO = 0.15
"""Half the interval of a typical rate: beyond it something else was at work, and the best of the
repeats may be no peak either.
"""
# of the specified peak: data sheets reckon with a boost clock that some boards exceed by up to 8 %
HIGHEST_SHARE = 1.1
LOWEST_SHARE = 0.3  # a GPU that is held back by its power limit still reaches more


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`specified`: what the maker states, {} where that is not known. `device_uuid` is None on a
    CPU.
    """

    utc: str
    device: str
    device_name: str | None
    device_uuid: str | None
    torch: str
    peaks: "Sequence[Peak]"
    specified: dict[str, float]
    checks: "Sequence[Check]"

    @property
    def exit_code(self) -> int:
        return 1 if any(check.verdict == "off" for check in self.checks) else 0


def calibrate(
    wanted: str,
    root: Path,
    *,
    wait: bool,
    sizes: "Sizes | None" = None,
    window_s: float | None = None,
) -> Calibration:
    """Measure, judge, and append to `root`/calibration.jsonl. Raises Refusal where there is no such
    device or it is in use.
    """
    import torch

    from ..environment import cpu_name, fix_threads, pick_device
    from ..nvml import identity
    from ..process.device_lock import device_lock
    from . import checks as known
    from .peaks import measure
    from .specified import specified

    fix_threads()
    device, why = pick_device(wanted)
    if why:
        raise EnvironmentUnmet(
            f"no {wanted} device: {why}; calibrate with --device cpu, or see attnbench doctor"
        )
    open_for_appending(root)
    gpu = identity(device)
    seconds = window_s or known.WINDOW_S
    with device_lock(gpu.uuid or "cpu", wait=wait, check=lambda: None):
        if device.type == "cuda":
            properties = torch.cuda.get_device_properties(device)
            name: str | None = properties.name
            try:
                loads = known.cuda_loads(device)
            except torch.OutOfMemoryError:
                raise EnvironmentUnmet(
                    f"{name} has too little free memory to be calibrated; see attnbench doctor"
                ) from None
            checks = known.checked(
                loads,
                known.cuda_wanted(properties.multi_processor_count),
                known.CUDA_PROBES,
                gpu,
                seconds,
            )
        else:
            name = cpu_name()
            checks = known.checked(
                known.cpu_loads(), known.CPU_WANTED, known.CPU_PROBES, gpu, seconds
            )
        peaks = measure(device, sizes)
    stated = specified(name)
    calibration = Calibration(
        utc=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.type,
        device_name=name,
        device_uuid=gpu.uuid,
        torch=torch.__version__,
        peaks=peaks,
        specified=stated,
        checks=[
            *checks,
            *(check for peak in peaks for check in judge(peak, stated.get(peak.name))),
        ],
    )
    keep(root, calibration)
    return calibration


def judge(peak: "Peak", stated: float | None) -> "list[Check]":
    """Whether repeats agree, and, where the maker states a peak, whether the measured one is
    possible.
    """
    from ..stats import latency_interval
    from .checks import Check, within

    best = peak.best_per_s
    if best is None:
        return [
            Check(
                name=f"{peak.name}: repeats",
                wanted="any",
                found=None,
                verdict="not measured",
                reason=peak.reason,
            )
        ]
    half = latency_interval([peak.block_ms]).half_width_ratio
    spread, disturbed = (
        half if isfinite(half) else None,
        "repeats differ: other work runs on this device, or its clock moves",
    )
    found = [
        within(
            f"{peak.name}: half-width of repeats",
            0,
            STEADY_RATIO,
            spread,
            "too few repeats",
            disturbed,
        )
    ]
    if stated is not None:
        wrong = (
            "beyond what the data sheet allows: the work or the clock is wrong"
            if best > stated
            else "far below: held back, or a slow kernel"
        )
        found.append(
            within(
                f"{peak.name}: share of specified",
                LOWEST_SHARE,
                HIGHEST_SHARE,
                best / stated,
                "",
                wrong,
            )
        )
    return found


def line_of(calibration: Calibration) -> dict[str, Any]:
    """As it stands in calibration.jsonl. Peaks are the best of the repeats; `samples` has all of
    them, in ms, [block][call].
    """
    return {
        "schema": SCHEMA,
        "utc": calibration.utc,
        "device": calibration.device,
        "device_name": calibration.device_name,
        "device_uuid": calibration.device_uuid,
        "torch": calibration.torch,
        "peaks": {peak.name: peak.best_per_s for peak in calibration.peaks},
        "specified": {
            peak.name: calibration.specified.get(peak.name) for peak in calibration.peaks
        },
        "checks": [asdict(check) for check in calibration.checks],
        "samples": {
            peak.name: {"work": peak.work, "block_ms": peak.block_ms}
            for peak in calibration.peaks
            if peak.block_ms
        },
    }


def open_for_appending(root: Path, text: str = "") -> None:
    """Add a line, or see whether one could be added: minutes of measuring must not be lost for a
    folder that cannot be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / FILE).open("a+b") as file:
            torn = file.tell() > 0 and text and not ends_whole(root / FILE)
            file.write(("\n" * bool(torn) + text).encode())
    except OSError as error:
        raise BadInput(
            f"{root}: cannot write {FILE} here ({error.strerror}); choose another with --out DIR"
        ) from None


def ends_whole(path: Path) -> bool:
    return path.read_bytes().endswith(b"\n")


def keep(root: Path, calibration: Calibration) -> None:
    """One more line; earlier ones stay. A line that was torn off, by a full disk or a crash, does
    not spoil this one.
    """
    open_for_appending(root, json.dumps(line_of(calibration), allow_nan=False) + "\n")


def newest_calibration(
    root: Path, device_uuid: str | None, device_name: str | None
) -> dict[str, Any] | None:
    """The last line of `root`/calibration.jsonl for this GPU, or, without a UUID, for a CPU of this
    name. None where there is none.
    """
    newest = None
    with suppress(OSError):
        for line in (root / FILE).read_bytes().splitlines():
            with suppress(ValueError):  # torn, or not ours
                found = json.loads(line)
                if fits(found, device_uuid, device_name):
                    newest = found
    return newest


def fits(found: Any, device_uuid: str | None, device_name: str | None) -> bool:
    if (
        not isinstance(found, dict)
        or found.get("schema") != SCHEMA
        or not {"peaks", "checks", "utc"} <= found.keys()
    ):
        return False
    if device_uuid is not None:
        return bool(found.get("device_uuid") == device_uuid)
    return (
        found.get("device_uuid") is None
        and device_name is not None
        and found.get("device_name") == device_name
    )
