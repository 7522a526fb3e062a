"""A child for tests of the parent's end: it does what each request says."""

import os
import signal
import subprocess
import sys
import time

from attnbench.harness.probes.gpu_memory import own_run
from attnbench.harness.process.child import Parent


def main() -> None:
    parent = Parent()
    if parent.arguments == ["dies at once"]:
        print("last words")
        sys.exit(3)
    parent.say({"event": "ready", "arguments": parent.arguments})
    for request in parent.requests():
        if request["op"] == "echo":
            parent.say({"event": "echoed", "what": request["what"]})
        elif request["op"] == "escape":
            parent.say({"event": "escaped", "pid": escaped()})
        elif request["op"] == "own_run":
            parent.say({"event": "run", "pids": sorted(own_run())})
        elif request["op"] == "sleep":
            time.sleep(600)
        elif request["op"] == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif request["op"] == "abort":
            print("dying", flush=True)
            os.abort()
        elif request["op"] == "die":
            os.kill(os.getpid(), request["signal"])
        elif request["op"] == "end":
            sys.exit(0)
        elif request["op"] == "babble":
            os.write(int(sys.argv[2]), b"nonsense\n")
        parent.say({"event": "done"})


def escaped() -> int:
    """A grandchild in a session of its own, without our environment, whose parent has ended.

    It ignores SIGTERM and holds whatever descriptors it got.
    """
    ours, its = os.pipe()
    os.set_inheritable(its, True)
    program = f'trap "" TERM HUP; echo $$ >&{its}; exec {its}>&-; sleep 60'
    start = f"exec env -i setsid sh -c '{program}' >/dev/null 2>&1"
    subprocess.run(["sh", "-c", f"({start}) & exit 0"], close_fds=False, check=True)
    return int(os.read(ours, 100))


if __name__ == "__main__":
    main()
