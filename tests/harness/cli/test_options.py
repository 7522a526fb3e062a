"""The options of `run` and `wall` come from the table of axes."""

import inspect
from typing import Any, get_args

import pytest

from attnbench.harness.cli import app
from attnbench.harness.cli.options import WallAxes, expanded
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


def test_a_command_receives_only_the_axes_that_were_given() -> None:
    seen: dict[str, Any] = {}

    @expanded
    def command(first: str, axes: WallAxes, last: str = "z") -> None:
        seen.update(first=first, axes=axes, last=last)

    parameters = list(inspect.signature(command).parameters)
    assert parameters[:2] == ["first", "batch"]
    assert parameters[-2:] == ["prefix", "last"]
    assert "seq_len" not in parameters
    nothing: dict[str, Any] = {name: None for name in OPTIONS if name != "seq_len"}
    command(**{**nothing, "first": "a", "causal": False, "heads": "1,8", "last": "z"})
    assert seen == {"first": "a", "axes": {"heads": "1,8"}, "last": "z"}
