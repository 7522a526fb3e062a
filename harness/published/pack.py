"""What the published pack adds: `attnbench published`, and names of tables in show, report and
compare.
"""

from ..cli.verbs import PAGES
from ..run.packs import Pack, PackVerb
from .names import PREFIX
from .verb import compare, like, published, report, show

PACK = Pack(
    verbs=(
        PackVerb(
            name="published",
            command=published,
            panel=PAGES,
            examples=(
                "attnbench published",
                "attnbench show published:cudnn-h200",
                "attnbench compare published:flashattention-a100 latest",
                "attnbench published --beside latest -o wall.html",
            ),
        ),
    ),
    prefix=PREFIX,
    shown=show,
    reported=report,
    compared=compare,
    likened=like,
)
