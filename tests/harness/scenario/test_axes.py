"""The table of axes, and what is made from it."""

from dataclasses import fields

from attnbench.harness.scenario import Scenario
from attnbench.harness.scenario.fields import Axes, ExtraCase
from attnbench.impls import Problem
from attnbench.impls.problem import AXES


def test_the_table_has_every_field_of_a_problem() -> None:
    assert set(AXES) == {field.name for field in fields(Problem)}


def test_the_models_have_a_field_for_every_axis() -> None:
    assert list(Axes.model_fields) == list(AXES)
    assert list(ExtraCase.model_fields) == ["device", *AXES]
    wide = [name for name, axis in AXES.items() if axis.scenario_wide]
    assert [name for name in Scenario.model_fields if name in AXES] == wide
    for name in wide:
        assert Scenario.model_fields[name].default == AXES[name].given
