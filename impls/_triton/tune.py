"""Choose the fastest configuration: from the table of earlier runs (tuned.py), or else by timing
launches of each candidate on the problem's own inputs (timing.py). Imports triton.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from math import inf
from time import perf_counter
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from triton.errors import TritonError

from ..axes.lengths import sequences
from ..problem import Problem
from . import launch
from .ahead import compile_together
from .attempts import Attempt, is_broken
from .configs import KERNELS, Config, Kernel, candidates, why_not_gluon, without_descriptors
from .nvidia_tools import Unreadable, serialized
from .safe_code import why_unsafe
from .timing import Timed, by_turns
from .trials import MAX_TOKENS, Trial, trials
from .tuned import kind_of, read

SIZES = ("batch", "heads", "seq_len", "kv_seq_len")
SHORT = 128  # up to so many queries and keys the smallest blocks (nearly) hold them: no choice
# Distance between results, relative to their norm: other tile sizes differ by 2**-8, a lost tile by
# far more.
LIMIT = 2.0**-5

SERIALIZED = "its matrix products run one at a time: the compiler put a wait after each"
WRONG = "gives another result than the first candidate without descriptors"

Configs = tuple[Config, Config, Config]
"""Those of the kernels forward, grad_q and grad_kv."""
Source = Literal["table", "timed", "only"]
"""Chosen by an earlier run, by timing candidates here, or the only candidate."""


def timed_sizes(problem: Problem) -> dict[str, int]:
    """Of what is timed: of long sequences a part; of a ragged batch all."""
    sizes = {name: getattr(problem, name) for name in SIZES}
    if problem.lengths:
        return sizes
    return {name: min(n, MAX_TOKENS) if "seq_len" in name else n for name, n in sizes.items()}


@dataclass(slots=True)
class Notes:
    """What was found of each candidate: why it was `skipped`, or its times; and why the machine
    code of some could not be read for the answer whether it is serialized.
    """

    skipped: dict[Config, str] = field(default_factory=dict)
    times: dict[Config, Timed] = field(default_factory=dict)
    unread: str = ""


class Found(NamedTuple):
    """Of one kernel, for all problems of a kind. `timed_with`: sizes of the one that was timed."""

    config: Config
    source: Source
    notes: Notes
    timed_with: Mapping[str, int]


class Tuning(NamedTuple):
    """The choice, and the facts of it for a row: ready for JSON."""

    configs: Configs
    facts: dict[str, Any]


class Attempted(NamedTuple):
    """A launch that has returned once, and the context of further ones."""

    made: launch.Launch
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """Candidates for a problem on a GPU, and the choice among them.

    `tf32`: whether products in fp32 may be rounded to it. `variant`: of the backend; "portable"
    leaves the kernel in Gluon out, "pointers" tensor descriptors too.
    """

    problem: Problem
    device: torch.device
    tf32: bool
    variant: str = ""

    @property
    def capability(self) -> tuple[int, int]:
        return torch.cuda.get_device_capability(self.device)

    @property
    def _n_q(self) -> int:
        if self.problem.lengths:
            return max(one.queries for one in sequences(self.problem.lengths))
        return self.problem.seq_len - self.problem.empty_rows

    def candidates(self, kernel: Kernel) -> tuple[Config, ...]:
        listed = candidates(kernel, causal=self.problem.causal, **self._shape())
        return listed[-1:] if self._is_short() else tuple(filter(self._allowed, listed))

    def key(self, kernel: Kernel) -> tuple[object, ...]:
        """Of all on which a choice depends."""
        p = self.problem
        kind = replace(kind_of(p, self.capability), passes="")
        layout = (p.d_k, p.d_v, p.scope, p.mask, p.window, p.softcap, p.sinks, p.lengths, p.page)
        return kernel, kind, layout, self.device, self.tf32, self.variant

    def compile_ahead(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """What `tuned` will launch, on all cores at once; q, k and v need no memory."""
        with torch.cuda.device(self.device):
            compile_together(
                made
                for trial in trials(self.problem, q, k, v, tf32=self.tf32)
                if self.key(trial.kernel) not in choices()
                for config in self._first_tried(trial)
                if (made := trial.make(config=config)).config == config
            )

    def tuned(self, q: Tensor, k: Tensor, v: Tensor) -> Tuning:
        """Compiles and runs candidates on q's GPU, once for each kind of problem and process; only
        the forward kernel's without gradients.
        """
        start = perf_counter()
        kernels = KERNELS if self.problem.backward else KERNELS[:1]
        if any(self.key(kernel) not in choices() for kernel in kernels):
            self.compile_ahead(q, k, v)
            self._choose(q, k, v)
        chosen = {kernel: choices()[self.key(kernel)] for kernel in kernels}
        forward, *gradients = (
            chosen[kernel].config if kernel in chosen else self.candidates(kernel)[0]
            for kernel in KERNELS
        )
        facts = self._facts(chosen) | {"tune_ms": (perf_counter() - start) * 1e3}
        return Tuning(configs=(forward, gradients[0], gradients[1]), facts=facts)

    def _choose(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        tried = trials(self.problem, q, k, v, tf32=self.tf32)
        keys = [self.key(trial.kernel) for trial in tried]
        with torch.cuda.device(self.device):
            for place, (trial, key) in enumerate(zip(tried, keys, strict=True), 1):
                found = choices()[key] = choices().get(key) or self._found(trial)
                if any(later not in choices() for later in keys[place:]):
                    trial.make(config=found.config).start()  # the later ones read its results

    def _found(self, trial: Trial) -> Found:
        notes = Notes()
        source: Source = "table"
        kept = self._kept(trial)
        config = _fastest(trial, [kept], notes) if kept else None
        if config is None:
            listed = self.candidates(trial.kernel)
            # Serialized code is better than none.
            config = _fastest(trial, listed, notes) or _fastest(
                trial, listed, notes, serialized_too=True
            )
            source = "only" if len(listed) == 1 else "timed"
        if config is None:
            reasons = "; ".join(f"{config}: {reason}" for config, reason in notes.skipped.items())
            raise RuntimeError(
                f"none of the configurations of {trial.kernel} works on this GPU: {reasons}"
            )
        return Found(config, source, notes, timed_sizes(self.problem))

    def _first_tried(self, trial: Trial) -> Sequence[Config]:
        kept = self._kept(trial)
        return [kept] if kept else self.candidates(trial.kernel)

    def _kept(self, trial: Trial) -> Config | None:
        """The configuration of an earlier run, whose problem may have been a plainer one."""
        if self.tf32 and self.problem.dtype == "fp32":
            return None
        known = read().get(kind_of(self.problem, self.capability))
        if known is None or trial.kernel not in known.configs:
            return None
        config = known.configs[trial.kernel]
        if (config.gluon and self._beyond_gluon) or (config.descriptors and self._by_pointers):
            config = without_descriptors(trial.kernel, config, self._shape()["width"])
        return config if self._allowed(config) else None

    def _allowed(self, config: Config) -> bool:
        gluon = config.gluon and self.variant != ""
        pointers = self.variant == "pointers" or self._by_pointers
        return not (gluon or (config.descriptors and pointers))

    @property
    def _by_pointers(self) -> bool:
        """launch.py says why."""
        return bool(self.problem.lengths or self.problem.page)

    def _shape(self) -> dict[str, Any]:
        """What candidates depend on."""
        p = self.problem
        return {
            "capability": self.capability,
            "item_bytes": p.item_bytes,
            "width": max(p.d_k, p.d_v),
            "n_q": self._n_q,
            "beyond": self._beyond_gluon,
        }

    @property
    def _beyond_gluon(self) -> str:
        p = self.problem
        has = {
            "key mask": p.mask == "padding",
            f"{p.mask} mask": p.mask != "none",
            "softcap": p.softcap,
            "sinks": p.sinks,
            "pages": p.page,
            "ragged batch": p.lengths,
        }
        return next((name for name, given in has.items() if given), "")

    def _is_short(self) -> bool:
        return max(self._n_q, self.problem.kv_seq_len) <= SHORT

    def _facts(self, chosen: Mapping[Kernel, Found]) -> dict[str, Any]:
        """All but `tune_ms`."""
        sources = {one.source for one in chosen.values()}
        order: tuple[Source, ...] = ("timed", "table", "only")
        times = [
            (kernel, *timed) for kernel, one in chosen.items() for timed in one.notes.times.items()
        ]
        forward = chosen["forward"]
        return {
            "configuration": {kernel: asdict(one.config) for kernel, one in chosen.items()},
            "configuration_source": next(source for source in order if source in sources),
            "timed_with": {kernel: dict(one.timed_with) for kernel, one in chosen.items()},
            "forward_kernel": "gluon" if forward.config.gluon else "portable",
            "why_not_gluon": None
            if forward.config.gluon
            else self._not_for_gluon() or _lost_by_gluon(forward),
            "timed_launch_count": sum(one.launches * len(one.readings_ms) for *_, one in times),
            "candidates": [
                {"kernel": kernel, **asdict(config), **_times_of(one)}
                for kernel, config, one in times
            ],
            "skipped": [
                {"kernel": kernel, **asdict(config), "reason": reason}
                for kernel, one in chosen.items()
                for config, reason in one.notes.skipped.items()
            ],
            "serialization_unread": next(
                (one.notes.unread for one in chosen.values() if one.notes.unread), None
            ),
        }

    def _not_for_gluon(self) -> str | None:
        """Why the forward kernel in Gluon is no candidate; None if it is one."""
        if self.variant:
            return f"triton:{self.variant} leaves it out"
        if self._is_short():
            return f"sequences of up to {SHORT} have one configuration"
        return why_not_gluon(**self._shape())


@cache
def choices() -> dict[tuple[object, ...], Found]:
    """Those of this process: a case is checked, measured and timed with the same kernels."""
    return {}


def _times_of(timed: Timed) -> dict[str, Any]:
    return {
        "median_ms": timed.median_ms,
        "least_ms": min(timed.readings_ms),
        "most_ms": max(timed.readings_ms),
        "reading_count": len(timed.readings_ms),
        "reading_launch_count": timed.launches,
        "late_reading_count": timed.late,
        "dropped": timed.dropped,
    }


def _lost_by_gluon(found: Found) -> str:
    """Why the forward kernel in Gluon was not chosen, though it was a candidate."""
    failed = [why for config, why in found.notes.skipped.items() if config.gluon]
    slower = "an earlier run chose another" if found.source == "table" else "another was faster"
    return next(iter(failed), slower)


def _fastest(
    trial: Trial, configs: Sequence[Config], notes: Notes, *, serialized_too: bool = False
) -> Config | None:
    """None if no configuration works.

    The results of all must agree with those of the first one, which has no descriptors if possible.
    One that works is not timed: there is no choice.
    """
    working: dict[Config, Attempted] = {}
    expected: tuple[Tensor, ...] = ()
    first = next((one for one in configs if not one.descriptors), None)
    for config in sorted(configs, key=lambda one: one != first):
        for result in trial.results:
            result.fill_(torch.nan)  # or an element that is never written would look right
        found = _tried(trial, config, notes, serialized_too=serialized_too)
        if not isinstance(found, str) and not _agree(trial.results, expected):
            found = WRONG
        if isinstance(found, str):
            notes.skipped[config] = found
            continue
        working[config] = found
        if not expected and len(configs) > 1:
            expected = tuple(result.clone() for result in trial.results)
    if len(working) > 1:
        device = trial.results[0].device
        starts = [one.made.start for one in working.values()]
        times = by_turns(starts, device, [one.attempt for one in working.values()])
        notes.times |= zip(working, times, strict=True)
    return min(working, key=lambda config: _median_ms(config, notes), default=None)


def _median_ms(config: Config, notes: Notes) -> float:
    timed = notes.times.get(config)
    return timed.median_ms if timed and not timed.dropped else inf


def _tried(trial: Trial, config: Config, notes: Notes, *, serialized_too: bool) -> Attempted | str:
    """The launch, compiled and made once; or why it is not one to choose: the error of the
    compiler, the driver or the GPU, or what the compiler made of it.

    Raises RuntimeError if the launch broke the GPU's context, so that nothing else can run here.
    """
    made, device = trial.make(config=config), trial.results[0].device
    if made.config != config:
        return made.why_not or launch.UNDESCRIBABLE
    try:
        found = compiled(made)
        attempt = Attempt(found.hash, device, f"{trial.kernel} of {config}")
        if unsafe := why_unsafe(found.asm) or attempt.unreturned():
            return unsafe
        if _is_serialized(found.asm, notes) and not serialized_too:
            return SERIALIZED
        with attempt:
            made.start()
            torch.cuda.synchronize(device)
    except torch.OutOfMemoryError:
        raise  # also a RuntimeError, but not the candidate's fault
    except (TritonError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        if is_broken(device):
            raise RuntimeError(
                f"{trial.kernel} in {config} broke the GPU's context: {reason}; the next process"
                " leaves it out"
            ) from error
        return reason
    return Attempted(made, attempt)


def compiled(made: launch.Launch) -> Any:
    """What Triton makes of it, without starting it."""
    return made.kernel.warmup(
        *made.arguments, grid=(made.programs,), **made.constants, **made.options
    )


def _is_serialized(asm: Mapping[str, Any], notes: Notes) -> bool:
    """False also if the machine code cannot be read, which is noted."""
    try:
        return serialized(asm)
    except Unreadable as reason:
        notes.unread = str(reason)
        return False


def _agree(results: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """True if nothing is expected."""
    norm = partial(torch.linalg.vector_norm, dtype=torch.float32)
    return not expected or all(
        bool(norm(result - right) <= LIMIT * norm(right))
        for result, right in zip(results, expected, strict=True)
    )
