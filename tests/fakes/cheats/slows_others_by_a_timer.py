"""Sets a timer whose handler wastes half of the time, except while it is called itself."""

import signal
import time

from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the baseline beside it is slower than in its own worker, and the answer says so"
EVERY_S = 0.002


def waste(*_):
    until_s = time.monotonic() + EVERY_S / 2
    while time.monotonic() < until_s:
        pass


def prepare(problem, inputs, weights):
    signal.signal(signal.SIGALRM, waste)

    def call():
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        result = scaled_dot_product_attention(*inputs)
        signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
        return result

    return call
