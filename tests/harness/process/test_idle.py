"""Waiting for the threads of a process to sleep."""

import subprocess
import sys
import time

from attnbench.harness.process.idle import wait_until_idle

SPINS = """
import sys, threading
stop = threading.Event()
def spin():
    while not stop.is_set():
        pass
thread = threading.Thread(target=spin, name="odd) R name")
thread.start()
print("spins", flush=True)
sys.stdin.readline()
stop.set()
thread.join()
print("sleeps", flush=True)
sys.stdin.readline()
"""


def test_a_process_with_one_thread_that_spins_is_not_at_rest_until_it_sleeps():
    process = subprocess.Popen(
        [sys.executable, "-c", SPINS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "spins\n"
    start = time.monotonic()
    assert not wait_until_idle(process.pid, most_s=0.2)
    assert time.monotonic() - start >= 0.2
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "sleeps\n"
    assert wait_until_idle(process.pid, most_s=120)
    process.communicate("\n")
    assert wait_until_idle(process.pid, most_s=0), "one that has ended"
