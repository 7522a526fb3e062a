"""A correct backend that leaves a process behind; its pid goes to the file FORKS_PID."""

import os
import subprocess
from pathlib import Path


def prepare(problem, inputs, weights):
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    Path(os.environ["FORKS_PID"]).write_text(str(child.pid))
    q, k, v = inputs
    return lambda: (q @ k.mT * problem.scale).softmax(-1) @ v
