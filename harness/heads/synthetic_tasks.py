"""Sequences with a known structure, and the answers that a small decoder is to learn.

    majority        bits: which is the most frequent one of the last five?
    six_relations   bits: which stood 1, 2, 4, 7, 11 and 16 places before, in this order?
    copy            a sequence that begins again: which token comes next? Induction, as in Olsson
                    et al. 2022, arXiv:2209.11895; the period differs between sequences
    text            characters of sentences of a grammar: which comes next?

A head gives a query one weighted mean: six bits in one mean need six weights that differ from all
their sums. More heads need no such weights.
"""

from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

UNSCORED = -100  # as torch's cross_entropy has it
TOKENS = 24
COPIED = 8  # different tokens; a sequence uses each once before it begins again
PERIODS = (4, 8)
WINDOW = 5
BACK = (1, 2, 4, 7, 11, 16)
LEARNT, HELD_OUT = 16_000, 4_000  # characters of text


class Batch(NamedTuple):
    """Tokens and targets, both int64 [batch, n]; UNSCORED where nothing is asked."""

    tokens: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.tokens.to(device), self.targets.to(device))

    def part(self, first: int, end: int) -> "Batch":
        """Some of the sequences."""
        return Batch(self.tokens[first:end], self.targets[first:end])


class Task(NamedTuple):
    """`vocabulary`: of tokens and of targets. `depth`: blocks that it needs. It counts as learnt if
    `right_ratio` of the answers are right, above 1 to train for `limit_steps` whatever is answered.
    `draw`: a batch of so many sequences of TOKENS tokens. `held_out`: the same of text that no
    batch of `draw` has; None if every batch is new.
    """

    name: str
    vocabulary: int
    depth: int
    right_ratio: float
    limit_steps: int
    draw: Callable[[Generator, int], Batch]
    held_out: Callable[[Generator, int], Batch] | None = None


def _bits(generator: Generator, size: int) -> Tensor:
    return torch.randint(2, (size, TOKENS), generator=generator)


def _majority(generator: Generator, size: int) -> Batch:
    tokens = _bits(generator, size)
    ones = tokens.unfold(1, WINDOW, 1).sum(-1)
    return Batch(tokens, pad((ones > WINDOW // 2).long(), (WINDOW - 1, 0), value=UNSCORED))


def _six_relations(generator: Generator, size: int) -> Batch:
    """The answer is one number whose digits are the bits so many places before."""
    tokens, first = _bits(generator, size), max(BACK)
    answer = torch.zeros(size, TOKENS - first, dtype=torch.int64)
    for places in BACK:
        answer = 2 * answer + tokens[:, first - places : TOKENS - places]
    return Batch(tokens, pad(answer, (first, 0), value=UNSCORED))


def _copy(generator: Generator, size: int) -> Batch:
    low, high = PERIODS
    period = torch.randint(low, high + 1, (size, 1), generator=generator)
    once = torch.rand(size, COPIED, generator=generator).argsort(-1)
    place = torch.arange(TOKENS)[None]
    tokens = once.gather(1, place % period)
    after = pad(tokens[:, 1:], (0, 1), value=UNSCORED)
    return Batch(tokens, torch.where(place >= period, after, UNSCORED))


def _text(generator: Generator, size: int, part: slice = slice(LEARNT)) -> Batch:
    characters = corpus()[part]
    start = torch.randint(len(characters) - TOKENS, (size, 1), generator=generator)
    window = characters[start + torch.arange(TOKENS + 1)]  # [size, TOKENS + 1]
    return Batch(window[:, :-1], window[:, 1:].contiguous())


# ---- text ----------------------------------------------------------------------------------------

TEXT_SEED = 20  # the text is the same in every run
NOUNS = ("cat", "dog", "cow", "pig", "hen")
VERBS = ("see", "like", "hear", "lead")
CLAUSE_SHARE = 0.4
ALPHABET = sorted(set("".join((*NOUNS, *VERBS, "the a that s. "))))


@cache
def corpus() -> Tensor:
    """LEARNT characters and HELD_OUT others, int64 places in ALPHABET, drawn with a fixed seed.

        sentence  = phrase verb phrase "."            the verb agrees with the first phrase
        phrase    = article noun [ "that" verb phrase ]   singular or plural

    So some characters follow from the last few (spelling), and one, the verb's ending, from a noun
    that may stand a whole clause before it.
    """
    random, text = Random(TEXT_SEED), ""
    for end in (LEARNT, LEARNT + HELD_OUT):
        while len(text) < end:
            subject, plural = _phrase(random, clause=random.random() < CLAUSE_SHARE)
            text += f"{subject} {_verb(random, plural)} {_phrase(random, clause=False)[0]}. "
        text = text[:end]
    return torch.tensor([ALPHABET.index(one) for one in text])


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


TASKS = {
    one.name: one
    for one in (
        Task("majority", 2, 1, 0.98, 800, _majority),
        Task("six_relations", 2 ** len(BACK), 1, 0.98, 3000, _six_relations),
        Task("copy", COPIED, 2, 0.98, 800, _copy),
        # of about 0.80 that can be known
        Task("text", len(ALPHABET), 2, 0.78, 1200, _text, partial(_text, part=slice(LEARNT, None))),
    )
}
