"""`attnbench run`: scenarios, a grid given by options, or what a run lacks."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from ...impls.problem import AXES
from ..files.errors import BadInput, option, shown
from . import completion
from .fields import DEVICES, EARLIER, MODELS, SHAPE, WHAT, Measures, Plan, Several, Values, listed
from .measured import Measured, axis_option
from .measuring import How, Job, run_of
from .request import Option, Verb, refuse

if TYPE_CHECKING:
    from ..run.engine import Engine
    from ..run.suite import SuiteEntry
    from ..scenario import Change, Entry
    from ..scenario.selection import Selection
    from .runs import Run

SIZE = re.compile(r"[0-9]+[kKmM]?")
Scenario = str | Path | Mapping[str, Any]
Models = tuple[str | Path, ...] | Mapping[str, str | Path]


def of_pack(place: str) -> Any:
    """A module of a pack, which nothing imports where no option asks for it."""
    return import_module(f"{__name__.rpartition('.verbs.')[0]}.{place}")


def one_or_listed(value: Any) -> Any:
    """A mapping stays: it names what it holds."""
    return value if isinstance(value, Mapping) else listed(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(Measured):
    scenario: Annotated[
        tuple[Scenario, ...],
        Option(
            "SCENARIO",
            complete=completion.scenarios,
            parse=listed,
            wanted="a scenario's name, its file, its text or a mapping",
            argument=True,
        ),
    ] = ()
    """Built-in scenarios, studies or YAML files; a file may list several, and claims runs all
    claims_*.
    """
    against: Annotated[
        str | None, Option("BACKEND", WHAT, also=("baseline",), complete=completion.one_backend)
    ] = None
    """Reference backend for ratios (default: the first)."""
    only: Annotated[Several, Option("PATTERN", WHAT, parse=listed)] = ()
    """Measure only cases whose id matches; repeatable."""
    skip: Annotated[Several, Option("PATTERN", WHAT, parse=listed)] = ()
    """Skip cases whose id matches; repeatable."""
    set: Annotated[
        Several | Mapping[str, Any],
        Option(
            "A.B=C",
            WHAT,
            also=("changes",),
            complete=completion.changes,
            parse=one_or_listed,
            wanted="field=value, or in Python a mapping",
        ),
    ] = ()
    """Change a field of the scenario; repeatable."""
    seq_len: Annotated[Values | None, axis_option("seq_len")] = None
    model: Annotated[
        str | Sequence[str] | None, Option("MODEL", SHAPE, complete=completion.models)
    ] = None
    """Model whose attention to measure; a name from attnbench list models, a Hugging Face
    config.json or its folder. Replaces heads and widths.
    """
    phase: Annotated[str | None, Option("prefill|chunk|decode|verify|training", SHAPE)] = None
    """With --model, what is computed: prefill all --seq-len tokens, chunk and verify the last
    --queries of them, decode one more token, training all with gradients.
    """
    queries: Annotated[int | None, Option("COUNT", SHAPE, least=1)] = None
    """With --model, tokens to compute in phase chunk (default: 512) or verify (default: 5)."""
    tp: Annotated[int | None, Option("COUNT", SHAPE, least=1)] = None
    """With --model, tensor parallelism: devices that share its heads."""
    plan: Plan = None
    measure: Measures = None
    resume: Annotated[str | Path | None, Option("RUN", EARLIER, complete=completion.runs)] = None
    """Continue this run: measure its missing cases."""
    retry_failed: Annotated[bool, Option(group=EARLIER, needs="resume")] = False
    """With --resume, repeat crashed, failed and timed-out cases."""
    force: Annotated[bool, Option(group=EARLIER, needs="resume")] = False
    """With --resume, accept a changed environment."""
    shard: Annotated[str | None, Option("I/N", DEVICES)] = None
    """Measure only part I of N, for N devices or jobs; attnbench merge joins the parts."""
    on: Annotated[Literal["ray"] | None, Option(group=DEVICES)] = None
    """Measure on several devices of a Ray cluster at a time; this machine must be one of its nodes.
    """
    address: Annotated[str | None, Option("auto|local|HOST:PORT", DEVICES, needs="on")] = None
    """With --on ray, the cluster (default: this machine's); local starts one here for this run."""
    devices: Annotated[int | None, Option("COUNT", DEVICES, least=1, most=100_000)] = None
    """With --on ray, the number of devices (default: all)."""
    device_kind: Annotated[str | None, Option("NAME", DEVICES, needs="on")] = None
    """With --on ray, devices with NAME in their name, such as H100; a run measures one kind."""
    checkpoint: Annotated[
        Models,
        Option("[NAME=]PATH", MODELS, parse=one_or_listed, wanted="a path, or NAME=PATH"),
    ] = ()
    """Trained model whose heads to examine: the folder of a Hugging Face model. Works alone or with
    scenarios; repeatable.
    """
    tokens: Annotated[str | Path | None, Option("FILE", MODELS, needs="checkpoint")] = None
    """With --checkpoint, its input: a JSON list of token ids, or text if the model has a
    tokenizer.json (default: built-in tokens).
    """

    def __post_init__(self) -> None:
        planned = (
            *(self.scenario, self.axes, self.backends, self.set, self.only, self.skip, self.shard),
            *(getattr(self, name, None) for name in self.changed),
        )
        leave_out = ("backends", "set", "only", "skip", "shard", "plan", "device", "timeout")
        refuse(
            {
                f"{option('devices')} needs {option('on', 'ray')}; to measure a part, use"
                f" {option('shard', '1/8')}": self.on is None and self.devices is not None,
                f"{option('resume')}: continues the run as it was planned; leave out scenarios,"
                f" axes, {', '.join(map(option, leave_out))}, {option('memory_gib')} and"
                f" {option('dry_run')}": self.resume is not None and (any(planned) or self.dry_run),
            }
        )

    def changes(self) -> "list[Change]":
        from ..scenario import Change, read_change

        if isinstance(self.set, Mapping):
            given = [Change(k, v, option("set", f"{k}={v}")) for k, v in self.set.items()]
        else:
            given = [read_change(text) for text in self.set]
        return [*given, *Measured.changes(self)]

    def selection(self) -> "Selection":
        """Raises BadInput."""
        from ..scenario.selection import Selection
        from ..scenario.shards import read_shard

        selection = Selection(
            only=self.only,
            skip=self.skip,
            shard=None if self.shard is None else read_shard(self.shard),
        )
        if not self.checkpoint:
            return selection
        given, several = of_pack("heads.given"), self.checkpoint
        named = several.items() if isinstance(several, Mapping) else map(str, several)
        tokens = None if self.tokens is None else str(self.tokens)
        return replace(selection, attachments=given.read_checkpoints([*named], tokens))

    def engine(self) -> "Engine | None":
        """Other devices than this machine's. Raises EnvironmentUnmet without Ray."""
        if self.on is None:
            return None
        found: Engine = of_pack("fleet.on_ray").engine(
            self.address or "auto", self.devices, self.device_kind
        )
        return found


# ---- what is measured ----------------------------------------------------------------------------


def planned(request: RunRequest) -> "tuple[list[SuiteEntry], bool]":
    """What is measured, and whether it is a list of scenarios. Raises BadInput."""
    from ..run.suite import SuiteEntry
    from ..scenario.selection import refuse_unmatched
    from ..scenario.suite_file import alone, beside

    selection, changes = request.selection(), request.changes()
    attachments, are_several = selection.attachments, False
    files = [one.name for one in attachments]
    if attachments and not (request.scenario or request.axes or request.backends):
        entries = [alone(attachments[0].study, changes, files)]
    else:
        entries, are_several = _entries(request, changes)
        if attachments and are_several:
            # the first, so that a bad file is found before anything is measured
            entries = [beside(attachments[0].study, changes, files), *entries]
    found = [
        SuiteEntry(
            scenario=one.scenario,
            selection=replace(
                selection.narrowed(one.only, one.skip),
                attachments=attachments if one is entries[0] else (),
            ),
        )
        for one in entries
    ]
    refuse_unmatched((entry.scenario, entry.selection) for entry in found)
    return found, are_several


def _entries(request: RunRequest, changes: "list[Change]") -> "tuple[list[Entry], bool]":
    """Raises BadInput with the mistakes of all scenarios."""
    from ..scenario import Change, Entry, from_axes, load_entries
    from ..scenario.names import expanded

    names, axes, scenarios = request.named.names, request.axes, request.scenario
    such = {"backends": "naive,fused", "seq_len": "1k", "d_model": 512, "heads": 8}
    refuse(
        {
            f"{option(next(iter(axes), ''))}: cannot be combined with a scenario, here"
            f" {shown(next(iter(scenarios), ''))}; change a scenario with"
            f" {option('set', 'grid.seq_len=[512,1k]')}": scenarios and axes,
            "nothing to run; name a scenario (see attnbench list scenarios), or give axes such as"
            f" {' '.join(map(option, such, such.values()))}": not (scenarios or axes or names),
        }
    )
    if not scenarios:
        given = axes | ({"backends": names} if names else {})
        return [Entry(scenario=from_axes(given, changes))], False
    if names:
        changes = [*changes, Change("backends", [*names], option("backends", ",".join(names)))]
    files, problems = [], dict[str, None]()
    for one in expanded(scenarios):
        try:
            files.append(load_entries(one, changes))
        except BadInput as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise BadInput(*problems)
    are_several = len(files) > 1 or any(file.is_list for file in files)
    return [entry for file in files for entry in file.entries], are_several


def separated(words: Sequence[Any], arguments: Sequence[str]) -> str:
    """What to say of values that follow an option with spaces between them; "" if none do.

    `words`: what stands where no option does. `arguments`: of the program, as given.
    """
    words = [*map(str, words)]
    place = arguments.index(words[0]) if words[0] in arguments else 0
    options = [at for at in range(place) if arguments[at].startswith("--")]
    given, equals, first = arguments[options[-1]].partition("=") if options else ("", "", "")
    name = given.removeprefix("--").replace("-", "_")
    if name != "backends" and not (name in AXES and AXES[name].option):
        return ""
    offered = completion.backend_names() if name == "backends" else get_args(AXES[name].type)
    parts = [part for word in words for part in word.split(",") if part]
    if not all(part in offered or SIZE.fullmatch(part) for part in parts):
        return ""
    before = [*([first] if equals else []), *arguments[options[-1] + 1 : place]]
    joined = ",".join(word.strip(",") for word in [*before, *words])
    return f"{given}: found spaces between values; wanted commas: {given} {joined}"


# ---- the verb ------------------------------------------------------------------------------------


def _resumed(request: RunRequest) -> tuple[Path, Job]:
    """The folder, and what measures what it lacks. Raises BadInput."""
    from ..rows.names import find
    from ..run.start import resume_run

    path = find(str(request.resume), request.runs, unfinished=True)
    attachments = request.selection().attachments
    return path, partial(
        resume_run,
        path,
        attachments=attachments,
        retry_failed=request.retry_failed,
        force=request.force,
    )


def tell(request: RunRequest) -> int:
    """Measure scenarios, or your own shapes and backends.

    Prints the folder of each run; progress goes to stderr. With several scenarios, finished ones
    are skipped and interrupted ones continue.
    """
    from . import in_terminal

    if request.scenario and (hint := separated(request.scenario, sys.argv)):
        raise BadInput(hint)
    if request.resume is not None:
        return in_terminal.tell(_resumed(request)[1], How.of(request, ()))
    entries, are_several = planned(request)
    return in_terminal.tell_entries(entries, request, several=are_several)


def run(request: RunRequest) -> "Run":
    """Measure a scenario, or backends on shapes, in workers of its own, into a new folder under
    `runs`; one row per case, whatever happens.

    `scenario`: the name of a shipped one, a file's path, YAML (text of more than one line), or the
    same as a mapping. `backends`: in place of the scenario's; names, and functions attend(q, k, v,
    *, causal, scale), whose modules the workers import: giving a function permits that.

    A case that fails is a row and no exception. Raises Refusal where nothing is measured: BadInput
    (a ValueError), EnvironmentUnmet (no such device, or another run has it), NothingSelected.
    Ctrl-C raises KeyboardInterrupt once the rows are safe. What `on_row` raises ends the run, whose
    rows stay.
    """
    if request.resume is not None:
        path, job = _resumed(request)
        return run_of(request, f"attnbench.open_run({path.name!r}).resume()", (), job)
    entries, _ = planned(request)
    if len(entries) > 1:
        raise BadInput(f"scenario: found {len(entries)} scenarios; wanted one in each call")
    return run_of(request, f"attnbench.run({entries[0].scenario.name!r})", entries)


VERBS = {
    "run": Verb(
        tell=tell,
        answer=run,
        examples=(
            "attnbench run quickstart",
            "attnbench run --backends fused,sdpa --seq-len 512,2k --heads 8 --head-dim 64",
            "attnbench run my.yaml --set grid.seq_len=[512,1k] --dry-run",
            "attnbench run --resume latest",
            "attnbench run memory_wall --memory-gib 2 --plan quick",
            "attnbench run --backends my_attention:attend,sdpa --seq-len 512 --heads 8"
            " --head-dim 64",
            "attnbench run --model llama-3-8b --seq-len 512,2k --backends fused,sdpa",
            "attnbench run --checkpoint my_model/",
            "attnbench run quickstart --on ray --devices 8",
        ),
        usual="backends seq_len heads head_dim model device plan memory_gib set dry_run resume",
    )
}
