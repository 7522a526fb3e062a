"""Masks beside `causal`, each a file of this folder, found by its name. Importing them imports no
torch.

A file's docstring says which keys a query sees; the file defines what `Mask` lists, each under the
name of the field (constants in capitals). The last five kinds in `MASKS` place query i at key i +
causal_offset, its own. `causal` removes later keys from every kind, and is not in `matrix`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from ._shared import Problem, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """What a file defines. What has a default may be left out.

    `place`: where it stands in lists. `window`: what the size of a mask that has one counts.
    `is_matrix`: backends get it as a matrix, which a caller makes once.
    `rule(problem, entry, own, key)`: whether the queries that stand at the keys `own` [n, 1] see
    `key` [n_kv] in this entry of the batch, as the docstring says it. The reference asks it.
    `matrix(problem, rows, keys, own, entries)`: the same of queries `rows` [n], as bool [entries or
    1, n or 1, n_kv], with as few bytes as it can. Backends ask it, or without it
    `by_distance(problem, distance)`, the matrix from how far keys are after the query's own, which
    it overwrites, of a mask that depends on that alone.
    `band(problem, own)`: the first and the last key that a position sees, as numbers or tensors, of
    a mask that leaves no gap between them.
    `pairs`: the (query, key) pairs that it leaves in the whole batch, by formula, every query that
    has a key under `causal` among them. Without it pairs, queries and keys are counted in the
    matrix. `keys`: likewise those that some query sees; without it those that `causal` leaves.
    """

    place: int
    rule: Callable[[Problem, int, Tensor, Tensor], Tensor]
    matrix: Callable[[Problem, Tensor, Tensor, Tensor, Sequence[int]], Tensor] | None = None
    pairs: Callable[[Problem], int] | None = None
    keys: Callable[[Problem], int] | None = None
    window: str = ""
    default_window: Callable[[int], int] = lambda n_kv: 0
    band: Callable[[Problem, Any], tuple[Any, Any]] | None = None
    by_distance: Callable[[Problem, Tensor], Tensor] | None = None
    is_matrix: bool = False


def _read(name: str) -> Mask:
    file = vars(import_module(f".{name}", __name__))
    defined = {key.lower(): value for key, value in file.items()}
    return Mask(**{one.name: defined[one.name] for one in fields(Mask) if one.name in defined})


_FILES = {path.stem: _read(path.stem) for path in Path(__file__).parent.glob("[!_]*.py")}
MASKS: dict[str, Mask] = dict(sorted(_FILES.items(), key=lambda one: one[1].place))
WINDOWED = tuple(name for name, mask in MASKS.items() if mask.window)
BY_DISTANCE = tuple(name for name, mask in MASKS.items() if mask.by_distance)


def is_causal(problem: Problem) -> bool:
    """torch's argument is_causal: the triangle starts at the top left, once empty rows are cut."""
    plain = problem.mask == "none" and not problem.lengths
    return plain and problem.causal and max(problem.causal_offset, 0) == 0


def needs_matrix(problem: Problem) -> bool:
    """Whether torch needs the mask as a matrix.

    It does for every mask but the triangle, and if the triangle starts further right: is_causal
    would then be wrong, unless the first query sees every key anyway.
    """
    if problem.mask != "none" or problem.lengths:
        return True
    return 0 < problem.causal_offset < problem.kv_seq_len - 1


def has_no_rule(problem: Problem) -> bool:
    """Whether the mask is a matrix that a caller makes (shared.mask_tensors.materialized_mask)."""
    return problem.mask != "none" and MASKS[problem.mask].is_matrix
