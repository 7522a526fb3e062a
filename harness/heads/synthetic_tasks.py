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
    """`vocabulary`: of tokens and of targets. `depth`: blocks that it needs. `draw`: a batch of so
    many sequences. `held_out`: the same of text that no batch of `draw` has; None if every batch is
    new.
    """

    vocabulary: int
    depth: int
    draw: Callable[[Generator, int], Batch]
    held_out: Callable[[Generator, int], Batch] | None = None


def task(name: str) -> Task:
    """Of sequences of TOKENS tokens. Raises KeyError for a name that the docstring above lacks."""
    return TASKS[name]()


def _majority() -> Task:
    def draw(generator: Generator, size: int) -> Batch:
        tokens = torch.randint(2, (size, TOKENS), generator=generator)
        ones = tokens.unfold(1, WINDOW, 1).sum(-1)
        return Batch(tokens, pad((ones > WINDOW // 2).long(), (WINDOW - 1, 0), value=UNSCORED))

    return Task(2, 1, draw)


def _six_relations() -> Task:
    """The answer is one number whose digits are the bits so many places before."""

    def draw(generator: Generator, size: int) -> Batch:
        tokens = torch.randint(2, (size, TOKENS), generator=generator)
        first = max(BACK)
        answer = torch.zeros(size, TOKENS - first, dtype=torch.int64)
        for places in BACK:
            answer = 2 * answer + tokens[:, first - places : TOKENS - places]
        return Batch(tokens, pad(answer, (first, 0), value=UNSCORED))

    return Task(2 ** len(BACK), 1, draw)


def _copy() -> Task:
    def draw(generator: Generator, size: int) -> Batch:
        low, high = PERIODS
        period = torch.randint(low, high + 1, (size, 1), generator=generator)
        once = torch.rand(size, COPIED, generator=generator).argsort(-1)
        place = torch.arange(TOKENS)[None]
        tokens = once.gather(1, place % period)
        after = pad(tokens[:, 1:], (0, 1), value=UNSCORED)
        return Batch(tokens, torch.where(place >= period, after, UNSCORED))

    return Task(COPIED, 2, draw)


def _text() -> Task:
    def draws(corpus: Tensor) -> Callable[[Generator, int], Batch]:
        def draw(generator: Generator, size: int) -> Batch:
            start = torch.randint(len(corpus) - TOKENS, (size, 1), generator=generator)
            window = corpus[start + torch.arange(TOKENS + 1)]  # [size, TOKENS + 1]
            return Batch(window[:, :-1], window[:, 1:].contiguous())

        return draw

    learnt, held_out = map(draws, corpora())
    return Task(len(ALPHABET), 2, learnt, held_out)


TASKS: dict[str, Callable[[], Task]] = {
    "majority": _majority,
    "six_relations": _six_relations,
    "copy": _copy,
    "text": _text,
}


# ---- text ----------------------------------------------------------------------------------------

TEXT_SEED = 20  # the text is the same in every run
NOUNS = ("cat", "dog", "cow", "pig", "hen")
VERBS = ("see", "like", "hear", "lead")
CLAUSE_SHARE = 0.4
ALPHABET = tuple(sorted(set("".join((*NOUNS, *VERBS, "the a that s. ")))))


def corpora() -> tuple[Tensor, Tensor]:
    """Characters to learn from and others, int64 places in ALPHABET, drawn with a fixed seed.

        sentence  = phrase verb phrase "."            the verb agrees with the first phrase
        phrase    = article noun [ "that" verb phrase ]   singular or plural

    So some characters follow from the last few (spelling), and one, the verb's ending, from a noun
    that may stand a whole clause before it.
    """
    random = Random(TEXT_SEED)
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
