"""What every file in harness/studies/ fulfils, and studies in a run."""

from math import prod

import pytest

from attnbench.harness import studies

pytestmark = pytest.mark.long


def test_what_is_declared_without_importing_is_what_the_file_has() -> None:
    for name in studies.names():
        module, declared = studies.load(name), studies.declared(name)
        assert declared.axes == getattr(module, "PARTS", {})
        assert len(declared.parts) == prod(map(len, declared.axes.values()))
