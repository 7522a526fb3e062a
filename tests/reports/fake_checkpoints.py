"""Findings of the study checkpoint_heads, made up."""

from pathlib import Path
from typing import Any

from tests.reports.fake_studies import with_study
from tests.reports.fake_trainings import shifted


def looked_at(name: str = "mine", **other: Any) -> dict[str, Any]:
    """Two blocks of two heads; the last one is missed by 0.5 nats, and continues what was said."""
    whole = [1.0, 1.1, 0.9, 1.0]
    rises = [[0.0, 0.05], [-0.01, 0.5]]
    wobble = [0.01, -0.01, 0.02, -0.02]
    per_head = {
        "entropy_nats": [[2.0, 1.5], [1.0, 0.5]],
        "distance_tokens": [[4.0, 3.0], [2.0, 1.0]],
        "distance_variance": [[0.1, 0.1], [0.1, 0.1]],
        "previous_share": [[0.1, 0.9], [0.2, 0.1]],
        "induction_share": [[0.0, 0.1], [0.2, 0.8]],
        "output_rank": [[3.0, 3.0], [3.0, 3.0]],
        "pattern_difference": [[0.3, 0.3], [0.4, 0.4]],
        "output_similarity": [[0.5, 0.5], [0.6, 0.6]],
        "nearest_difference": [[0.3, 0.3], [0.4, 0.4]],
        "nearest_similarity": [[0.5, 0.5], [0.6, 0.6]],
    }
    return {
        "checkpoint": name,
        "format": "transformers",
        "model_type": "gpt2",
        "d_model": 32,
        "layers": [0, 1],
        "layer_heads": [2, 2],
        "kv_heads": 2,
        "vocabulary": 50,
        "parameter_count": 12345,
        "trained_task": None,
        "trained_steps": None,
        "tokens": 6,
        "token_source": "3 random tokens, said twice",
        "sequence_loss_nats": whole,
        "accuracy_ratio": 0.25,
        **per_head,
        "removal_sequences": 4,
        "single_sequence_loss_nats": [
            [
                [loss + rise + more for loss, more in zip(whole, wobble, strict=True)]
                for rise in layer
            ]
            for layer in rises
        ],
        "pruned_heads_left": [4, 3, 0],
        "pruned_sequence_loss_nats": [whole, [one + 0.1 for one in whole], [2.0, 2.1, 2.0, 2.2]],
        "removal_reason": None,
        "sentence": list("abcabc"),
        "drawn_heads": [[0, 1], [1, 1]],
        "weight_rows": [shifted(1), shifted(2)],
        **other,
    }


def with_checkpoints(parent: Path, findings: list[Any], **row: Any) -> Path:
    """The run quickstart with one row of the study."""
    case, part = "study-checkpoint_heads-mine", {"checkpoint": "mine"}
    return with_study(parent, "checkpoint_heads", findings, case, part=part, **row)
