"""The documents that commands print with --json, as types: for JSON Schemas (cli/schemas.py) and
for users' type checkers. docs/format.md says what the fields mean; packs have such types too.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from .compared_documents import Compared, Maybe, Trend

Object = dict[str, Any]

# ---- lines of `attnbench run --json-lines` and `attnbench wall --json-lines` ---------------------


class Entry(TypedDict):
    reason: Literal["entry"]
    number: int
    of: int
    scenario: str


class Begin(TypedDict):
    reason: Literal["begin"]
    run: str
    cases: int
    walls: int
    studies: int
    done: int
    remarks: list[str]


class Expects(TypedDict):
    reason: Literal["expects"]
    about_s: float
    steps: int


class Predicted(TypedDict):
    """Open: it also has what is known of the backend."""

    reason: Literal["predicted"]
    case: str
    predicted_seq_len: int | None
    predicted_source: str | None
    predicted_reason: str


class Running(TypedDict):
    reason: Literal["running"]
    case: str
    phase: str


class Steps(TypedDict):
    reason: Literal["steps"]
    case: str
    done: int


class Finished(TypedDict):
    """`row`: as in rows.jsonl, without samples."""

    reason: Literal["finished"]
    row: Object


class Remark(TypedDict):
    reason: Literal["remark"]
    text: str


class LongestN(TypedDict):
    backend: str
    n: int | None
    how: Literal["tried", "formula", "at least"]


class End(TypedDict):
    """`walls`: of `attnbench wall`."""

    reason: Literal["end"]
    run: str
    statuses: dict[str, int]
    walls: NotRequired[list[LongestN]]


class EndedEntry(TypedDict):
    scenario: str
    ended: str
    run: str | None


class SuiteEnd(TypedDict):
    reason: Literal["end"]
    suite: str
    entries: list[EndedEntry]
    statuses: dict[str, int]


RunLine = Entry | Begin | Expects | Predicted | Running | Steps | Finished | Remark | End | SuiteEnd

# ---- `attnbench claims --json` -------------------------------------------------------------------

ClaimVerdict = Literal["supported", "refuted", "depends", "not decided", "not run"]


class ClaimPart(TypedDict):
    of: str
    verdict: ClaimVerdict
    numbers: str
    half: str


class Claim(TypedDict):
    id: str
    statement: str
    tested_by: str
    verdict: ClaimVerdict
    parts: list[ClaimPart]
    needs: str | None
    missing: list[str]
    reason: str | None


class Claims(TypedDict):
    schema: int
    claims: list[Claim]


# ---- `attnbench doctor --json`, `attnbench selfcheck --json` -------------------------------------


class Finding(TypedDict):
    about: str
    found: str
    grade: Literal["ok", "note", "bad"]
    advice: str
    gpu: str


class Check(TypedDict):
    name: str
    wanted: str
    found: Maybe
    verdict: Literal["ok", "off", "not measured"]
    reason: str


class PeakSamples(TypedDict):
    work: int
    block_ms: list[list[float]]


class Calibration(TypedDict):
    """A line of calibration.jsonl; `attnbench doctor --calibrate --json`."""

    schema: int
    utc: str
    device: str
    device_name: str | None
    device_uuid: str | None
    torch: str
    peaks: dict[str, Maybe]
    specified: dict[str, Maybe]
    checks: list[Check]
    samples: dict[str, PeakSamples]


class TwinRatio(TypedDict):
    value: float
    low: float
    high: float
    units: int
    reason: str


class Twins(TypedDict):
    backend: str
    ratio: TwinRatio
    within_ratio: float
    between_ratio: float


class Selfcheck(TypedDict):
    device: str
    started_utc: str
    pairs: list[Twins]
    paired_noise_ratio: float
    run_noise_ratio: float
    clock_overhead_ms: float
    shortest_ms: float
    blocks: int
    contended_blocks: int
    throttled_blocks: int
    environment: Object
    false_alarms: int


class Machine(TypedDict):
    """`calibration`, `selfcheck`: with --deep."""

    findings: list[Finding]
    environment: Object
    gpus: list[Object]
    calibration: NotRequired[Calibration]
    selfcheck: NotRequired[Selfcheck]


class Tried(TypedDict):
    """What became of one backend. `beside`: the file of cheats/ that it was measured with."""

    backend: str
    role: Literal["cheat", "honest", "shipped"]
    beside: str
    what: str
    case: str
    verdict: str
    status: str
    reason: str


class Court(TypedDict):
    """`attnbench selfcheck --court --json`."""

    run: str
    device: str
    tried: int
    convicted: int
    escaped: int
    touched: int
    findings: list[Tried]


OPEN = ("ComparedCase", "Predicted", "TrendCase")
DOCUMENTS: dict[str, Any] = {
    "run": RunLine,
    "compare": Compared,
    "trend": Trend,
    "claims": Claims,
    "doctor": Machine | Calibration,
    "selfcheck": Selfcheck | Court,
}
"""By the command that prints them."""
