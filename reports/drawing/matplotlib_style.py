"""matplotlib as pictures need it: silent, the same on every machine, and only when one is drawn."""

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STYLE: Mapping[Any, Any] = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "attnbench",
    "text.parse_math": False,  # a backend may be called $x$
}
FOLDERS = (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))


@contextmanager
def drawing() -> Iterator[None]:
    """With its defaults and this style, whatever the user's are; glyphs that its font lacks are no
    matter: a browser has others.
    """
    _import()
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def _import() -> None:
    """At its first import it lists all fonts in a file of the user's home, and says so if it
    cannot. Without that file it lists its own fonts alone, in a folder that is gone afterwards.
    """
    if "matplotlib.font_manager" in sys.modules or "MPLCONFIGDIR" in os.environ or _has_fonts():
        return
    with TemporaryDirectory() as folder:
        own = {"MPLCONFIGDIR": folder, "MPL_IGNORE_SYSTEM_FONTS": "1"}
        os.environ.update(own)
        try:
            import matplotlib.font_manager  # noqa: F401 - read once for the process
        finally:
            for name in own:
                del os.environ[name]


def _has_fonts() -> bool:
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises without a home
    config, cache = (
        Path(os.environ.get(name) or Path(home, folder), "matplotlib") for name, folder in FOLDERS
    )
    is_writable = all(os.access(folder, os.W_OK) for folder in (config, cache))
    return is_writable and any(cache.glob("fontlist-*.json"))
