"""matplotlib as pictures need it: silent, the same on every machine, and only when one is drawn."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

STYLE: Mapping[Any, Any] = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "attnbench",
    "text.parse_math": False,  # a backend may be called $x$
}


@contextmanager
def drawing() -> Iterator[None]:
    """With its defaults and this style, whatever the user's are.

    It says nothing of a home where it cannot keep its list of fonts (it takes a folder that is gone
    at exit), nor of letters that its font lacks: browsers have others.
    """
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib as mpl

        with mpl.rc_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            yield
    finally:
        log.setLevel(level)
