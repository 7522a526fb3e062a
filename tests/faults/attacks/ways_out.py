"""A downloaded folder whose links and names lead elsewhere, and weights that are not of the format:
nothing elsewhere is read, changed or copied, and each is one line.
"""

import json
import os
import shutil
import struct
from pathlib import Path

from ..in_process import call, enter
from ..trial import Trial

TITLE = "links and names out of results, broken weights"
COUNT = 60
SHORT = 4
SECRET = b"secret-9c1f"
LINKS = ("latest", "mine", "baselines", "logs", "models", "report.html", "pages")
HEADERS = (
    *("[" * 100_000 + "]" * 100_000, "[]", '{"a": {}}', "[" + "[]," * 1_000_000 + "[]]"),
    *(
        f'{{"a": {{"dtype": "U8", "shape": [4], "data_offsets": {places}}}}}'
        for places in ("[-9223372036854775808, 4]", "[0, Infinity]", "[0, 1e999]", "[4, 0]", "4")
    ),
)


def attempt(trial: Trial) -> None:
    kinds = (links, baseline, weights)
    kind = kinds[trial.number % len(kinds)]
    trial.outcome.what = kind.__name__
    (trial.folder / "elsewhere").mkdir()
    for name in ("worker-9.log", "page", "main.json"):
        (trial.folder / "elsewhere" / name).write_bytes(SECRET)
    run = trial.results / trial.finished.name
    shutil.copytree(trial.finished, run)
    enter(trial)
    before = sorted((trial.folder / "elsewhere").iterdir())
    kind(trial, run)
    after = sorted((trial.folder / "elsewhere").iterdir())
    same = before == after and all(one.read_bytes() == SECRET for one in after)
    trial.outcome.expect(same, "something elsewhere was changed")


def links(trial: Trial, run: Path) -> None:
    """In the run and beside it; a shard, so that merge reads it."""
    meta = json.loads((run / "run.json").read_bytes())
    shard = {"number": 1, "of": 1, "elsewhere": {}}
    (run / "run.json").write_text(json.dumps({**meta, "shard": shard}), encoding="utf-8")
    for name in trial.random.sample(LINKS, 4):
        place = (run if trial.random.random() < 0.7 else trial.results) / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        to_file = trial.random.random() < 0.5
        place.symlink_to(trial.folder / "elsewhere" / ("page" if to_file else ""))
        trial.outcome.what += f" {place.relative_to(trial.results)}"
    out = trial.random.choice((run / "pages" / "page", run / "report.html", trial.results / "mine"))
    for words in (
        *(
            ("show", run, "--format", "html"),
            ("show", run, "--format", "html", "-o", out),
            ("show", run, "--format", "csv", "-o", out),
        ),
        *(("merge", run, "--out", trial.results), ("show", "latest"), ("show", "mine")),
        ("compare", run, "--save", "main", "--runs", trial.results),
    ):
        said = call(trial, *words, allowed=(0, 1, 2))
        trial.outcome.expect(SECRET not in said, f"{words[0]} told the secret")
    copies = [one for one in trial.results.rglob("*") if one.is_file() and not one.is_symlink()]
    trial.outcome.expect(
        not any(SECRET in one.read_bytes() for one in copies), "the secret was copied"
    )


def baseline(trial: Trial, run: Path) -> None:
    """Of somebody else, which names a run of this user's."""
    mine = trial.folder / "private"
    shutil.copytree(run, mine)
    (trial.results / "baselines").mkdir()
    named = trial.random.choice((str(mine), os.path.relpath(mine, trial.results)))
    document = {"schema": 1, "name": "main", "run": named, "saved_utc": "2026-11-21T00:00:00"}
    (trial.results / "baselines" / "main.json").write_text(json.dumps(document), encoding="utf-8")
    (trial.results / "latest").symlink_to(mine)
    for words in (("show", "main"), ("compare", "main", run), ("show", "-o", "x.csv")):
        call(trial, *words, "--runs", trial.results, allowed=(2,))
    trial.outcome.expect(not Path("x.csv").exists(), "a private run was exported")


def weights(trial: Trial, run: Path) -> None:
    header = trial.random.choice(HEADERS).encode()
    trial.outcome.what += f" {header[:60]!r}"
    model = trial.folder / "model"
    model.mkdir()
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 4, "max_position_embeddings": 64}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    content = struct.pack("<Q", len(header)) + header + b"1234"
    (model / "model.safetensors").write_bytes(content)
    call(trial, "advise", model, "--runs", trial.results, allowed=(2,))
