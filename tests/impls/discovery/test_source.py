import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.impls import exactness, ignored, load, missing, names
from attnbench.impls.discovery.source import MOST_BYTES
from tests.impls.discovery.conftest import FAKE, MISSING


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


PREPARE = "\ndef prepare(): ...\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def prepare(:\n", "invalid syntax; wanted valid Python"),
        ("NEEDS = ['x']" + PREPARE, "NEEDS must be a plain tuple of strings"),
        ("VARIANTS = make()" + PREPARE, "VARIANTS must be a plain tuple of strings"),
        (
            "EXACTNESS = 'nearly'" + PREPARE,
            "EXACTNESS must be one of 'exact', 'approximate', 'other', written out",
        ),
        (
            "INPUT_ORDER = 'tokens'" + PREPARE,
            "INPUT_ORDER must be one of 'heads', 'model', written out",
        ),
        *(
            (f"PARAMETERS = {value}" + PREPARE, "PARAMETERS must be written out as {'rank': int}")
            for value in ("{'rank': 64}", "['rank']", "{'a b': int}", "{'rank': list}", "3")
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text(text)
    assert {"broken", "fused"} <= set(names())
    assert f"broken.py:1: {message}" in str(missing("broken"))
    with pytest.raises(ImportError, match=re.escape(message)):
        load("broken")


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


NO_FILES: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "dangling": lambda path: path.symlink_to("nothing"),
    "loop": lambda path: path.symlink_to(path),
    "socket": bound,
    "huge": lambda path: path.write_text("#" * (MOST_BYTES + 1)),
    "latin": lambda path: path.write_bytes(b"NAME = '\xfc'\ndef prepare(): ...\n"),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_a_broken_backend_and_nobody_waits_for_it(
    folder: Path, what: str
) -> None:
    path = folder / "mine.py"
    NO_FILES[what](path)
    (folder / "good.py").write_text(FAKE.format(boom=0))
    assert {"mine", "good:left", "fused"} <= set(names())
    assert str(path) in str(missing("mine"))
    assert missing("good:left") == MISSING
    assert ignored() == ()
