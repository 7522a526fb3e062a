import os
import re
import socket
from pathlib import Path

import pytest

from attnbench.impls import exactness, ignored, load, missing, names
from attnbench.impls.discovery.source import MOST_BYTES
from tests.impls.discovery.conftest import FAKE


def test_declarations_are_read_without_importing_the_file(folder: Path) -> None:
    (folder / "near.py").write_text('EXACTNESS = "approximate"\n' + FAKE.format(boom="1 / 0"))
    (folder / "plain.py").write_text(FAKE.format(boom="1 / 0"))
    expected = {
        "near": "approximate",
        "near:left": "approximate",
        "plain": "exact",
        "sdpa:math": "exact",
        "sparse_local": "exact",
        "linformer:64": "approximate",
        "performer": "approximate",
        "rnn": "other",
    }
    assert {name: exactness(name) for name in expected} == expected


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
            "INPUT_ORDER = 'tokens'\ndef prepare(): ...\n",
            r"broken\.py:1: INPUT_ORDER must be one of 'heads', 'model', written out",
        ),
        (
            "VARIANTS = make()\ndef prepare(): ...\n",
            r"broken\.py:1: VARIANTS must be a plain tuple of strings",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text(text)
    assert {"broken", "fused"} <= set(names())
    assert re.search(message, str(missing("broken")))
    with pytest.raises(ImportError, match=message):
        load("broken")


@pytest.mark.parametrize(
    "what", ["fifo", "folder", "dangling", "loop", "socket", "huge", "latin", "device"]
)
def test_what_is_no_file_is_a_broken_backend_and_nobody_waits_for_it(
    folder: Path, what: str
) -> None:
    path = folder / "mine.py"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "dangling":
        path.symlink_to("nothing")
    elif what == "loop":
        path.symlink_to(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif what == "latin":
        path.write_bytes(b"NAME = '\xfc'\ndef prepare(): ...\n")
    elif what == "huge":
        path.write_text("#" * (MOST_BYTES + 1))
    else:
        path.symlink_to("/dev/zero")
    (folder / "good.py").write_text(FAKE.format(boom=0))
    assert {"mine", "good:left", "fused"} <= set(names())
    assert str(path) in str(missing("mine"))
    assert missing("good:left") == "needs no_such_package, which is not installed: " + (
        "pip install no_such_package"
    )
    assert ignored() == ()
