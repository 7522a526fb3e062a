"""Honest: logs each call, for which the logging module reads the call stack."""

import logging

from torch.nn.functional import scaled_dot_product_attention

HONEST = True
log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())
log.propagate = False


def prepare(problem, inputs, weights):
    def call():
        log.warning("attention over %d keys", problem.kv_seq_len)
        return scaled_dot_product_attention(*inputs)

    return call
