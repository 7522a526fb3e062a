"""Run a study inside a worker."""

from collections.abc import Mapping
from typing import Any

from ..cases import study_of
from ..errors import first_line, traceback_end
from ..record import Status
from ..studies import load
from .phases import WorkerConfig


def run_study(fields: Mapping[str, Any], config: WorkerConfig) -> dict[str, Any]:
    """Status, reason, log_tail and findings."""
    study = study_of(fields)
    try:
        findings = list(
            load(study.study).run(study.problem, config.device, config.seed, **dict(study.part))
        )
    except Exception as error:  # noqa: BLE001 - a failed study does not end the run
        reason, log_tail = first_line(error), traceback_end()
        return {"status": Status.ERROR, "reason": reason, "log_tail": log_tail, "findings": []}
    return {"status": Status.OK, "reason": "", "log_tail": None, "findings": findings}
