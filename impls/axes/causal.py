"""Whether later keys are hidden, and from which corner the triangle of the others starts."""

from ..problem_fields import ProblemFields
from .axis import Axis


def _part(p: ProblemFields) -> str:
    if not p.causal:
        return ""
    return "causal" if p.kv_seq_len == p.seq_len else f"causal_{p.causal_align}"


def _check(p: ProblemFields) -> None:
    if p.causal_align and not p.causal:
        raise ValueError("causal_align without causal; set causal: true, or leave causal_align out")
    if p.causal and not p.causal_align and p.kv_seq_len not in (0, p.seq_len):
        raise ValueError(
            f"causal with kv_seq_len ({p.kv_seq_len}) != seq_len ({p.seq_len}) is ambiguous; set"
            " causal_align to top_left or bottom_right"
        )


CAUSAL = Axis(
    "Whether a token attends only to itself and to earlier tokens.",
    option="Causal mask: hide later tokens.",
    given=False,
    scenario_wide=True,
    part=_part,
    text=lambda value: "causal" if value else "not causal",
    in_rows="whether a query sees only keys up to its own position",
)
CAUSAL_ALIGN = Axis(
    "Corner at which the causal triangle starts; required if kv_seq_len differs from seq_len.",
    scenario_wide=True,
    text=lambda value: f"aligned {value}",
    usual=lambda of: "top_left" if of["causal"] and of["kv_seq_len"] == of["seq_len"] else "",
    goes_with="causal",
    in_rows='`top_left` or `bottom_right`; "" if not causal',
    check=_check,
    filled=lambda p: "top_left" if p.causal and p.kv_seq_len == p.seq_len else p.causal_align,
)
