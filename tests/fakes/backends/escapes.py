"""A correct backend that leaves a process behind in another session, without its environment, whose
parent has ended; its pid goes to the file ESCAPES_PID.
"""

import os
import subprocess


def prepare(problem, inputs, weights):
    program = f"echo $$ >>{os.environ['ESCAPES_PID']}; exec sleep 60"
    subprocess.run(["sh", "-c", f"env -i setsid sh -c '{program}' & exit 0"], check=True)
    q, k, v = inputs
    return lambda: (q @ k.mT * problem.scale).softmax(-1) @ v
