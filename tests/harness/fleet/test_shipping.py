"""The user's models go to the devices that look at them, and no further."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.fleet.dispatch import run_on
from attnbench.harness.fleet.shipping import (
    ShippedFolder,
    Shipping,
    content_of,
    shipped,
)
from attnbench.harness.heads.checkpoints.given import Checkpoint
from attnbench.harness.process.signals import Signals
from attnbench.harness.rows.run_files import read_rows
from tests.fakes.fleet import FakeFleet
from tests.harness.fleet.test_dispatch import DIED, Heard, planned

ODD = b"\x00\xff" * 50


def test_a_device_that_cannot_have_the_files_gives_an_error_and_measures_on(
    tmp_path: Path, models: list[Checkpoint]
) -> None:
    fleet = FakeFleet(2, lambda number, one: DIED if number == 0 else None, back=False)
    shipping = Shipping(fleet, list(map(shipped, models)))
    shipping.refuse_bad(1 << 30)
    fleet.refuses = "mine/config.json: cannot be written there (No space left on device)"
    one = planned(tmp_path, Heard(), attachments=models)
    run_on(one, fleet, Signals(), shipping)
    statuses = Counter((row["kind"], row["status"]) for row in read_rows(one.store.path))
    assert statuses == {("latency", "ok"): 20, ("study", "error"): 2}
    for row in read_rows(one.store.path):
        if row["kind"] == "study":
            assert row["reason"] == f"host1: {fleet.refuses}"


def test_a_file_that_has_changed_since_the_run_began_is_not_sent(
    tmp_path: Path, models: list[Checkpoint]
) -> None:
    fleet = FakeFleet(1)
    shipping = Shipping(fleet, list(map(shipped, models)))
    (models[0].path / "config.json").write_text("[]")
    one = planned(tmp_path, Heard(), attachments=models)
    run_on(one, fleet, Signals(), shipping)
    reasons = {row["reason"] for row in read_rows(one.store.path) if row["kind"] == "study"}
    assert reasons == {
        "",
        "host0: mine/config.json: has other contents than when the run began",
    }


# ---- files get there whole, or not at all --------------------------------------------------------


@pytest.fixture
def there(tmp_path: Path) -> ShippedFolder:
    (tmp_path / "there").mkdir()
    return ShippedFolder(tmp_path / "there")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As of Hugging Face's, with more than is read of it."""
    (path := tmp_path / "my model").mkdir()
    empty = (2).to_bytes(8, "little") + b"{}"
    for name in ("model.safetensors", "other.safetensors"):
        (path / name).write_bytes(empty)
    (path / "config.json").write_text("{}")
    (path / "tokenizer.json").write_bytes(ODD)
    (path / "modeling_mine.py").write_text("raise SystemExit")
    (path / "pytorch_model.bin").write_bytes(b"x")
    return path


def keep(one: Checkpoint, there: ShippedFolder) -> set[str]:
    return {there.keep(name, content_of(path)) for name, path in one.sent().files.items()}


def test_of_a_folder_only_what_is_read_is_sent(folder: Path, there: ShippedFolder) -> None:
    (tokens := folder.parent / "some tokens.txt").write_text("")  # an empty file is a file too
    one = Checkpoint(name="mine", path=folder, tokens=tokens)
    for _ in range(2):  # a device that was lost in the middle gets it again
        assert keep(one, there) == {""}
    found = {str(file.relative_to(there.path)) for file in there.path.rglob("*") if file.is_file()}
    assert found == {
        *("mine/config.json", "mine/model.safetensors", "mine/tokenizer.json"),
        "mine/tokens/some tokens.txt",
    }
    assert (there.path / "mine" / "tokenizer.json").read_bytes() == ODD
    assert there.here(one.sent().request) == {
        "path": str(there.path / "mine"),
        "tokens": str(there.path / "mine" / "tokens" / "some tokens.txt"),
    }


@pytest.mark.parametrize("name", ["/etc/passwd", "mine/../../x", "x", "a/b/c/d", ""])
def test_nothing_is_kept_outside_of_a_checkpoints_folder(there: ShippedFolder, name: str) -> None:
    assert "not a name of a file" in there.keep(name, np.zeros(0, np.uint8))
    assert list(there.path.iterdir()) == []


def test_what_cannot_be_sent_is_refused_before_anything_starts(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "absent.safetensors"}}))
    with pytest.raises(BadInput, match=r"absent\.safetensors is not there"):
        shipped(Checkpoint(name="mine", path=folder))
    index.unlink()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").mkdir()
    with pytest.raises(BadInput, match=r"cannot be read \(not a plain file\); wanted a file"):
        shipped(Checkpoint(name="mine", path=folder))
