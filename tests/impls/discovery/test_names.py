"""Names of backends and their parameters: what reaches its functions, and what is refused."""

from pathlib import Path

import pytest
import torch

from attnbench.impls import find, load, make_inputs, names, third_party
from attnbench.impls.discovery.names import (
    ALIASES,
    attribute_from_flag,
    attribute_from_name,
    each,
    given_parameters,
    parts_of,
    real_names,
    separated,
)
from attnbench.impls.discovery.registry import unknown
from tests.impls.discovery.conftest import PROBLEM

NO_ATTRIBUTES = (
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


def test_aliases_are_other_names_of_our_backends() -> None:
    for alias, name in ALIASES.items():
        assert name in names()
        assert alias not in names()
        assert find(alias) == find(name)
    pytest.importorskip("transformers")
    assert load("eager").name == "hf:eager"
    assert load("_native_math").variant == "math"
    assert real_names(("sdpa", "naive", "eager", "native")) == ("sdpa", "naive", "hf:eager")
    assert real_names(("naive", "naive")) == ("naive", "naive")  # a mistake, which is reported


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mine:attend", "attend@mine"),
        ("a.b_2.c:Some.attend", "Some.attend@a.b_2.c"),
        *((text, None) for text in NO_ATTRIBUTES),
    ],
)
def test_a_callable_is_named_by_module_and_attribute(text: str, name: str | None) -> None:
    attribute = attribute_from_flag(text)
    assert (attribute and attribute.name) == name
    if name:
        assert attribute_from_name(name) == attribute
        assert third_party(name) == f"the module {text.partition(':')[0]}"
    assert attribute_from_name(text) is None


CPU = torch.device("cpu")
SIZED = """
PARAMETERS = {"times": float, "rank": int, "exact": bool, "how": str}

def prepare(problem, inputs, weights, *, times, rank, exact, how):
    return lambda: (times, rank, exact, how)
"""


@pytest.fixture
def sized(folder: Path) -> str:
    (folder / "sized.py").write_text(SIZED)
    return "sized"


def test_each_parameter_reaches_the_backend_with_its_type(sized: str) -> None:
    inputs = make_inputs(PROBLEM, CPU, 0)

    def given(name: str) -> object:
        return load(name).prepare(PROBLEM, inputs, None)()

    assert given(sized) == (None, None, None, None)
    assert given(f"{sized}[rank=64,how=3]") == (None, 64, None, "3")
    assert given(f"{sized}[times=2, exact=true]") == (2, None, True, None)
    assert f"{sized}[rank=64]" not in names()
    assert sized in names()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sized[depth=1]", "no parameter 'depth'; there are: times (float), rank (int)"),
        ("sized[rank=many]", "rank is 'many'; wanted a whole number"),
        ("sized[rank=1.5]", "rank is 1.5; wanted a whole number"),
        ("sized[rank=true]", "rank is True; wanted a whole number"),
        ("sized[exact=1]", "exact is 1; wanted true or false"),
        ("sized[rank=1,rank=2]", "found 'rank=2'"),
        ("sized[rank]", "found 'rank'"),
        ("sized[]", "found ''"),
        ("sized[rank=1", "wanted a name as"),
        ("sized:fast[rank=1]", "no backend"),
        ("naive[rank=1]", "no parameter 'rank'; there are: none"),
    ],
)
def test_what_a_backend_does_not_take_is_refused_in_one_line(
    sized: str, name: str, why: str
) -> None:
    assert why in unknown(name)
    assert "\n" not in unknown(name)
    with pytest.raises(ValueError, match="backend"):
        find(name)


def test_a_name_with_several_values_is_several_backends() -> None:
    assert each("fused") == ("fused",)
    assert each("f:v[a=1,2]") == ("f:v[a=1]", "f:v[a=2]")
    assert each("f[a=1,2,b=x,y]") == ("f[a=1,b=x]", "f[a=1,b=y]", "f[a=2,b=x]", "f[a=2,b=y]")
    assert separated("naive, f[a=1,2] sdpa:math,g") == ["naive", "f[a=1,2]", "sdpa:math", "g"]
    assert parts_of("f:v[a=1]") == ("f", "v", {"a": "1"})
    assert given_parameters("f[a=1,b=2.5,c=true,d=x]") == {"a": 1, "b": 2.5, "c": True, "d": "x"}


def test_linformer_and_performer_take_any_size() -> None:
    inputs = make_inputs(PROBLEM, CPU, 0)
    for name, fact in (("linformer[rank=3]", "rank"), ("performer[features=3]", "features")):
        backend = load(name)
        assert backend.why_not(PROBLEM, CPU) is None
        assert backend.prepare(PROBLEM, inputs, None).facts == {fact: 3}
    for name in ("linformer[rank=0]", "linformer:64[rank=3]", "performer:64[features=3]"):
        assert load(name).why_not(PROBLEM, CPU)
