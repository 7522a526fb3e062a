"""What disturbed a case while it was measured, and could explain that it is slow."""

from math import log

from ..ratio import in_most
from .case_samples import CaseSamples

CLOCK_STEP_RATIO = 0.02  # a GPU's clock moves in steps of about 1 %


def disturbances(slow: CaseSamples, fast: CaseSamples, *, paired: bool, alike: bool) -> list[str]:
    """Reasons that alone could explain why the slow side is slow.

    `paired`: a lower clock is no reason, since a backend may cause it itself. `alike`: blocks that
    were measured alternately are disturbed alike, and only what disturbed one side and not the
    other is a reason.
    """

    def disturbed(blocks: str) -> bool:
        is_slow, is_fast = (in_most(getattr(case, blocks), case.blocks) for case in (slow, fast))
        return is_slow and not (alike and is_fast)

    codes = ["contended"] if disturbed("contended_blocks") else []
    codes += ["throttled"] if disturbed("throttled_blocks") else []
    if (
        not paired
        and slow.clock_mhz
        and fast.clock_mhz
        and log(fast.clock_mhz / slow.clock_mhz) > CLOCK_STEP_RATIO
    ):
        codes.append("clocks_differ")
    return codes
