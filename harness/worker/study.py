"""A study inside a worker: what it finds, or why it finds nothing."""

import traceback
from collections.abc import Mapping
from typing import Any

from ..cases import study_of
from ..record import Status
from ..studies import load
from .attempt import Setting, first_line


def inquire(fields: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """What came of it: status, reason, log_tail, findings."""
    planned = study_of(fields)
    try:
        findings = list(load(planned.study).run(planned.problem, setting.device, setting.seed))
    except Exception as error:  # noqa: BLE001 - a study is looked at by itself, and the run goes on
        return {
            "status": Status.ERROR,
            "reason": first_line(error),
            "log_tail": traceback.format_exc(),
            "findings": [],
        }
    return {"status": Status.OK, "reason": "", "log_tail": None, "findings": findings}
