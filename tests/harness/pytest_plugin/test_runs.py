"""The run of a scenario file that pytest ends early."""

from types import SimpleNamespace
from typing import Any, cast

from attnbench.harness.files.errors import StoreError
from attnbench.harness.pytest_plugin.runs import FileRun
from attnbench.harness.terminal.progress import QuietProgress


def test_rows_that_cannot_be_stored_when_pytest_ends_a_run_are_a_remark() -> None:
    def full(why: str) -> None:
        raise StoreError("rows.jsonl: No space left on device; all earlier rows are safe", [])

    nothing: Any = None
    run = FileRun(nothing, nothing, [], QuietProgress())
    run._session = cast(Any, SimpleNamespace(stop=full))
    run._abort(TimeoutError("a time limit of pytest's"))
    assert run.log.remarks == ["rows.jsonl: No space left on device; all earlier rows are safe"]
    assert str(run.refusal) == "its run ended early, by TimeoutError"
