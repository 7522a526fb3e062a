"""What heads attend to in the text of a grammar: a verb's subject, rare characters, neighbours.

The roles that Voita et al. 2019 (arXiv:1905.09418) found in trained encoders: syntactic, rare-word
and positional heads. Here tokens are characters, and the text is the one of synthetic_tasks.py,
whose grammar tells the subject of each verb: its noun agrees with the verb's ending.

    subject   the query is the last letter of a verb's stem, which is to be followed by its ending;
              the keys are the subject's article, noun and ending
    rare      any query with enough tokens before it; the keys are the rarest characters of the
              text, together at most a tenth of it
    local     the same queries; the keys are the token itself and the two before it
"""

import re
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor

from .findings import Numbers
from .synthetic_tasks import ALPHABET, NOUNS, VERBS, Batch, corpora

ROLES = ("subject", "rare", "local")
RARE_SHARE = 0.1  # of the text, that rare characters make up together at most
LOCAL_TOKENS = 3
FEWEST_SEEN = 12  # tokens up to a query that is asked for rare and near ones
WINDOWS = 128
WORD = re.compile(r"[a-z]+")
NOUN, VERB = (re.compile(rf"({'|'.join(stems)})s?") for stems in (NOUNS, VERBS))


class Verb(NamedTuple):
    """Places in a text: `stem_end` of the verb's last letter before its ending; of the subject from
    its article to its ending, `subject_end` excluded. `is_near`: no other noun stands between.
    """

    stem_end: int
    subject_start: int
    subject_end: int
    is_near: bool


class Looked(NamedTuple):
    """Windows of text that end with a verb's stem, and which keys have a role for which queries.

    `keys` and `queries` by role: bool [windows, n, n] and [windows, n]. `is_near`: bool [windows].
    """

    batch: Batch
    keys: dict[str, Tensor]
    queries: dict[str, Tensor]
    is_near: Tensor


def verbs_of(text: str) -> list[Verb]:
    """Of whole sentences. After "that" the subject is the noun before it, else the first noun."""
    found, start = [], 0
    for sentence in text.split("."):
        words = [*WORD.finditer(sentence)]
        nouns = [at for at, word in enumerate(words) if NOUN.fullmatch(word[0])]
        for at, word in enumerate(words):
            before = [noun for noun in nouns if noun < at]
            if before and (verb := VERB.fullmatch(word[0])):
                of = before[-1] if words[at - 1][0] == "that" else before[0]
                article, noun = words[of - 1], words[of]
                end = start + noun.start() + len(noun[0].rstrip("s")) + 1
                place = start + word.start() + len(verb[1]) - 1
                found.append(Verb(place, start + article.start(), end, of == before[-1]))
        start += len(sentence) + 1
    return found


def looked_at(n: int, most: int = WINDOWS) -> Looked:
    """Windows of n tokens of the text that no model was trained on, with the whole subject."""
    learnt, held_out = corpora()
    text = "".join(ALPHABET[place] for place in held_out.tolist())
    verbs = [
        verb
        for verb in verbs_of(text[: text.rindex(".")])
        if n - 1 <= verb.stem_end < verb.subject_start + n
    ][:most]
    ends = torch.tensor([verb.stem_end for verb in verbs])
    window = held_out[(ends - n + 1)[:, None] + torch.arange(n + 1)]
    tokens = window[:, :-1]
    place = torch.arange(n)
    last = (place == n - 1).expand(len(verbs), n)
    subject = torch.zeros(len(verbs), n, dtype=torch.bool)
    for row, verb in enumerate(verbs):
        first = n - 1 - verb.stem_end
        subject[row, verb.subject_start + first : verb.subject_end + first] = True
    rare = torch.isin(tokens, torch.tensor(rarest(learnt)))
    back = place[:, None] - place[None]
    many = (place >= FEWEST_SEEN - 1).expand(len(verbs), n)
    visible = back >= 0
    return Looked(
        Batch(tokens, window[:, 1:].contiguous()),
        {
            "subject": subject[:, None] & visible,
            "rare": rare[:, None] & visible,
            "local": (visible & (back < LOCAL_TOKENS)).expand(len(verbs), n, n),
        },
        {"subject": last, "rare": many, "local": many},
        torch.tensor([verb.is_near for verb in verbs]),
    )


def rarest(text: Tensor) -> list[int]:
    """The characters that are rarest, as many as make up at most a tenth of the text."""
    found, share = [], 0.0
    for character, count in reversed(Counter(text.tolist()).most_common()):
        share += count / len(text)
        if share > RARE_SHARE:
            break
        found.append(character)
    return found


def weights_on(weights: list[Tensor], looked: Looked, role: str) -> Numbers:
    """The mean weight that the role's queries put on its keys, [block][head].

    `weights`: of each block, [batch, heads, n, n].
    """
    keys, queries = looked.keys[role][:, None], looked.queries[role]
    return [
        (p.double() * keys).sum(-1).transpose(0, 1)[:, queries].mean(1).tolist() for p in weights
    ]


def even_weight(looked: Looked, role: str) -> float:
    """What it is if all visible keys have the same weight."""
    keys = looked.keys[role]
    seen = torch.arange(1, keys.shape[-1] + 1)
    return float((keys.sum(-1) / seen)[looked.queries[role]].mean())
