"""A cap of the scores, as Gemma 2 has it (arXiv:2408.00118, section 2)."""

from math import inf

from .axis import Axis

SOFTCAP = Axis(
    "Cap c of the scores, c * tanh(score / c) of the scaled score, before the mask (Gemma 2);"
    " 0 is none.",
    option="Caps of the scores, such as 50 (Gemma 2; default: none).",
    scenario_wide=True,
    part=lambda p: f"cap{p.softcap:g}" if p.softcap else "",
    text=lambda value: f"softcap\u00a0{value:g}" if value else "",
    in_rows="the scaled scores s became `softcap` * tanh(s / `softcap`); 0 for none",
    opt_in=True,
    valid=lambda cap: 0 <= cap < inf,
    wanted="a positive number, or 0 for none",
    scores=lambda p, s: (s / p.softcap).tanh() * p.softcap,
    pair_exps=1,
)
