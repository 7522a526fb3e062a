#!/usr/bin/env python3
"""`make dist`: build wheel and sdist of the last commit into dist/, check what they hold, and use
each as users do: installed into a fresh environment, far from the checkout. Into release/ go what
it then consists of (CycloneDX) and, with a tag, its notes from CHANGELOG.md.

Nothing of the working tree gets in: the commit is exported into a temporary folder. The wheel that
is built from the sdist must be the one that is built from the commit, byte by byte.
"""

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parents[1]
# as .package/attnbench links them
LINKED = {name: name for name in ("harness", "impls", "reports", "scenarios")}
LINKED["results/published"] = "harness/rows/published"
IN_SDIST = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt"}
DIST_INFO = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
ABOUT = "release"  # beside the folder of wheel and sdist, whose files a package index takes all
RESULTS = {"ok", "oom", "predicted_oom"}  # statuses that quickstart may have on any machine


class Failed(Exception):
    """The release is not one; the message says why."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / "dist")
    tag = os.environ.get("TAG", "")
    options.add_argument("--tag", default=tag, help="the release's tag, such as v0.2.0")
    given = options.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="attnbench-dist-") as folder:
            made = distribute(Path(folder), given.tag)
            for found, out in (
                (made, given.out),
                (made.with_name(ABOUT), given.out.with_name(ABOUT)),
            ):
                shutil.rmtree(out, ignore_errors=True)
                shutil.copytree(found, out)
                for path in sorted(out.iterdir()):
                    print(f"{digest(path)}  {path}")
    except Failed as failed:
        sys.exit(f"make dist: {failed}")


def distribute(temporary: Path, tag: str) -> Path:
    """A folder with wheel and sdist, both checked and tried, and ABOUT beside it. Raises Failed."""
    if output(["git", "status", "--porcelain"], ROOT):
        say("this tree has changes that are in no commit, and so not in the release")
    source = temporary / "source"
    export(source)
    epoch = output(["git", "log", "-1", "--format=%ct"], ROOT)
    made = build(source, temporary / "dist", epoch)
    wheel, sdist = files(made)
    version = version_of(wheel)
    files_of_commit = output(["git", "ls-tree", "-r", "--name-only", "HEAD"], ROOT).splitlines()
    check_names(wheel_names(wheel), wanted_in_wheel(files_of_commit, version), wheel.name)
    check_names(sdist_names(sdist), wanted_in_sdist(files_of_commit), sdist.name)
    about = temporary / ABOUT
    about.mkdir()
    if tag:
        notes = notes_of(version, tag, (source / "CHANGELOG.md").read_text())
        (about / "notes.md").write_text(notes)
    check_rebuilt(wheel, sdist, temporary, epoch)
    for file in (wheel, sdist):
        use(file, version, temporary / f"user-of-{file.suffix[1:]}", source / "constraints.txt")
    list_parts(temporary / "user-of-whl" / "venv", source, version, about / "sbom.cdx.json")
    return made


def export(folder: Path) -> None:
    """The last commit, without anything else of the working tree."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def build(source: Path, out: Path, epoch: str, *targets: str) -> Path:
    say(f"building {' and '.join(targets or ('wheel', 'sdist'))}")
    flags = [word for target in targets or ("wheel", "sdist") for word in ("-t", target)]
    output(
        [sys.executable, "-m", "hatchling", "build", *flags, "-d", str(out)],
        source,
        {**os.environ, "SOURCE_DATE_EPOCH": epoch},
    )
    return out


def files(folder: Path) -> tuple[Path, Path]:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


# ---- contents ------------------------------------------------------------------------------------


def package_names(files_of_commit: Iterable[str]) -> set[str]:
    """What the package holds: the files of the commit, under the names of the links to them."""
    names = set()
    for file in files_of_commit:
        for folder, link in LINKED.items():
            if file.startswith(f"{folder}/"):
                names.add(f"attnbench/{link}/{file.removeprefix(f'{folder}/')}")
        inside = file.removeprefix(".package/")
        if inside != file and inside.startswith("attnbench/") and "." in Path(inside).name:
            names.add(inside)  # the links have names without a dot
    return names - {f"attnbench/{link}" for link in LINKED.values()}


def wanted_in_wheel(files_of_commit: Iterable[str], version: str) -> set[str]:
    return package_names(files_of_commit) | {
        f"attnbench-{version}.dist-info/{name}" for name in DIST_INFO
    }


def wanted_in_sdist(files_of_commit: Iterable[str]) -> set[str]:
    packed = {f".package/{name}" for name in package_names(files_of_commit)}
    return packed | IN_SDIST | {".package/build_hook.py", ".gitignore", "PKG-INFO"}


def wheel_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def sdist_names(sdist: Path) -> list[str]:
    """Names below the one folder. Raises Failed for what is not a plain file."""
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            if not member.isreg():
                raise Failed(f"{sdist.name}: {member.name} is no plain file")
        return [member.name.split("/", 1)[1] for member in archive.getmembers()]


def check_names(found: list[str], wanted: set[str], archive: str) -> None:
    """Raises Failed for a file too many, missing or packed twice."""
    repeated = {name for name in found if found.count(name) > 1}
    for names, what in (
        (set(found) - wanted, "holds what the commit does not have there"),
        (wanted - set(found), "lacks files of the commit; see include in pyproject.toml"),
        (repeated, "holds files twice"),
    ):
        if names:
            raise Failed(f"{archive}: {what}: {', '.join(sorted(names)[:10])}")


def notes_of(version: str, tag: str, changelog: str) -> str:
    """What the changelog says of a version, links as a package index has them. Raises Failed if the
    tag is another version's, or there is nothing.
    """
    if tag != f"v{version}":
        raise Failed(f"tag {tag}, but this is version {version}; wanted v{version}")
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"{heading}\n+(.+?)\s*(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Failed(
            f"CHANGELOG.md: has no notes on version {version}; wanted `## {version} - DATE`"
        )
    hook = run_path(str(ROOT / ".package" / "build_hook.py"))
    return f"{hook['elsewhere'](found[1])}\n"


def check_rebuilt(wheel: Path, sdist: Path, temporary: Path, epoch: str) -> None:
    """Raises Failed if the sdist builds another wheel."""
    with tarfile.open(sdist) as archive:
        archive.extractall(temporary / "unpacked", filter="data")
    (source,) = (temporary / "unpacked").iterdir()
    again = build(source, temporary / "rebuilt", epoch, "wheel") / wheel.name
    if digest(again) != digest(wheel):
        raise Failed(f"{sdist.name}: builds another wheel than the commit does")


# ---- use -----------------------------------------------------------------------------------------


def use(file: Path, version: str, folder: Path, constraints: Path) -> None:
    """Install the file into a fresh environment, measure quickstart and write its page."""
    say(f"{file.name}: installing into a fresh environment")
    output([sys.executable, "-m", "venv", str(folder / "venv")], folder.parent, os.environ)
    programs, home = folder / "venv" / "bin", folder / "home"
    home.mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "ATTNBENCH", "VIRTUAL_ENV", "GITHUB_"))
    }
    clean = {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
    output([*pip, "-c", str(constraints), str(file)], home, clean)
    attnbench = str(programs / "attnbench")
    found = output([attnbench, "--version"], home, clean)
    if found != f"attnbench {version}":
        raise Failed(f"{file.name}: says {found!r}; wanted attnbench {version}")
    say(f"{file.name}: attnbench run quickstart")
    run_folder = home / output([attnbench, "run", "quickstart", "--quiet", "--wait"], home, clean)
    output([attnbench, "show", "--format", "html"], home, clean)
    check_run(run_folder, file.name)


def check_run(folder: Path, name: str) -> None:
    """Raises Failed if a case failed, nothing was measured, or there is no page."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    statuses = {row["status"] for row in rows}
    if "ok" not in statuses or statuses - RESULTS:
        raise Failed(f"{name}: quickstart ended with {', '.join(sorted(statuses)) or 'no rows'}")
    if not (folder / "report.html").read_text().startswith("<!DOCTYPE html>"):
        raise Failed(f"{name}: attnbench show wrote no page")
    say(f"{name}: {len(rows)} rows, {(folder / 'report.html').stat().st_size} bytes of page")


def list_parts(venv: Path, source: Path, version: str, file: Path) -> None:
    """Every package that the wheel was tried with, as CycloneDX."""
    say("listing what was installed")
    project = source / "pyproject.toml"  # its version is known when it is built
    project.write_text(re.sub(r"(?m)^dynamic = .*", f'version = "{version}"', project.read_text()))
    words = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    words += ["--pyproject", str(project), "--mc-type", "library"]
    output([*words, "--output-file", str(file), str(venv)], source)


# ---- programs ------------------------------------------------------------------------------------


def output(command: list[str], cwd: Path, environment: Mapping[str, str] = os.environ) -> str:
    """What a program prints. Raises Failed if it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=dict(environment), check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout.strip()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
