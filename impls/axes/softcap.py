"""A cap of the scores, as Gemma 2 has it (arXiv:2408.00118, section 2)."""

from math import inf
from typing import TYPE_CHECKING

from ..problem_fields import ProblemFields
from .axis import Axis

if TYPE_CHECKING:
    from torch import Tensor


def _check(p: ProblemFields) -> None:
    if not 0 <= p.softcap < inf:
        raise ValueError(f"softcap is {p.softcap}; wanted a positive number, or 0 for none")


def _scores(p: ProblemFields, s: "Tensor") -> "Tensor":
    return (s / p.softcap).tanh() * p.softcap


SOFTCAP = Axis(
    "Cap c of the scores, c * tanh(score / c) of the scaled score, before the mask (Gemma 2);"
    " 0 is none.",
    option="Caps of the scores, as 50 (Gemma 2); 0, none, if not given.",
    scenario_wide=True,
    part=lambda p: f"cap{p.softcap:g}" if p.softcap else "",
    text=lambda value: f"softcap\u00a0{value:g}" if value else "",
    in_rows="the scaled scores s became `softcap` * tanh(s / `softcap`); 0 for none",
    opt_in=True,
    check=_check,
    scores=_scores,
    pair_exps=1,
)
