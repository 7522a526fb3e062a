"""Statements on what heads and attention do, beside those on what they cost."""

from . import facts, generation, quality
from .statement import Statement

_TRAINED = "studies: [trained_heads], as in the scenario what_heads_learn"
_SMALL = "holds for small decoders trained for minutes"

QUALITY: dict[str, Statement] = {
    "Q1": Statement(
        statement="Heads learn different patterns; some are local, others global.",
        tested=(
            "trained maps of 8 heads: the distance from nearest to farthest head and the difference"
            f" of patterns both grow by training, over seeds; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.different_patterns(findings),
        study="trained_heads",
    ),
    "Q2": Statement(
        statement="Some heads learn similar patterns.",
        tested=(
            "16 heads: at least one has another within 0.05 bits (Jensen-Shannon) or with outputs"
            f" of CKA above 0.9, in every seed; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.similar_patterns(findings),
        study="trained_heads",
    ),
    "Q3": Statement(
        statement="Removing single heads has little effect.",
        tested=(
            "8 heads per block, one removed: the median rise of the loss is at most 10 % of the"
            f" rise without any head; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.single_heads(findings),
        study="trained_heads",
    ),
    "Q4": Statement(
        statement="One or two heads are too few, 8 to 16 are best, and more bring little.",
        tested=(
            "accuracy over heads at equal parameters and steps, seed by seed: 1 and 2 worse than"
            f" the best by 2 points, 8 or 16 within 2 points of it; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.best_number(findings),
        study="trained_heads",
    ),
    "Q5": Statement(
        statement="With one head, averaging prevents attending to several positions at once.",
        tested=(
            "tasks that need two and six positions: 2 and 8 heads better than one by 2 points, seed"
            f" by seed; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.one_head_averages(findings),
        study="trained_heads",
    ),
    "Q6": Statement(
        statement="More heads are less sensitive to noise.",
        tested=(
            "points of accuracy that noise on embedded tokens takes, mean over its levels, one head"
            f" against 8, on tasks where both are equally accurate without it; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.noise(findings),
        study="trained_heads",
    ),
    "Q7": Statement(
        statement="Too many heads overfit.",
        tested=(
            "loss on new text less that on known text, the most heads against one, seed by seed;"
            f" {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.too_many_overfit(findings),
        study="trained_heads",
    ),
    "Q8": Statement(
        statement="Scaling by 1/sqrt(d_k) keeps gradients alive.",
        tested=(
            "derivative of the softmax at random queries and keys over d_k: falls without the"
            " factor, is the larger one and does not fall with it"
        ),
        to_run="studies: [score_scale]",
        test=lambda _, findings: facts.softmax_gradient(findings),
        study="score_scale",
    ),
    "Q9": Statement(
        statement=(
            "Gradients are stable through attention and fade exponentially through a recurrent"
            " layer."
        ),
        tested=(
            "ln of the norm of d loss / d x_t over the distance, fitted per draw of the weights:"
            " within 1 % per token for attention, falling by more for a GRU; at first weights, and"
            " trained to find one marked token"
        ),
        to_run="studies: [gradient_distance, trained_gradients]",
        test=lambda _, findings: facts.gradient_over_distance(findings),
        study="gradient_distance",
    ),
    "Q10": Statement(
        statement=(
            "The path between two tokens is O(1) for attention, O(N) for a recurrent layer, O(N/k)"
            " or O(log N) for convolutions."
        ),
        tested="exact count of operations on the shortest way through autograd's graph, over N",
        to_run="studies: [gradient_distance]",
        test=lambda _, findings: facts.path_length(findings),
        study="gradient_distance",
    ),
    "Q11": Statement(
        statement="A recurrent layer is cheaper than attention for N < d.",
        tested=(
            "FLOPs of a GRU, 12 B N d², and its time, against an attention layer of the same width"
            " at N < d"
        ),
        to_run="backend rnn and an exact one, scope: [layer], seq_len below d_model",
        test=lambda rows, _: facts.recurrent_for_short(rows),
        of_inexact=True,
    ),
    "Q12a": Statement(
        statement="Outputs lie in the convex hull of the values.",
        tested="linear program per output on random cases in float64, not a box",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: facts.holds(
            findings, {"outputs_in_hull_of_values": "random cases"}
        ),
        study="attention_facts",
    ),
    "Q12b": Statement(
        statement="... and in that of the inputs.",
        tested="the same linear program, with W_V between inputs and values",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: facts.holds(
            findings, {"outputs_in_hull_of_inputs": "random cases"}
        ),
        study="attention_facts",
    ),
    "Q13": Statement(
        statement="If one score rises, its weight rises and all others fall.",
        tested="signs of the changes on random cases in float64",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: facts.holds(findings, {"other_weights_fall": "random cases"}),
        study="attention_facts",
    ),
    "Q14": Statement(
        statement=(
            "Xavier initialisation keeps activations and gradients well scaled; N(0, 1) and too"
            " small weights do not."
        ),
        tested=(
            "variance of a layer's outputs and gradients over d_model and heads, within ten times"
            " that of its inputs or not"
        ),
        to_run="studies: [initialisation]",
        test=lambda _, findings: facts.initial_scale(findings),
        study="initialisation",
    ),
    "Q15": Statement(
        statement="One product for queries, keys and values is faster than three.",
        tested="paired ratio of times over batch and N, extended by what processes may differ",
        to_run="studies: [joined_projections]",
        test=lambda _, findings: facts.one_product(findings),
        study="joined_projections",
    ),
    "Q16": Statement(
        statement="Generation repeats the pass for every token; a cache saves it.",
        tested=(
            "FLOPs of all steps without a cache over those with one, an exact count, and the ratio"
            " of their times, backend by backend, at the most tokens: both above 1"
        ),
        to_run="studies: [generation], kv_seq_len of some hundred",
        test=lambda _, findings: generation.cache_saves(findings),
        study="generation",
    ),
    "Q17": Statement(
        statement="Masking by -1e9 is the same as masking by minus infinity.",
        tested="random cases in float64, with and without rows that see no key",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: facts.holds(
            findings,
            {
                "fill_equals_infinity": "rows that see a key",
                "fill_equals_infinity_without_keys": "rows that see no key",
            },
        ),
        study="attention_facts",
    ),
    "Q18": Statement(
        statement="Attention patterns vary greatly between heads.",
        tested=(
            "variance of the mean distance between 8 heads, over that of one head between"
            f" sequences: at least 10 times; {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.heads_vary(findings),
        study="trained_heads",
    ),
    "Q19": Statement(
        statement="Half of the heads can be removed at once with little effect.",
        tested=(
            "8 heads per block, half of them removed, chosen by trial on other sequences, nothing"
            " retrained: the loss rises by at most 10 % of the rise without any head;"
            f" {_SMALL}"
        ),
        to_run=_TRAINED,
        test=lambda _, findings: quality.half_the_heads(findings),
        study="trained_heads",
    ),
}
