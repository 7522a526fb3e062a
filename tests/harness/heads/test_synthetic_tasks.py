"""harness/heads/synthetic_tasks.py: the answers are those of the questions, by plain Python."""

import pytest
import torch

from attnbench.harness.heads import synthetic_tasks
from attnbench.harness.heads.synthetic_tasks import BACK, TASKS, UNSCORED


def drawn(name: str, size: int = 20) -> list[tuple[list[int], list[int]]]:
    batch = TASKS[name].draw(torch.Generator().manual_seed(5), size)
    return list(zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True))


@pytest.mark.parametrize("name", TASKS)
def test_equal_seeds_give_equal_batches_and_others_do_not(name: str) -> None:
    one, same, other = (
        TASKS[name].draw(torch.Generator().manual_seed(seed), 4) for seed in (1, 1, 2)
    )
    assert torch.equal(one.tokens, same.tokens)
    assert torch.equal(one.targets, same.targets)
    assert not torch.equal(one.tokens, other.tokens)


def test_copy_begins_again_and_asks_only_what_was_seen() -> None:
    periods = set()
    for tokens, targets in drawn("copy"):
        period = tokens[1:].index(tokens[0]) + 1
        periods.add(period)
        for place, answer in enumerate(targets):
            known = period <= place < len(tokens) - 1
            assert answer == (tokens[place + 1] if known else UNSCORED)
            assert not known or answer == tokens[place + 1 - period]
    assert len(periods) > 2, "the distance must not be the same for all"


def test_six_relations_ask_for_every_bit_so_many_places_before() -> None:
    for tokens, targets in drawn("six_relations"):
        for place in range(max(BACK), len(tokens)):
            bits = [tokens[place - places] for places in BACK]
            assert f"{targets[place]:06b}" == "".join(map(str, bits))


def test_the_text_asks_for_the_next_character_and_holds_some_back() -> None:
    for tokens, targets in drawn("text"):
        assert targets[:-1] == tokens[1:]
    learnt, held_out = text()[: synthetic_tasks.LEARNT], text()[synthetic_tasks.LEARNT :]
    assert len(held_out) == synthetic_tasks.HELD_OUT
    drawn_later = TASKS["text"].held_out(torch.Generator().manual_seed(5), 20).tokens.tolist()
    assert all(spelled(tokens) in held_out for tokens in drawn_later)
    assert all(spelled(tokens) in learnt for tokens, _ in drawn("text"))
    windows = {learnt[place : place + 48] for place in range(len(learnt))}
    new = [held_out[place : place + 48] not in windows for place in range(len(held_out) - 48)]
    assert sum(new) > 0.9 * len(new), "the held-out text is another one"


def spelled(places: list[int]) -> str:
    return "".join(synthetic_tasks.ALPHABET[place] for place in places)


def text() -> str:
    return spelled(synthetic_tasks.corpus().tolist())


def test_verbs_of_the_grammar_agree_with_the_noun_they_belong_to() -> None:
    learnt = text()[: synthetic_tasks.LEARNT]
    sentences = [one.split() for one in learnt.split(". ")[:-1]]
    far = 0
    for words in sentences:
        plural = words[1].endswith("s")
        # After a clause, "that VERB ARTICLE NOUN", the verb follows six words behind the noun.
        verb = words[6] if "that" in words else words[2]
        far += "that" in words
        assert verb.endswith("s") is not plural, words
    assert len(sentences) > 100
    assert far > 20
