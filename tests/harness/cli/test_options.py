"""The options of `run` and `wall` come from the table of axes."""

import inspect
from typing import Any, get_args

import pytest

from attnbench.harness.cli import app
from attnbench.harness.cli.options import expanded
from attnbench.impls.problem import AXES

OPTIONS = [name for name, axis in AXES.items() if axis.option]


@pytest.mark.parametrize(("verb", "without"), [(app.run, ()), (app.wall, ("seq_len",))])
def test_every_axis_with_help_is_an_option(verb: Any, without: tuple[str, ...]) -> None:
    parameters = inspect.signature(expanded(verb)).parameters
    assert "axes" not in parameters
    names = [name for name in parameters if name in AXES]
    assert names == [name for name in OPTIONS if name not in without]
    for name in names:
        kind, option = get_args(parameters[name].annotation)
        assert option.help == AXES[name].option
        assert (kind is bool, parameters[name].default) == (
            (True, False) if AXES[name].type is bool else (False, None)
        )
