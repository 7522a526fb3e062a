"""A backend's file that asks for the call stack is noticed; other code may ask."""

import gc
import inspect
import sys

import pytest

from attnbench.harness.measure.stack_watch import StackWatch


@pytest.fixture(scope="module")
def watch():
    return StackWatch()


@pytest.mark.parametrize(
    ("ask", "event"),
    [
        (sys._getframe, "sys._getframe"),
        (inspect.stack, "sys._getframe"),
        (inspect.currentframe, "sys._getframe"),
        (gc.get_objects, "gc.get_objects"),
        (sys._current_frames, "sys._current_frames"),
    ],
)
def test_a_file_that_asks_for_frames_or_objects_is_noticed(watch, ask, event):
    with watch.watching(__file__):
        ask()
    assert f"reads the call stack ({event} in line" in watch.asked
