"""What the advise pack adds to the command line: `attnbench advise`."""

from ..cli.verbs import FIRST_SCREEN
from ..run.packs import Pack, PackVerb
from .verb import advise

PACK = Pack(
    verbs=(
        PackVerb(
            name="advise",
            command=advise,
            panel=FIRST_SCREEN,
            examples=(
                "attnbench advise llama-3-8b --context 8k --memory-gib 24",
                "attnbench advise ./my-model --context 32k,128k --measure -o advice.html",
            ),
        ),
    ),
)
