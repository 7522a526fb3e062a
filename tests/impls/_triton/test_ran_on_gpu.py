"""ran_on_gpu.json: which kernels a GPU has run as they are, and what users are told."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from attnbench.impls._triton import ran_on_gpu
from attnbench.impls._triton.configs import KERNELS, listed
from attnbench.impls._triton.ran_on_gpu import digest, not_yet_run
from tests.conftest import ROOT
from tests.impls._triton.conftest import A_PART, needs_triton, on_problems

NOT_YET = "not yet run on a GPU"
FROZEN = "a33c1f60eb5a87f6ac142621f153ab4ce49aa15f467c04273e57a567cee239f3"


def test_the_gluon_kernel_is_the_one_that_an_h200_ran() -> None:
    """It is frozen: nothing here can execute it (results/reference/h200-20261126-kernel_sweep)."""
    source = Path(ran_on_gpu.__file__).with_name("hopper_forward.py").read_bytes()
    assert sha256(source).hexdigest() == FROZEN


def test_a_kernel_is_known_by_source_configuration_and_tritons_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = listed()
    before = {one: digest(*one) for one in every}
    assert len(set(before.values())) == len(every)
    for name, other in (("_source", lambda *_, **__: "another"), ("triton", lambda: "another")):
        with monkeypatch.context() as patched:
            patched.setattr(ran_on_gpu, name, other)
            assert not {digest(*one) for one in every} & set(before.values()), name


def test_what_the_table_lacks_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [digest(*one) for one in listed()]
    monkeypatch.setattr(ran_on_gpu, "FILE", table := tmp_path / "ran_on_gpu.json")
    for ran, words in (
        ([], f"{len(every)} of {len(every)} kernels {NOT_YET} with Triton "),
        (every[1:], f"1 of {len(every)} kernels {NOT_YET}"),
        (every, ""),
    ):
        table.write_text(json.dumps({"ran": dict.fromkeys(ran, "NVIDIA H200")}))
        assert not_yet_run().startswith(words)
        assert bool(not_yet_run()) == bool(words)


@needs_triton
@pytest.mark.long
def test_a_day_with_a_gpu_notes_the_kernels_whose_results_are_right() -> None:
    found = on_problems(*A_PART)["noted"]
    assert {one.partition(" ")[0] for one in found} == set(KERNELS)


def test_users_are_told_of_kernels_that_no_gpu_has_run_as_they_are() -> None:
    lacking = bool(not_yet_run())
    listed = (ROOT / "impls/triton.py").read_text().partition("\n")[0]
    (line,) = (
        one
        for one in (ROOT / "docs/backends.md").read_text().splitlines()
        if one.startswith("| `triton` |")
    )
    assert (NOT_YET in listed, NOT_YET in line) == (lacking, lacking)
