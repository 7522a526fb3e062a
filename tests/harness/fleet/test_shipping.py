"""The user's models go to the devices that look at them, and no further."""

from collections import Counter
from pathlib import Path

import pytest

from attnbench.harness.fleet.dispatch import run_on
from attnbench.harness.fleet.parts import shipped
from attnbench.harness.fleet.shipping import Shipping
from attnbench.harness.learning.checkpoints.given import Checkpoint
from attnbench.harness.process.signals import Signals
from attnbench.harness.rows.run_files import read_rows
from tests.fakes.fleet import FakeFleet
from tests.harness.fleet.test_dispatch import DIED, Heard, plan


@pytest.fixture
def models(tmp_path: Path) -> list[Checkpoint]:
    paths = [tmp_path / f"{name}.safetensors" for name in ("mine", "other")]
    for path in paths:
        path.write_bytes(b"weights")
    return [Checkpoint(name=path.stem, path=path) for path in paths]


def looked_at(
    root: Path, fleet: FakeFleet, models: list[Checkpoint]
) -> dict[str, tuple[str, str, str]]:
    """Status, host and reason of each model's row; the first device has opened all of them."""
    shipping = Shipping(fleet, list(map(shipped, models)))
    assert shipping.refuse_bad(1 << 30) == []
    one = plan(root, Heard(), attachments=models)
    run_on(one, fleet, Signals(), shipping)
    rows = read_rows(one.store.path)
    return {
        row["part"]["checkpoint"]: (row["status"], row["host"], row["reason"])
        for row in rows
        if row["kind"] == "study"
    }


def test_models_are_looked_at_where_their_files_are(
    tmp_path: Path, models: list[Checkpoint]
) -> None:
    fleet = FakeFleet(3)
    found = looked_at(tmp_path, fleet, models)
    assert found == {"mine": ("ok", "host0", ""), "other": ("ok", "host0", "")}
    assert fleet.sent == [(0, "mine/mine.safetensors"), (0, "other/other.safetensors")]


def test_a_device_that_cannot_have_the_files_gives_an_error_and_measures_on(
    tmp_path: Path, models: list[Checkpoint]
) -> None:
    fleet = FakeFleet(2, lambda number, one: DIED if number == 0 else None, back=False)
    shipping = Shipping(fleet, list(map(shipped, models)))
    shipping.refuse_bad(1 << 30)
    fleet.refuses = "mine/mine.safetensors: cannot be written there (No space left on device)"
    one = plan(tmp_path, Heard(), attachments=models)
    run_on(one, fleet, Signals(), shipping)
    statuses = Counter((row["kind"], row["status"]) for row in read_rows(one.store.path))
    assert statuses == {("latency", "ok"): 20, ("study", "error"): 2}
    for row in read_rows(one.store.path):
        if row["kind"] == "study":
            assert row["reason"] == f"host1: {fleet.refuses}"
