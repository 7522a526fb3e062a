"""torch.cuda without a GPU: a device that follows a script, with a clock that tests turn.

    with fake_cuda() as gpu:
        gpu.kernel_s["mm"] = 90e-6
        x = torch.ones(64, 64, device="cuda")

README.md says what it does as a GPU would, and what it does not.
"""

from .gpu import FakeGpu
from .install import fake_cuda
from .time import HandClock, RealClock, turned_by_hand

__all__ = ["FakeGpu", "HandClock", "RealClock", "fake_cuda", "turned_by_hand"]
