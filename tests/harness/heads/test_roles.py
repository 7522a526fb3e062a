"""harness/heads/roles.py: which characters have a role, and the weight heads put on them."""

import torch

from attnbench.harness.heads import roles
from attnbench.harness.heads.roles import even_weight, looked_at, verbs_of, weights_on
from attnbench.harness.heads.synthetic_tasks import ALPHABET, corpora

N = 32
TEXT = "the cats that see a dog like the pig. a hen sees the cows."


def test_a_verb_after_that_has_the_noun_before_it_and_any_other_the_first_noun() -> None:
    found = [
        (TEXT[verb.stem_end - 2 : verb.stem_end + 1], TEXT[verb.subject_start : verb.subject_end])
        for verb in verbs_of(TEXT)
    ]
    assert found == [("see", "the cats"), ("ike", "the cats"), ("see", "a hen ")]
    assert [verb.is_near for verb in verbs_of(TEXT)] == [True, False, True]


def test_windows_end_with_a_stem_whose_ending_agrees_with_the_marked_subject() -> None:
    looked = looked_at(N)
    text = ["".join(ALPHABET[one] for one in row) for row in looked.batch.tokens.tolist()]
    assert 10 < int((~looked.is_near).sum()) < len(text) == roles.WINDOWS
    for row, (tokens, target) in enumerate(zip(text, looked.batch.targets[:, -1], strict=True)):
        marked = looked.keys["subject"][row, -1]
        noun = "".join(one for one, yes in zip(tokens, marked, strict=True) if yes)
        assert noun.startswith(("a ", "the "))
        assert noun.endswith("s") is not (ALPHABET[target] == "s"), (tokens, noun)
        assert tokens.endswith(roles.VERBS)
        assert looked.queries["subject"][row].tolist() == [False] * (N - 1) + [True]


def test_rare_characters_are_at_most_a_tenth_of_the_text_and_one_more_would_be_above() -> None:
    text = corpora()[0]
    counts = sorted(int((text == one).sum()) for one in set(text.tolist()))
    rare = [int((text == one).sum()) for one in roles.rarest(text)]
    assert rare == counts[: len(rare)]
    assert sum(rare) <= len(text) / 10 < sum(counts[: len(rare) + 1])


def test_even_weights_and_a_head_that_looks_at_its_own_token_are_known() -> None:
    looked = looked_at(N)
    windows = len(looked.batch.tokens)
    even = torch.ones(N, N, dtype=torch.float64).tril()
    even = even / even.sum(-1, keepdim=True)
    own = torch.eye(N, dtype=torch.float64)
    weights = torch.stack([even, own]).expand(windows, 2, N, N)
    for role in roles.ROLES:
        ((evenly, owned),) = weights_on([weights], looked, role)
        assert abs(evenly - even_weight(looked, role)) < 1e-6
        assert role != "local" or owned == 1
        assert role != "subject" or owned == 0
