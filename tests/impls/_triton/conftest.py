import json
import os
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import ROOT, environment, ran

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton: pip install triton"
)


def child(module: str, *arguments: str, **variables: str) -> Any:
    """The output of a process that imports triton, which this one never does."""
    path = os.pathsep.join([str(ROOT / ".package"), str(ROOT)])
    interpreting = str(int(module.startswith("interpreted")))
    extra = {"PYTHONPATH": path, "TRITON_INTERPRET": interpreting, **variables}
    done = ran(
        [sys.executable, "-m", f"tests.impls._triton.{module}", *arguments],
        env=environment(extra),
        cwd=ROOT,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
