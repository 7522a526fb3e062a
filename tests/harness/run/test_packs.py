"""Nothing of the core imports a pack: an option that asks for it does."""

import sys

import pytest

from attnbench.harness.studies import every
from tests.conftest import environment, ran
from tests.harness.run.small_runs import QUICK, axes

PACKS = ("advise", "fleet", "heads", "models", "pytest_plugin")


@pytest.mark.long
def test_a_run_of_cases_loads_no_pack(tmp_path) -> None:
    program = """
import sys
from attnbench.harness.verbs.app import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("attnbench.harness.")), sep="\\n")
"""
    flags = [sys.executable, "-c", program, "run", *axes("naive,sdpa"), *QUICK, "--quiet"]
    done = ran(flags, cwd=tmp_path, env=environment(None), check=True)
    loaded = [name.split(".")[2:] for name in done.stdout.split() if "harness." in name]
    assert {"run", "verbs"} <= {place for place, *_ in loaded}
    assert not {*PACKS} & {place for place, *_ in loaded}
    assert not {*every()} & {place[-1] for place in loaded}
