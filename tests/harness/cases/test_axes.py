"""The table of axes, and what is made from it."""

from dataclasses import fields
from typing import get_args

from attnbench.harness.cases.axes import ALIASES, AXES
from attnbench.harness.scenario import Scenario
from attnbench.harness.scenario.fields import Axes, ExtraCase
from attnbench.impls import Problem
from attnbench.impls.problem import CHOICES


def test_the_table_has_every_field_of_a_problem() -> None:
    assert set(AXES) == {field.name for field in fields(Problem)}


def test_the_types_are_those_of_a_problem() -> None:
    for field in fields(Problem):
        kind = AXES[field.name].type
        if field.name in CHOICES:
            assert get_args(kind) == tuple(word for word in CHOICES[field.name] if word)
        else:
            assert kind is field.type


def test_defaults_are_those_of_a_problem() -> None:
    for field in fields(Problem):
        default = AXES[field.name].given
        if field.name != "batch" and default is not None:
            assert default == field.default


def test_the_models_have_a_field_for_every_axis() -> None:
    assert list(Axes.model_fields) == list(AXES)
    assert list(ExtraCase.model_fields) == ["device", *AXES]
    wide = [name for name, axis in AXES.items() if axis.scenario_wide]
    assert [name for name in Scenario.model_fields if name in AXES] == wide
    for name in wide:
        assert Scenario.model_fields[name].default == AXES[name].given


def test_short_names_are_unique_and_mean_an_axis() -> None:
    assert ALIASES == {"B": "batch", "N": "seq_len", "h": "heads"}
