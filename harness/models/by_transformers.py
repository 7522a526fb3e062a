"""What transformers itself resolves of a configuration; runs in a process of its own.

Its configurations import torch, which takes seconds, so `resolve.py` keeps what was found. Nothing
of the model's own code is run: what `auto_map` names is never looked at.
"""

import json
import re
import sys
from dataclasses import replace
from typing import Any

from ..files.errors import BadInput, shown
from . import config_file, parameters, plain
from .fields import NotGiven
from .layers import JSON, Model, Weights

SAME = {"kimi_k2": "deepseek_v3"}
"""Types of transformers by other names (its configuration of kimi_k25 says so of this one)."""
OF_TOWERS = re.compile("vision|visual|audio|speech")
LANGUAGE = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM")
"""Kinds of models whose layers are read."""


def model(data: dict[str, Any], name: str, place: str) -> Model:
    """The model of a configuration. Raises BadInput; ImportError without transformers."""
    from transformers import __version__
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = str(data.get("model_type"))
    known = SAME.get(kind, kind)
    if known not in CONFIG_MAPPING:
        raise BadInput(
            f"{place}: model_type: {shown(kind)}; transformers {__version__} has no such type"
            f"{config_file.own_code(data)}"
        )
    try:
        config = CONFIG_MAPPING[known].from_dict({**data, "model_type": known})
        text = config.get_text_config(decoder=True)
        fields = resolved(text)
    except Exception as error:  # noqa: BLE001 - whatever a configuration's own checks raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"{place}: {kind}: transformers {__version__} refuses it: {shown(reason[-1])}"
        ) from None
    if not _reads_text(config, text):
        raise BadInput(f"{place}: model_type: {kind}; wanted a model of language")
    found = plain.model(data, name, place, fields)
    if kind not in parameters.FAMILIES:
        weights, uncounted = _weights(config, data)
        found = replace(found, weights=weights, uncounted=uncounted)
    return found


def resolved(text: Any) -> dict[str, Any]:
    """The fields of a decoder, also by their usual names, with the layers that it makes of them."""
    made = (*text.attribute_map, "layer_types", "layers_block_type", "is_causal")
    found = {name: it for name in made if (it := getattr(text, name, None)) is not None}
    return {**text.to_dict(), **found}


def _reads_text(config: Any, text: Any) -> bool:
    from transformers.models.auto import modeling_auto

    tables = [getattr(modeling_auto, f"MODEL_FOR_{one}_MAPPING_NAMES") for one in LANGUAGE]
    known = plain.ENCODERS.union(*tables)
    generates = "past_key_values" in getattr(text, "keys_to_ignore_at_inference", ())
    return generates or bool({config.model_type, text.model_type} & known)


def _weights(config: Any, data: dict[str, Any]) -> tuple[Weights | None, str]:
    """By transformers' own classes. Raises ValueError."""
    try:
        tally = built(config)
        words = "counted by transformers in the model without memory"
        return parameters.stored(tally, data.get("quantization_config"), words), ""
    except NotGiven as why:
        return None, str(why)
    except Exception as error:  # noqa: BLE001 - whatever making a model raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return None, f"transformers cannot make this model without memory: {shown(reason)}"


def built(config: Any) -> parameters.Tally:
    """Of transformers' own model of the configuration, with tensors that have no memory."""
    import torch
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

    # others of these types are parts of them, or have more for training
    whole = config.is_encoder_decoder or config.model_type in plain.ENCODERS
    makers = () if whole else (AutoModelForImageTextToText, AutoModelForCausalLM)
    maker = next((one for one in makers if type(config) in one._model_mapping), AutoModel)
    config.quantization_config = None
    with torch.device("meta"):
        made = maker.from_config(config)
    ends = [made.get_input_embeddings(), made.get_output_embeddings()]
    outside = {id(weight) for one in ends if one is not None for weight in one.parameters()}
    sizes = {"matrices": 0, "experts": 0, "rest": 0}
    for name, weight in made.named_parameters():  # each once, also if it is tied
        vector = weight.ndim < 2 or id(weight) in outside
        of = "experts" if ".experts." in name else "matrices"
        sizes["rest" if vector or OF_TOWERS.search(name) else of] += weight.numel()
    return parameters.Tally(**sizes)


def main() -> None:
    """Reads {"data", "name", "place"} and writes a model as JSON, or ends with what is wrong."""
    try:
        sys.stdout.write(JSON.dump_json(model(**json.load(sys.stdin))).decode())
    except BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
