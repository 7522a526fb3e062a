import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

from attnbench import impls
from attnbench.impls import Problem, exactness, load, make_inputs, missing, names, needs, registry

FAKE = """
NEEDS = ("no_such_package",)
VARIANTS = ("left", "right")
raise_if_imported = {boom}

def prepare(problem, inputs, weights, *, variant):
    return lambda: inputs.query * (2 if variant == "right" else 1)
"""
PROBLEM = Problem(batch=1, seq_len=2, d_model=4, heads=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    return tmp_path


def test_shipped_backends_are_found_and_nothing_else() -> None:
    assert {"fused", "naive", "sdpa", "sdpa:math", "sdpa:flash", "sdpa:efficient", "sdpa:cudnn"} <= set(names())
    assert not {"layer", "problem", "backend", "reference", "registry", "__init__"} & set(names())
    assert list(names()) == sorted(names())


def test_listing_imports_no_torch() -> None:
    code = "import sys, attnbench.impls as i; i.names(); [i.missing(n) for n in i.names()]; i.Problem; print('torch' in sys.modules)"
    package = Path(impls.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package.parent), str(Path(".package").absolute())])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout == "False\n"


def test_unknown_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"^no backend 'fussed'; there are: .*fused, .*naive, .*; did you mean fused\?$"):
        load("fussed")
    with pytest.raises(ValueError, match=r"no backend 'sdpa:flush'.*did you mean sdpa:flash\?"):
        needs("sdpa:flush")


def test_files_of_an_extra_folder_are_backends_but_are_imported_only_by_load(folder: Path) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom="1 / 0"))
    (folder / "_private.py").write_text(FAKE.format(boom=0))
    (folder / "notes.py").write_text("def unprepared(): ...\nx = 'prepare'\n")
    assert {"mine", "mine:left", "mine:right"} <= set(names())
    assert not {"_private", "notes"} & set(names())
    assert missing("mine:left") == "needs no_such_package, which is not installed: pip install no_such_package"
    with pytest.raises(ZeroDivisionError):
        load("mine")


def test_what_a_file_claims_is_known_without_importing_it(folder: Path) -> None:
    (folder / "near.py").write_text('EXACTNESS = "approximate"\n' + FAKE.format(boom="1 / 0"))
    (folder / "plain.py").write_text(FAKE.format(boom="1 / 0"))
    assert exactness("near") == exactness("near:left") == "approximate"
    assert exactness("plain") == "exact"
    assert {name: exactness(name) for name in ("sdpa:math", "sparse_local", "linformer:64", "performer", "rnn")} == {
        "sdpa:math": "exact",
        "sparse_local": "exact",
        "linformer:64": "approximate",
        "performer": "approximate",
        "rnn": "other",
    }


def test_a_variant_is_a_pinned_kernel_only_where_the_file_says_so(folder: Path) -> None:
    (folder / "sized.py").write_text(FAKE.format(boom=0))
    assert load("sized:left").pinned_kernel is None
    assert load("sdpa:flash").pinned_kernel == "flash"
    assert load("sdpa").pinned_kernel is None


def test_the_variant_reaches_the_backend(folder: Path) -> None:
    (folder / "two_sided.py").write_text(FAKE.format(boom=0))
    inputs = make_inputs(PROBLEM, torch.device("cpu"), 0)
    assert load("two_sided:right").variant == "right"
    assert torch.equal(load("two_sided:right").prepare(PROBLEM, inputs, None)(), 2 * inputs.query)
    assert torch.equal(load("two_sided").prepare(PROBLEM, inputs, None)(), inputs.query)


def test_what_a_file_leaves_out_has_a_default(folder: Path) -> None:
    (folder / "bare.py").write_text("def prepare(problem, inputs, weights):\n    return lambda: inputs.query\n")
    backend, cpu = load("bare"), torch.device("cpu")
    assert (backend.name, backend.variant, backend.pinned_kernel, backend.exactness) == ("bare", "", None, "exact")
    assert backend.why_not(PROBLEM, cpu) is None
    assert backend.peak_bytes(PROBLEM, cpu, 1) is None
    with backend.context(PROBLEM), pytest.raises(ValueError, match=r"^bare cannot return attention weights; these can: fused, naive$"):
        backend.attention_weights(PROBLEM, make_inputs(PROBLEM, cpu, 0), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def prepare(:\n", r"broken\.py:1: invalid syntax; wanted valid Python"),
        ("NEEDS = ['x']\ndef prepare(): ...\n", r"broken\.py:1: NEEDS must be a plain tuple of strings"),
        (
            "EXACTNESS = 'nearly'\ndef prepare(): ...\n",
            r"broken\.py:1: EXACTNESS must be one of 'exact', 'approximate', 'other', written out",
        ),
        ("VARIANTS = make()\ndef prepare(): ...\n", r"broken\.py:1: VARIANTS must be a plain tuple of strings"),
    ],
)
def test_a_broken_file_is_named_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        names()


def test_a_name_defined_twice_is_refused(folder: Path) -> None:
    (folder / "fused.py").write_text(FAKE.format(boom=0))
    with pytest.raises(ValueError, match="backend 'fused' is defined twice, by"):
        names()


def test_a_folder_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNBENCH_BACKENDS", "/no/such/folder")
    with pytest.raises(ValueError, match="ATTNBENCH_BACKENDS names /no/such/folder, which is not a folder"):
        names()


def test_entry_points_are_listed_without_being_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "third_party.py").write_text("def prepare(problem, inputs, weights):\n    return lambda: inputs.value\n")
    monkeypatch.delenv("ATTNBENCH_BACKENDS")
    monkeypatch.syspath_prepend(str(folder))
    point = EntryPoint(name="theirs", value="third_party", group=registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "_installed", lambda: (point,))
    assert "theirs" in names()
    assert "third_party" not in sys.modules
    inputs = make_inputs(PROBLEM, torch.device("cpu"), 0)
    assert load("theirs").prepare(PROBLEM, inputs, None)() is inputs.value


def test_an_entry_point_says_what_it_claims_once_it_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, claims in (("claims_near", "approximate"), ("claims_nonsense", "nearly")):
        (folder / f"{name}.py").write_text(
            f"EXACTNESS = {claims!r}\ndef prepare(problem, inputs, weights):\n    return lambda: inputs.value\n"
        )
    monkeypatch.delenv("ATTNBENCH_BACKENDS")
    monkeypatch.syspath_prepend(str(folder))
    points = tuple(EntryPoint(name=name, value=name, group=registry.ENTRY_POINTS) for name in ("claims_near", "claims_nonsense"))
    monkeypatch.setattr(registry, "_installed", lambda: points)
    assert exactness("claims_near") == "exact"
    assert load("claims_near").exactness == "approximate"
    with pytest.raises(ValueError, match="backend claims_nonsense: EXACTNESS is 'nearly'; wanted one of exact, approximate, other"):
        _ = load("claims_nonsense").exactness
