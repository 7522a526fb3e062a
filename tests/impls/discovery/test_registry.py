import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attnbench.impls import find, ignored, load, make_inputs, missing, names, third_party
from tests.conftest import environment, ran
from tests.impls.discovery.conftest import FAKE, MISSING, PROBLEM


def test_shipped_backends_are_found_and_nothing_else() -> None:
    kernels = {"sdpa:math", "sdpa:flash", "sdpa:efficient", "sdpa:cudnn"}
    assert {"fused", "naive", "sdpa", *kernels} <= set(names())
    others = {"layer", "block", "problem", "backend", "reference", "multi_head_attention"}
    others |= {"__init__", "generation"}
    assert not others & set(names())
    assert list(names()) == sorted(names())


def test_listing_imports_no_torch() -> None:
    code = (
        "import sys, attnbench.impls as i; i.names(); [i.missing(n) for n in i.names()]; i.Problem;"
        " print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = ran(command, check=True)
    assert done.stdout == "False\n"


def test_an_unknown_name_is_answered_with_all_names() -> None:
    fused = r"^no backend 'fussed'; did you mean fused\?$"
    with pytest.raises(ValueError, match=fused):
        load("fussed")
    with pytest.raises(ValueError, match=r"no backend 'sdpa:flush'.*did you mean sdpa:flash\?"):
        find("sdpa:flush")


def test_files_of_a_user_folder_are_backends_and_only_load_imports_them(folder: Path) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom="1 / 0"))
    (folder / "_private.py").write_text(FAKE.format(boom=0))
    (folder / "notes.py").write_text("def unprepared(): ...\nx = 'prepare'\n")
    assert {"mine", "mine:left", "mine:right"} <= set(names())
    assert not {"_private", "notes"} & set(names())
    assert missing("mine:left") == MISSING
    with pytest.raises(ZeroDivisionError):
        load("mine")


def test_a_file_with_a_plain_function_is_a_backend_and_one_with_neither_is_left_out_in_words(
    folder: Path,
) -> None:
    (folder / "mine.py").write_text(
        '"""Mine."""\nNEEDS = ("no_such_package",)\n'
        "def attend(q, k, v, *, causal, scale): return v\n"
    )
    (folder / "scores.py").write_text("def scores(q, k): return q @ k.mT\n")
    assert "mine" in names()
    assert (find("mine").declared.about, missing("mine")) == ("Mine", MISSING)
    inputs = make_inputs(PROBLEM, torch.device("cpu"), 0)
    assert load("mine").prepare(PROBLEM, inputs, None)() is inputs.value
    why = "'scores.py' in .* is left out: defines neither prepare nor attend; the name of a helper"
    (said,) = ignored()
    assert re.match(why, said)
    with pytest.raises(ValueError, match=f"^no backend 'scores'; there are: .*; {why}"):
        load("scores")


def test_entry_points_are_listed_with_their_declarations_and_not_imported(
    tmp_path: Path, entry_points: Callable
) -> None:
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "__init__.py").write_text("1 / 0\n")
    (tmp_path / "third" / "party.py").write_text(FAKE.format(boom=0))
    entry_points(theirs="third.party")
    assert {"theirs", "theirs:left", "theirs:right"} <= set(names())
    assert missing("theirs") == MISSING
    assert third_party("theirs:left") == "an installed package"
    assert third_party("fused") is None
    assert "third" not in sys.modules
    with pytest.raises(ZeroDivisionError):
        load("theirs")


def test_packages_cannot_take_names_and_one_name_belongs_to_one_package(
    entry_points: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom=0))
    taken = ("fused", "sdpa:math", "mine:left", "native")
    entry_points(*((name, "x") for name in (*taken, "two words", "theirs")))
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(folder))
    assert [name for name in names() if third_party(name)] == ["theirs"]
    assert [sentence.partition(" is left out: ")[::2] for sentence in ignored()] == [
        *((f"{name!r} of an installed package", "its name is taken") for name in taken),
        ("'two words' of an installed package", "a name has letters, digits, and . _ - within"),
    ]
    entry_points(("theirs", "x"), ("theirs", "y"))
    twice = "defined twice, by an installed package and an installed package; uninstall one"
    assert missing("theirs") == twice
    with pytest.raises(ImportError, match="defined twice"):
        load("theirs")


@pytest.mark.long
def test_a_package_whose_entry_points_cannot_be_read_is_left_out_alone(tmp_path: Path) -> None:
    for name, listed in (
        ("good", b"[attnbench.backends]\ngood = third\n"),
        ("cut", b"[attnbench.backends]\nno value\n"),
        ("binary", b"[attnbench.backends]\n\xff = x\n"),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_bytes(listed)
    (tmp_path / "third.py").write_text(FAKE.format(boom=0))
    code = (
        "from attnbench import impls; print('good:left' in impls.names(), *sorted(impls.ignored()))"
    )
    path = os.pathsep.join([environment()["PYTHONPATH"], str(tmp_path)])
    done = ran([sys.executable, "-c", code], env=environment({"PYTHONPATH": path}), check=True)
    reason = "1.0 is left out: its entry points cannot be read"
    assert done.stdout == f"True the package binary {reason} the package cut {reason}\n"
