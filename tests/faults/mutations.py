"""Ways to break a run's folder: bytes, JSON values, and what stands in place of a file."""

import gzip
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

FILES = ("run.json", "rows.jsonl", "rows.jsonl")
ODD_TEXTS = (
    *("", " ", "x", "ok", "nan", "-1", "1e999", "../../../etc/passwd", "/dev/zero", "/dev/full"),
    *("\x1b]0;title\x07\x1b[2J", "\u202egnp.exe", "\ud800", "\x00", "[red]", "=1+1", "</script>"),
    *("<img src=x onerror=alert(1)>", "a" * 100_000, "\n\n", "%s%n{0}", "\N{PILE OF POO}" * 50),
)
ODD_NUMBERS = (
    *(0, 1, -1, 2, 1.5, -0.0, 2**31, 2**53 + 1, 2**63, 2**70, -(2**70)),
    *(1e308, 5e-324, 1e15),
)
NO_NUMBERS = (10**400, float("nan"), float("inf"), float("-inf"))  # to a reader of JSON
NUMBERS = (*ODD_NUMBERS, *NO_NUMBERS)
MOST_BYTES = 1 << 20  # of a file that is changed a second time
Change = Callable[[Random, Path], str]


def deep(levels: int) -> Any:
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


ODD = (
    *(None, True, False, [], {}, [[]], [None], {"": {}}, [[["x"]]], deep(300), [0] * 10_000),
    *([[[1e308, 1e308]]], [[[5e-324] * 3] * 3], [[[1, 2, 3]], [[1]], []], [[{"calls": 0}]]),
)


def odd(random: Random) -> Any:
    return random.choice((random.choice(ODD_TEXTS), random.choice(NUMBERS), *ODD))


def break_folder(random: Random, run: Path, elsewhere: Path) -> str:
    """One to three changes; says which. `elsewhere`: what links of the folder lead to."""
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "victim.txt").write_text("one line\nand a torn one", encoding="utf-8")
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choices((bytes_changed, json_changed, replaced), (3, 6, 2))[0]
        done.append(kind(random, run, elsewhere))
    return ", ".join(done)


def bytes_changed(random: Random, run: Path, _: Path) -> str:
    path = run / random.choice(FILES)
    if not can_be_changed(path) or path.is_symlink():
        return "nothing"
    data = bytearray(path.read_bytes())
    place, end = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    lines = bytes(data).splitlines(keepends=True)
    random.shuffle(lines)
    ways: dict[str, bytes] = {
        "a bit flipped": flipped(random, data),
        "truncated": data[:place],
        "its begin cut off": data[place:],
        "a piece cut out": data[:place] + data[end:],
        "a piece twice": data[:end] + data[place:],
        "zeros in it": data[:place] + bytes(end - place) + data[end:],
        "random bytes in it": data[:place] + random.randbytes(9) + data[place:],
        "invalid UTF-8": data[:place] + b"\xff\xfe\xed\xa0\x80" + data[place:],
        "as UTF-16": bytes(data).decode(errors="replace").encode("utf-16"),
        "after a byte order mark": b"\xef\xbb\xbf" + data,
        "zipped": gzip.compress(bytes(data)),
        "empty": b"",
        "a newline": b"\n",
        "lines shuffled": b"".join(lines),
        "a line twice": bytes(data) + (lines[0] if lines else b""),
        "with CRLF": bytes(data).replace(b"\n", b"\r\n"),
        "a torn last line": bytes(data) + b'{"case": "torn',
        "a long line": bytes(data) + b" " * (17 << 20) + b"\n",
        "deep": b"[" * 100_000,
        "a huge number": bytes(data).replace(b": 1", b": " + b"9" * 5000, 1),
    }
    way = random.choice(list(ways))
    path.write_bytes(ways[way])
    return f"{path.name} {way}"


def can_be_changed(path: Path) -> bool:
    """A regular file that an earlier change did not make huge."""
    return path.is_file() and path.stat().st_size <= MOST_BYTES


def flipped(random: Random, data: bytearray) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 5, 50))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def json_changed(random: Random, run: Path, _: Path) -> str:
    path = run / random.choice(FILES)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if can_be_changed(path) else []
        whole = path.name == "run.json"
        documents = [json.loads("\n".join(lines))] if whole else [json.loads(one) for one in lines]
        document = random.choice(documents)
    except (ValueError, IndexError, RecursionError):
        return "nothing"
    what = changed(random, document)
    text = "\n".join(json.dumps(one, indent=1 if whole else None) for one in documents) + "\n"
    path.write_text(text, encoding="utf-8")
    return f"{path.name}: {what}"


def changed(random: Random, document: Any) -> str:
    """Change one value of a document in place, anywhere in it."""
    at, name = document, []
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not keys:
            return f"{'.'.join(name)} left as it is"
        key = random.choice(keys)
        name.append(str(key)[:40])
        inner = at[key]
        if isinstance(inner, dict | list) and inner and random.random() < 0.7:
            at = inner
            continue
        way = random.choice(("odd", "odd", "odd", "gone", "as text", "in a list", "another key"))
        if way == "odd":
            at[key] = odd(random)
            way = repr(at[key])[:40]
        elif way == "gone":
            del at[key]
        elif way == "as text":
            at[key] = str(inner)
        elif way == "in a list":
            at[key] = [inner]
        elif isinstance(at, dict):
            at[random.choice(ODD_TEXTS)] = at.pop(key)
        return f"{'.'.join(name)} {way}"


def replaced(random: Random, run: Path, elsewhere: Path) -> str:
    """Something else in place of a file or folder."""
    names = (*FILES, ".lock", "logs", "quarantine", "report.html", "rows.jsonl", "suite.json")
    path, victim = run / random.choice(names), elsewhere / "victim.txt"
    for inner in path.rglob("*") if path.is_dir() and not path.is_symlink() else ():
        inner.unlink()
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.rmdir()
    elif path.exists():
        path.unlink()
    ways: dict[str, Callable[[], object]] = {
        "gone": lambda: None,
        "a folder": path.mkdir,
        "a FIFO": lambda: os.mkfifo(path),
        "a socket": lambda: bound(path),
        "a link to itself": lambda: path.symlink_to(path.name),
        "a link to nothing": lambda: path.symlink_to("nothing"),
        "a link to the victim": lambda: path.symlink_to(victim),
        "a link to the victim's folder": lambda: path.symlink_to(elsewhere),
        "a link to /dev/zero": lambda: path.symlink_to("/dev/zero"),
        "a link to a terminal": lambda: path.symlink_to("/dev/tty"),
        "a terabyte of nothing": lambda: sparse(path),
        "without permissions": lambda: (path.write_bytes(b"{}"), path.chmod(0)),
    }
    way = random.choice(list(ways))
    ways[way]()
    return f"{path.name} is {way}"


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is at most 107 bytes long
        server.bind(path.name)
        os.chdir(here)
