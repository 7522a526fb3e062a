"""A correct backend that appends a line of JSON to the file RECORDS in each call: a digest of its
inputs' values, and with how many threads torch computes.
"""

import hashlib
import json
import os
from pathlib import Path

import torch


def prepare(problem, inputs, weights):
    def call():
        q, k, v = inputs
        values = b"".join(x.detach().numpy().tobytes() for x in (q, k, v))
        line = {"values": hashlib.sha256(values).hexdigest(), "threads": torch.get_num_threads()}
        with Path(os.environ["RECORDS"]).open("a") as file:
            file.write(json.dumps(line) + "\n")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=problem.causal)

    return call
