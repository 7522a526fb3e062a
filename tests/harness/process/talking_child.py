"""A child for tests of the parent's end: it does what each request says."""

import os
import signal
import subprocess
import sys
import time

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
        elif request["op"] == "spawn":  # a grandchild in a session of its own
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            parent.say({"event": "spawned", "pid": child.pid})
        elif request["op"] == "sleep":
            time.sleep(600)
        elif request["op"] == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif request["op"] == "abort":
            print("dying", flush=True)
            os.abort()
        elif request["op"] == "babble":
            os.write(int(sys.argv[2]), b"nonsense\n")
        parent.say({"event": "done"})


if __name__ == "__main__":
    main()
