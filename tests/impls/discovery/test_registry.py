import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

from attnbench import impls
from attnbench.impls import (
    BadBackend,
    Problem,
    exactness,
    ignored,
    load,
    make_inputs,
    missing,
    names,
    needs,
    third_party,
)
from attnbench.impls.discovery import installed, registry
from attnbench.impls.discovery.names import ALIASES, attribute_of, given, real_names

FAKE = """
NEEDS = ("no_such_package",)
VARIANTS = ("left", "right")
raise_if_imported = {boom}

def prepare(problem, inputs, weights, *, variant):
    return lambda: inputs.query * (2 if variant == "right" else 1)
"""
WRONG = (
    "mine",
    "mine:",
    ":attend",
    "mine:attend()",
    "../mine:attend",
    "mine:at tend",
    "mine::attend",
    "1mine:attend",
    "mine:attend@x",
    "",
)
PROBLEM = Problem(batch=1, seq_len=2, d_model=4, heads=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    return tmp_path


def test_shipped_backends_are_found_and_nothing_else() -> None:
    assert {
        "fused",
        "naive",
        "sdpa",
        "sdpa:math",
        "sdpa:flash",
        "sdpa:efficient",
        "sdpa:cudnn",
    } <= set(names())
    assert not {"layer", "problem", "backend", "reference", "registry", "__init__"} & set(names())
    assert list(names()) == sorted(names())


def test_listing_imports_no_torch() -> None:
    code = (
        "import sys, attnbench.impls as i; i.names(); [i.missing(n) for n in i.names()]; i.Problem;"
        " print('torch' in sys.modules)"
    )
    package = Path(impls.__file__).parents[1]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(Path(".package").absolute())])
    }
    assert (
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        == "False\n"
    )


def test_unknown_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(
        ValueError,
        match=r"^no backend 'fussed'; there are: .*fused, .*naive, .*; did you mean fused\?$",
    ):
        load("fussed")
    with pytest.raises(ValueError, match=r"no backend 'sdpa:flush'.*did you mean sdpa:flash\?"):
        needs("sdpa:flush")


def test_files_of_an_extra_folder_are_backends_but_are_imported_only_by_load(folder: Path) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom="1 / 0"))
    (folder / "_private.py").write_text(FAKE.format(boom=0))
    (folder / "notes.py").write_text("def unprepared(): ...\nx = 'prepare'\n")
    assert {"mine", "mine:left", "mine:right"} <= set(names())
    assert not {"_private", "notes"} & set(names())
    assert (
        missing("mine:left")
        == "needs no_such_package, which is not installed: pip install no_such_package"
    )
    with pytest.raises(ZeroDivisionError):
        load("mine")


def test_what_a_file_claims_is_known_without_importing_it(folder: Path) -> None:
    (folder / "near.py").write_text('EXACTNESS = "approximate"\n' + FAKE.format(boom="1 / 0"))
    (folder / "plain.py").write_text(FAKE.format(boom="1 / 0"))
    assert exactness("near") == exactness("near:left") == "approximate"
    assert exactness("plain") == "exact"
    assert {
        name: exactness(name)
        for name in ("sdpa:math", "sparse_local", "linformer:64", "performer", "rnn")
    } == {
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
    (folder / "bare.py").write_text(
        "def prepare(problem, inputs, weights):\n    return lambda: inputs.query\n"
    )
    backend, cpu = load("bare"), torch.device("cpu")
    assert (backend.name, backend.variant, backend.pinned_kernel, backend.exactness) == (
        "bare",
        "",
        None,
        "exact",
    )
    assert backend.why_not(PROBLEM, cpu) is None
    assert backend.peak_bytes(PROBLEM, cpu, 1) is None
    with (
        backend.context(PROBLEM),
        pytest.raises(
            ValueError, match=r"^bare cannot return attention weights; these can: fused, naive$"
        ),
    ):
        backend.attention_weights(PROBLEM, make_inputs(PROBLEM, cpu, 0), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def prepare(:\n", r"broken\.py:1: invalid syntax; wanted valid Python"),
        (
            "NEEDS = ['x']\ndef prepare(): ...\n",
            r"broken\.py:1: NEEDS must be a plain tuple of strings",
        ),
        (
            "EXACTNESS = 'nearly'\ndef prepare(): ...\n",
            r"broken\.py:1: EXACTNESS must be one of 'exact', 'approximate', 'other', written out",
        ),
        (
            "VARIANTS = make()\ndef prepare(): ...\n",
            r"broken\.py:1: VARIANTS must be a plain tuple of strings",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        names()


def test_a_name_defined_twice_is_refused(folder: Path) -> None:
    (folder / "fused.py").write_text(FAKE.format(boom=0))
    with pytest.raises(BadBackend, match="backend 'fused' is defined twice, by"):
        names()


def test_a_folder_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNBENCH_BACKENDS", "/no/such/folder")
    with pytest.raises(
        BadBackend, match="ATTNBENCH_BACKENDS names /no/such/folder, which is not a folder"
    ):
        names()


@pytest.fixture
def entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these the entry points of all packages; modules are looked for in the test's folder
    too.
    """
    monkeypatch.delenv("ATTNBENCH_BACKENDS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(**values: str) -> None:
        points = tuple(
            EntryPoint(name=name, value=value, group=installed.GROUP)
            for name, value in values.items()
        )
        monkeypatch.setattr(installed, "points", lambda: points)
        monkeypatch.setattr(registry, "points", lambda: points)

    return make


def test_entry_points_are_listed_with_what_their_files_say_and_without_being_imported(
    tmp_path: Path, entry_points: Callable
) -> None:
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "__init__.py").write_text("1 / 0\n")
    (tmp_path / "third" / "party.py").write_text(FAKE.format(boom=0))
    entry_points(theirs="third.party")
    assert {"theirs", "theirs:left", "theirs:right"} <= set(names())
    assert (
        missing("theirs")
        == "needs no_such_package, which is not installed: pip install no_such_package"
    )
    assert third_party("theirs:left") == "an installed package"
    assert third_party("fused") is None
    assert "third" not in sys.modules
    with pytest.raises(ZeroDivisionError):
        load("theirs")


def test_an_entry_point_is_a_module_an_object_or_a_plain_callable(
    tmp_path: Path, entry_points: Callable
) -> None:
    text = (
        "import math\nfrom types import SimpleNamespace as N\n\ndef prepare(problem, inputs,"
        " weights):\n    return lambda: inputs.value\n"
    )
    (tmp_path / "third_party.py").write_text(
        text + "inner = N(deep=N(prepare=prepare))\n\ndef attend(q, k, v, *, causal, scale):\n   "
        " return v\n"
    )
    entry_points(
        module="third_party",
        thing="third_party:inner.deep",
        function="third_party:attend",
        number="third_party:math.pi",
    )
    inputs = make_inputs(PROBLEM, torch.device("cpu"), 0)
    for name in ("module", "thing", "function"):
        assert load(name).prepare(PROBLEM, inputs, None)() is inputs.value
    with pytest.raises(
        TypeError,
        match=(
            r"^number: of type float; wanted attend\(q, k, v, \*, causal, scale\), or something"
            r" with prepare$"
        ),
    ):
        load("number")


def test_an_entry_point_says_what_it_claims(tmp_path: Path, entry_points: Callable) -> None:
    text = (
        "EXACTNESS = {!r}\ndef prepare(problem, inputs, weights):\n    return lambda:"
        " inputs.value\n"
    )
    (tmp_path / "claims_near.py").write_text(text.format("approximate"))
    (tmp_path / "claims_nonsense.py").write_text(text.format("nearly"))
    entry_points(near="claims_near", nonsense="claims_nonsense")
    assert exactness("near") == load("near").exactness == "approximate"
    assert "EXACTNESS must be one of 'exact', 'approximate', 'other', written out" in str(
        missing("nonsense")
    )


def test_packages_take_no_names_away_and_one_name_is_only_one_package_s(
    entry_points: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom=0))
    entry_points(
        **{
            "fused": "x",
            "sdpa:math": "x",
            "mine:left": "x",
            "native": "x",
            "two words": "x",
            "theirs": "x",
        }
    )
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(folder))
    assert [name for name in names() if third_party(name)] == ["theirs"]
    assert [sentence.partition(" is left out: ")[::2] for sentence in ignored()] == [
        *(
            (f"{name!r} of an installed package", "its name is taken")
            for name in ("fused", "sdpa:math", "mine:left", "native")
        ),
        ("'two words' of an installed package", "a name has letters, digits, and . _ - within"),
    ]
    twice = tuple(EntryPoint(name="theirs", value=value, group=installed.GROUP) for value in "xy")
    monkeypatch.setattr(installed, "points", lambda: twice)
    assert (
        missing("theirs")
        == "defined twice, by an installed package and an installed package; uninstall one"
    )
    with pytest.raises(ImportError, match="defined twice"):
        load("theirs")


def test_names_that_users_know_are_other_names_of_ours() -> None:
    for also, name in ALIASES.items():
        assert name in names()
        assert also not in names()
        assert needs(also) == needs(name)
    assert load("eager").name == "fused"
    assert load("_native_math").variant == "math"
    assert real_names(("eager", "naive", "fused", "native")) == ("fused", "naive", "sdpa")
    assert real_names(("naive", "naive")) == ("naive", "naive")  # said twice, which is a mistake


def test_a_file_cannot_have_another_backend_s_other_name(folder: Path) -> None:
    (folder / "eager.py").write_text(FAKE.format(boom=0))
    with pytest.raises(
        BadBackend, match=r"eager\.py: eager is another name of fused; rename the file"
    ):
        names()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mine:attend", "attend@mine"),
        ("a.b_2.c:Some.attend", "Some.attend@a.b_2.c"),
        *((text, None) for text in WRONG),
    ],
)
def test_a_callable_is_named_by_module_and_attribute(text: str, name: str | None) -> None:
    attribute = given(text)
    assert (attribute and attribute.name) == name
    if name:
        assert attribute_of(name) == attribute
        assert third_party(name) == f"the module {text.partition(':')[0]}"
    assert attribute_of(text) is None


def test_a_callable_that_cannot_be_imported_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lacking.py").write_text("import no_such_dependency\n")
    with pytest.raises(
        ImportError, match=r"^no module no_such_module; it was looked for in the folder where"
    ) as caught:
        load("attend@no_such_module.deep")
    assert not isinstance(
        caught.value, ModuleNotFoundError
    )  # which would be one that the module itself lacks
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load("attend@lacking")
    with pytest.raises(ImportError, match=r"^json has no nothing\.here$"):
        load("nothing.here@json")


def test_a_plain_callable_is_told_what_to_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = (
        "def attend(q, k, v, *, causal, scale):\n    return (q.shape, k.shape, v.shape, causal,"
        " scale)\n"
    )
    (tmp_path / "telling.py").write_text(text)
    problem = Problem(
        batch=2, seq_len=6, d_model=16, heads=4, kv_heads=2, d_k=3, d_v=5, causal=True
    )
    backend, cpu = load("attend@telling"), torch.device("cpu")
    told = backend.prepare(problem, make_inputs(problem, cpu, 0), None)()
    assert told == ((2, 4, 6, 3), (2, 2, 6, 3), (2, 2, 6, 5), True, problem.scale)
    assert backend.why_not(problem, cpu) is None
    corner = (
        "a plain callable is told causal or not, and not from which corner; give a module with"
        " prepare for kv_seq_len != seq_len"
    )
    assert backend.why_not(replace(problem, kv_seq_len=9, causal_align="top_left"), cpu) == corner
    assert (
        backend.why_not(replace(problem, kv_seq_len=9, causal=False, causal_align=""), cpu) is None
    )
    assert (backend.compiles, backend.plain_operations, backend.pinned_kernel) == (
        False,
        False,
        None,
    )


def test_a_variant_pins_a_kernel_only_where_its_file_says_so(folder: Path) -> None:
    (folder / "pins.py").write_text("PINS_KERNEL = True\n" + FAKE.format(boom=0))
    (folder / "varies.py").write_text(FAKE.format(boom=0))
    assert load("pins:left").pinned_kernel == "left"
    assert load("pins").pinned_kernel is None
    assert load("varies:left").pinned_kernel is None
    assert load("sdpa:math").pinned_kernel == "math"
