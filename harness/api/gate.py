"""attnbench.gate and attnbench.compare."""

from ..verbs.compare import VERBS as COMPARE
from ..verbs.gate import VERBS as GATE
from ..verbs.request import function

assert COMPARE["compare"].answer
assert GATE["gate"].answer
compare = function(COMPARE["compare"].answer)
gate = function(GATE["gate"].answer, **GATE["gate"].python)
