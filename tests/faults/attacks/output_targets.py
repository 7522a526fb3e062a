"""`-o` names a FIFO, a device, a link, a folder or a place that cannot be written: what is no
regular file is never replaced, and a regular file has its old content or the new.
"""

import os
import resource
import signal
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..dies_at_step import Steps
from ..in_process import call, enter, run
from ..trial import Trial

TITLE = "output to pipes, devices, links, folders, full disks; killed while writing"
COUNT = 160
SHORT = 11
OLD = b"the old content"
FULL, NULL = os.makedev(1, 7), os.makedev(1, 3)


def attempt(trial: Trial) -> None:
    enter(trial)
    commands = (
        ("show", trial.finished, "--format", "html", "-o"),
        ("show", trial.finished, "--format", "md", "-o"),
        ("show", trial.finished, "--format", "csv", "-o"),
        ("show", trial.finished, "--format", "json", "-o"),
        ("show", trial.finished, "--format", "parquet", "-o"),
    )
    words = trial.random.choice(commands)
    targets = (
        fifo,
        device,
        link,
        link_to_device,
        dangling,
        loop,
        folder,
        nowhere,
        odd,
        small,
        dies,
    )
    target = targets[trial.number % len(targets)]
    trial.outcome.what = f"{' '.join(map(str, words[::2]))} {target.__name__}"
    path = trial.folder / "there" / "target"
    path.parent.mkdir()
    target(trial, words, path)
    debris = [one.name for one in path.parent.iterdir() if one.name.startswith(".")]
    trial.outcome.expect(not debris or target is dies, f"left behind: {debris}")


Words = tuple[object, ...]


def fifo(trial: Trial, words: Words, path: Path) -> None:
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    call(trial, *words, path, allowed=(0, 2))
    is_fifo = stat.S_ISFIFO(path.lstat().st_mode)
    trial.outcome.expect(is_fifo, "the FIFO was replaced")
    if is_fifo and reader.is_alive():  # let the reader see an end, if it has not seen one now
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    reader.join(5)
    trial.outcome.expect(read and read[0], "nothing came through")


def device(trial: Trial, words: Words, path: Path) -> None:
    """A node of our own: where the attack succeeds, nothing else is harmed."""
    kind = trial.random.choice((FULL, NULL))
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, kind)
        path.write_bytes(b"")
    except OSError:
        trial.outcome.what += " (may not be made)"
        return
    call(trial, *words, path, allowed=(2,) if kind == FULL else (0, 2))
    trial.outcome.expect(stat.S_ISCHR(path.lstat().st_mode), "the device was replaced")


def link(trial: Trial, words: Words, path: Path) -> None:
    """To a file: still a link, and the file has the old content or all of the new."""
    file = path.with_name("file")
    file.write_bytes(OLD)
    path.symlink_to(file.name)
    call(trial, *words, path, allowed=(0, 2))
    trial.outcome.expect(path.is_symlink(), "the link was replaced")


def link_to_device(trial: Trial, words: Words, path: Path) -> None:
    path.symlink_to("/dev/null")
    if trial.random.random() < 0.5 and os.getuid():  # as root a broken attnbench would replace it
        path.unlink()
        path.symlink_to("/dev/stdout")
    call(trial, *words, path, allowed=(0, 2))
    trial.outcome.expect(path.is_symlink(), "the link was replaced")


def dangling(trial: Trial, words: Words, path: Path) -> None:
    path.symlink_to(trial.random.choice(("not-yet-there", "/nowhere/at/all")))
    call(trial, *words, path, allowed=(0, 2))
    trial.outcome.expect(path.is_symlink(), "the link was replaced")


def loop(trial: Trial, words: Words, path: Path) -> None:
    path.symlink_to(path.name)
    call(trial, *words, path, allowed=(0, 2))


def folder(trial: Trial, words: Words, path: Path) -> None:
    path.mkdir()
    (path / "inside").write_bytes(OLD)
    call(trial, *words, path, allowed=(2,))
    trial.outcome.expect((path / "inside").read_bytes() == OLD, "the folder was changed")


def nowhere(trial: Trial, words: Words, path: Path) -> None:
    file = path.with_name("file")
    file.write_bytes(OLD)
    places = (
        *(Path("/proc/attnbench.html"), Path("/sys/attnbench.html"), path / "missing" / "x"),
        *(file / "below-a-file", path.with_name("n" * 300), Path("/dev/null/x")),
    )
    call(trial, *words, trial.random.choice(places), allowed=(2,))


def odd(trial: Trial, words: Words, path: Path) -> None:
    name = trial.random.choice(("a\nb", "\x1b]0;x\x07", "\u202ecod.html", "-", "--", "a b", "%s"))
    place = path.with_name(name)
    call(trial, *words, place, allowed=(0, 2))


def small(trial: Trial, words: Words, path: Path) -> None:
    """A disk that is full before the end: the old content stays."""
    path.write_bytes(OLD)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (trial.random.randrange(200), hard))
    try:
        in_child(trial, lambda: run(trial, [*map(str, words), str(path)]), (1, 2, 4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    trial.outcome.expect(path.read_bytes() == OLD, "the old content is gone")


def dies(trial: Trial, words: Words, path: Path) -> None:
    path.write_bytes(OLD)
    step, most_bytes = trial.random.randint(1, 8), trial.random.randrange(10_000)

    def killed() -> int:
        Steps(step, signal.SIGKILL, most_bytes, str(path.parent)).install()
        return run(trial, [*map(str, words), str(path)])

    in_child(trial, killed, (0, -signal.SIGKILL))
    after = path.read_bytes()
    whole = after == OLD or (len(after) > 200 and after[:5] != OLD[:5])
    trial.outcome.expect(whole, "neither the old content nor the new")


def in_child(trial: Trial, work: Callable[[], int], allowed: tuple[int, ...]) -> None:
    if (pid := os.fork()) == 0:
        with open(os.devnull, "wb") as quiet:  # noqa: PTH123
            os.dup2(quiet.fileno(), 1)
            os.dup2(quiet.fileno(), 2)
        os._exit(work())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    trial.outcome.expect(code in allowed, f"exit code {code}, wanted one of {allowed}")
