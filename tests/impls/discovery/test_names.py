import pytest

from attnbench.impls import find, load, names, third_party
from attnbench.impls.discovery.names import (
    ALIASES,
    attribute_from_flag,
    attribute_from_name,
    real_names,
)

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
