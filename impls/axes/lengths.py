"""The sequences of a ragged batch: how many queries and keys each has. Imports no torch.

Written in the grammar of vLLM's attention benchmarks (benchmarks/attention_benchmarks/
batch_spec.py): parts joined by _, each `<count>q<queries>s<keys>`. The count is 1 if it is left
out, the keys are as many as the queries; 2k is 2048. `2q2k_32q1s1k`: two prompts of 2048 tokens,
and 32 sequences of 1024 that compute one new token.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, groupby
from typing import NamedTuple, TypeVar

from ..masks import BY_DISTANCE
from ..problem_fields import ProblemFields
from .axis import Axis

OfProblem = TypeVar("OfProblem", bound=ProblemFields)

PART = re.compile(r"([0-9]{0,4})q([0-9]{1,9}[kKmM]?)(?:s([0-9]{1,9}[kKmM]?))?", re.ASCII)
UNITS = {"k": 1024, "m": 1024**2}
PACKABLE = ("none", *BY_DISTANCE)
"""Those that depend on the distance of query and key alone, which packing leaves as it is."""
MOST_SEQUENCES = 4096
LONGEST_NAME = 24  # characters, in ids and labels


class Sequence(NamedTuple):
    """Numbers of tokens. The queries are the last of the sequence, whose keys are all of it."""

    queries: int
    keys: int


@lru_cache(maxsize=1024)
def sequences(lengths: str) -> tuple[Sequence, ...]:
    """In order. Raises ValueError for a text that is no batch."""
    found: list[Sequence] = []
    for part in lengths.split("_"):
        if (match := PART.fullmatch(part)) is None:
            raise ValueError(
                f"lengths have {part[:40]!r}; wanted <count>q<queries>s<keys>, as q2k or 32q1s1k,"
                " joined by _"
            )
        count, queries, keys = match.groups()
        n_q, n_kv, times = tokens(queries), tokens(keys or queries), int(count or 1)
        if min(times, n_q) < 1 or n_q > n_kv:
            raise ValueError(
                f"lengths have {part!r}; wanted at least one sequence, of one query or more, and at"
                " least as many keys as queries"
            )
        if len(found) + times > MOST_SEQUENCES:
            raise ValueError(f"lengths have more than {MOST_SEQUENCES} sequences; give fewer")
        found += [Sequence(n_q, n_kv)] * times
    return tuple(found)


def tokens(size: str) -> int:
    """Of 300, 2k or 1m."""
    return int(size.rstrip("kKmM")) * UNITS.get(size[-1].lower(), 1)


def canonical(batch: Iterable[tuple[int, int]]) -> str:
    """The one text of a batch of (queries, keys): neighbours that are equal share a part."""
    return "_".join(_part(*one, len([*same])) for one, same in groupby(batch))


def _part(queries: int, keys: int, count: int) -> str:
    more = "" if keys == queries else f"s{_size(keys)}"
    return f"{count if count > 1 else ''}q{_size(queries)}{more}"


def _size(tokens: int) -> str:
    return str(tokens) if tokens % 1024 else f"{tokens // 1024}k"


def short_name(lengths: str) -> str:
    """Part of an id: the text, or if it is long the number of sequences and a digest."""
    if len(lengths) <= LONGEST_NAME:
        return lengths
    digest = sha256(lengths.encode()).hexdigest()[:6]
    return f"{len(sequences(lengths))}seq{digest}"


def words(lengths: str) -> str:
    """For people: the text, or if it is long how many sequences of which lengths."""
    if len(lengths) <= LONGEST_NAME:
        return lengths
    batch = sequences(lengths)
    queries, keys = [one.queries for one in batch], [one.keys for one in batch]
    tokens = f"{min(keys)} to {max(keys)} tokens"
    own = "" if queries == keys else f", {min(queries)} to {max(queries)} of them new"
    return f"{len(batch)} sequences of {tokens}{own}, {padding_ratio(lengths):.0%} padding"


def padding_ratio(lengths: str) -> float:
    """The share of padding if every sequence is padded to the longest, of queries and of keys."""
    batch = sequences(lengths)
    longest = max(one.queries for one in batch) + max(one.keys for one in batch)
    return 1 - sum(map(sum, batch)) / (len(batch) * longest)


def packed(problem: ProblemFields) -> dict[str, str | int]:
    """The fields that follow from a problem's lengths. Raises ValueError for what contradicts
    them.
    """
    p, batch = problem, sequences(problem.lengths)
    totals = dict(zip(("seq_len", "kv_seq_len"), map(sum, zip(*batch, strict=True)), strict=True))
    if p.batch != 1:
        raise ValueError(
            f"batch is {p.batch}, but lengths pack their sequences into one row; wanted 1"
        )
    for name, total in totals.items():
        if getattr(p, name) not in (0, total):
            raise ValueError(
                f"{name} is {getattr(p, name)}, but lengths have {total} tokens in all; leave"
                f" {name} out"
            )
    if p.mask not in PACKABLE:
        raise ValueError(f"mask {p.mask} with lengths; wanted one of: {', '.join(PACKABLE)}")
    found: dict[str, str | int] = {"lengths": canonical(batch), **totals}
    if p.causal and totals["seq_len"] != totals["kv_seq_len"]:
        if p.causal_align == "top_left":
            raise ValueError(
                "causal_align is top_left, but the queries of lengths are the last of their"
                " sequences; leave it out"
            )
        found["causal_align"] = "bottom_right"
    return found


def starts(lengths: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where each sequence begins among the packed queries and keys, and where the last ends."""
    batch = sequences(lengths)
    return (
        tuple(accumulate((one.queries for one in batch), initial=0)),
        tuple(accumulate((one.keys for one in batch), initial=0)),
    )


def alone(problem: OfProblem) -> tuple[OfProblem, ...]:
    """Each sequence of a ragged batch as a problem of its own, in order."""
    return tuple(_one(problem, one) for one in sequences(problem.lengths))


def counted(problem: OfProblem) -> Iterator[tuple[OfProblem, int]]:
    """The unlike ones among them, and how many there are of each."""
    for one, count in Counter(sequences(problem.lengths)).items():
        yield _one(problem, one), count


def _one(problem: OfProblem, of: Sequence) -> OfProblem:
    return replace(problem, lengths="", seq_len=of.queries, kv_seq_len=of.keys)


LENGTHS = Axis(
    "Sequences of unequal length, packed into one row without padding, in place of seq_len:"
    " lengths such as [2k, 300, 1k]; 2q2k_32q1s1k, as in vLLM's benchmarks: 2 sequences of 2048"
    " tokens, and 32 of 1024 of which one is new;"
    " lognormal:count=16:mean=1k:sigma=0.8:seed=1; or file:PATH.",
    option="Lengths of sequences packed into one row, such as 2k,300,1k or 2q2k_32q1s1k; replaces"
    " --seq-len.",
    scenario_wide=True,
    part=lambda p: short_name(p.lengths),
    text=words,
    in_rows=(
        "the sequences of a ragged batch, packed into one row: `2q2k_32q1s1k` is 2 sequences of"
        " 2048 tokens and 32 of 1024 of which one is new; `seq_len` and `kv_seq_len` are the"
        ' sums. "" if the batch is not ragged; absent in earlier versions'
    ),
    opt_in=True,
)
