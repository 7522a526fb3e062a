"""Scenario and suite files, broken at random: `run --dry-run` says so with the place, soon."""

import time
from random import Random

from ..in_process import call, enter
from ..mutations import NUMBERS, ODD_TEXTS, flipped
from ..trial import ROOT, Trial

TITLE = "broken scenario files"
COUNT = 600
SHORT = 15
MOST_S = 4.0  # 2 s on a machine that does nothing else
SUITE = b"- quickstart\n- scenario: head_cost\n  plan: quick\n  set: {seed: 1}\n"
PIECES = (
    *(b"\t", b"!!python/object/apply:os.system [id]", b"&a [*a]", b"*a", b"<<: *b", b"---\n"),
    *(b"? ", b"{" * 3000, b"[" * 50_000, b"- " * 5000, b"&x " * 9, b"\xff", b"\x00"),
    *(b"!!binary |\n", b"%YAML 9.9\n", b"a: &a [x]\nb: &b [*a,*a]\n" * 9, b"9" * 6000),
    *(b"1e400", b".nan", b"- *", b"\r", b"\xe2\x80\xa8", b"'", b'"', b"|\n", b">\n", b"#", b": "),
    *(b"".join(b"k%d: 1\n" % n for n in range(80_000)), b"- &a 1\n" * 50_000),
    b"".join(b"- &a%d x\n" % n for n in range(50_000)),
)


def attempt(trial: Trial) -> None:
    enter(trial)
    random = trial.random
    texts = [path.read_bytes() for path in sorted((ROOT / "scenarios").glob("*.yaml"))]
    text = random.choice([*texts, SUITE])
    for _ in range(random.choice((1, 1, 2, 4))):
        text = broken(random, text)
    path = trial.folder / "broken.yaml"
    path.write_bytes(text)
    begin_s = time.process_time()
    call(trial, "run", path, "--dry-run", "--only", "no such case", allowed=(2, 5))
    spent_s = time.process_time() - begin_s
    trial.outcome.expect(spent_s < MOST_S, f"refused only after {spent_s:.1f} s of the processor")
    trial.outcome.what = f"{path.name} of {len(text)} bytes"


def broken(random: Random, text: bytes) -> bytes:
    place, end = sorted((random.randrange(len(text) + 1), random.randrange(len(text) + 1)))
    lines = text.splitlines(keepends=True) or [b"\n"]
    at = random.randrange(1, len(lines) + 1)
    values = [str(value).encode(errors="replace") for value in (*ODD_TEXTS, *NUMBERS)]
    key, colon, _ = lines[at - 1].partition(b":")
    ways = (
        flipped(random, bytearray(text)),
        text[:place],
        text[:place] + text[end:],
        text[:place] + random.choice(PIECES) + text[place:],
        b"".join([*lines[:at], random.choice(PIECES), b"\n", *lines[at:]]),
        b"".join([*lines[:at], *lines[: at // 2]]),
        b"".join([*lines[: at - 1], key, colon, b" ", random.choice(values), b"\n", *lines[at:]]),
        b"".join([*lines[: at - 1], key, colon, b" ", random.choice(PIECES), b"\n", *lines[at:]]),
        text.decode(errors="replace").encode("utf-16"),
    )
    return random.choice(ways)
