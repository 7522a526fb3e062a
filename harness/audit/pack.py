"""What the audit pack adds to the command line: `attnbench kernels`."""

from ..cli.verbs import DEVELOP
from ..run.packs import Pack, PackVerb
from .verb import kernels_app

PACK = Pack(
    verbs=(PackVerb(name="kernels", command=kernels_app, panel=DEVELOP),),
)
