"""What formulas said of a call's bytes is kept until something that is installed changes."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.harness.advise import predicted
from attnbench.harness.advise.predicted import Predictions
from attnbench.impls.problem import Problem
from attnbench.reports.advise.asked import Bytes

HERE = Predictions(device="cpu", device_name="mine")
LAYER = Problem(batch=1, seq_len=64, d_model=128, heads=4, kv_heads=2, causal=True, dtype="bf16")
FORMULA, BOUND, REFUSED = "sdpa", "hf:sdpa", "hf:flash_attention_2"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "peaks"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """What formulas are asked; the first answer is an error."""
    found: list[Problem] = []

    def peak(backend: str, problem: Problem, device: str) -> tuple[Bytes, bool]:
        found.append(problem)
        return Bytes(value=len(found), words=f"{backend} on {device}"), len(found) > 1

    monkeypatch.setattr(predicted, "_peak", peak)
    return found


def test_what_is_kept_is_what_the_formulas_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        (backend, replace(LAYER, dtype=dtype))
        for backend in (FORMULA, BOUND, REFUSED)
        for dtype in ("fp32", "bf16")
    ]
    fresh = [replace(HERE).peak(*one) for one in asked]
    assert {(one.value is None, one.at_most) for one in fresh} >= {(False, False), (True, False)}
    monkeypatch.setattr(predicted, "_peak", pytest.fail)
    again = replace(HERE)
    assert [again.peak(*one) for one in asked] == fresh


def test_an_error_is_asked_again_in_the_next_command(asked: list[Problem]) -> None:
    one = replace(HERE)
    assert one.peak(FORMULA, LAYER) == one.peak(FORMULA, LAYER)
    assert [replace(HERE).peak(FORMULA, LAYER).value for _ in range(2)] == [2, 2]


def test_another_problem_device_package_or_setting_is_asked(
    asked: list[Problem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))

    def values() -> list[int | None]:
        long = replace(LAYER, seq_len=128)
        other = replace(HERE, device_name="another")
        return [replace(HERE).peak(FORMULA, LAYER).value, other.peak(FORMULA, long).value]

    values()  # the first is not kept
    kept = values()
    assert values() == kept
    (packages / "torch-9.dist-info").mkdir()
    installed = values()
    assert set(installed).isdisjoint(kept)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert set(values()).isdisjoint(installed)


def test_a_broken_line_is_passed_over(asked: list[Problem], cache: Path) -> None:
    replace(HERE).peak(FORMULA, replace(LAYER, batch=2))
    replace(HERE).peak(FORMULA, LAYER)
    (file,) = cache.iterdir()
    file.write_text("\x00[]\n7\n{}\n" + file.read_text()[:-9] + "\n" + file.read_text())
    assert replace(HERE).peak(FORMULA, LAYER).value == 2
    assert len(asked) == 2
