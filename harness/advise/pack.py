"""What the advise pack adds to the command line: `attnbench advise`."""

from ..cli.verbs import MEASURE
from ..run.packs import Pack, PackVerb
from .verb import advise

PACK = Pack(
    verbs=(
        PackVerb(
            name="advise",
            command=advise,
            panel=MEASURE,
            examples=(
                "attnbench advise llama-3-8b --context 8k --memory-gib 24",
                "attnbench advise ./my-model --context 32k,128k --measure -o advice.html",
            ),
        ),
    )
)
