"""English-like sentences from a small grammar, drawn with a fixed seed.

    sentence  = phrase verb phrase "."            the verb agrees with the first phrase
    phrase    = article noun [ "that" verb phrase ]   singular or plural

So some characters follow from the last few (spelling), and one, the verb's ending, from a noun
that may stand a whole clause before it.
"""

from random import Random

import torch
from torch import Tensor

SEED = 20  # of the text; it is the same in every run
LEARNT, HELD_OUT = 16_000, 4_000  # characters
NOUNS = ("cat", "dog", "cow", "pig", "hen")
VERBS = ("see", "like", "hear", "lead")
CLAUSE_SHARE = 0.4
ALPHABET = tuple(sorted(set("".join((*NOUNS, *VERBS, "the a that s. ")))))


def corpora() -> tuple[Tensor, Tensor]:
    """Characters to learn from and others, int64 places in ALPHABET."""
    random = Random(SEED)
    place = {character: number for number, character in enumerate(ALPHABET)}
    learnt, held_out = (
        torch.tensor([place[character] for character in text(random, size)])
        for size in (LEARNT, HELD_OUT)
    )
    return learnt, held_out


def text(random: Random, size: int) -> str:
    """Sentences until there are `size` characters; the last one is cut."""
    found = ""
    while len(found) < size:
        found += sentence(random) + " "
    return found[:size]


def sentence(random: Random) -> str:
    subject, plural = _phrase(random, clause=random.random() < CLAUSE_SHARE)
    return f"{subject} {_verb(random, plural)} {_phrase(random, clause=False)[0]}."


def _phrase(random: Random, *, clause: bool) -> tuple[str, bool]:
    """Words, and whether they are plural."""
    plural = random.random() < 0.5
    noun = random.choice(NOUNS) + ("s" if plural else "")
    words = f"the {noun}" if plural or random.random() < 0.5 else f"a {noun}"
    if clause:
        words += f" that {_verb(random, plural)} {_phrase(random, clause=False)[0]}"
    return words, plural


def _verb(random: Random, plural: bool) -> str:
    return random.choice(VERBS) + ("" if plural else "s")
