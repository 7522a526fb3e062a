"""A decoder of Hugging Face's from a local folder: config.json, safetensors files, nothing else.

transformers gets a configuration object and tensors, never the folder's path: it reads no other
file, downloads nothing, and has no code of the model's to run. Its models call their attention
through one interface, in which we stand: each layer's own eager function is called, its weights
and outputs are kept, and the outputs are scaled head by head.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...files.errors import BadInput, first_line, shown
from ...files.printable import visible
from ...models import config_file
from ..head_metrics import Heads
from ..removal import About, Gates
from .decoder_file import read_tensors
from .given import weight_files

IMPLEMENTATION = "attnbench_heads"
REFUSED = {"quantization_config", "compression_config"}
LEFT_OUT = {
    *("attn_implementation", "experts_implementation", "output_attentions", "auto_map"),
    *("output_hidden_states", "fusion_config", "distributed_config", "kernel_config"),
    *("use_kernels", "transformers_weights", "torch_dtype", "dtype"),
}
"""Fields of a configuration that say how to compute, or where other files are."""
AHEAD_SHARE = 1e-6  # of a query's weight on later tokens, from which a model is not causal
PROBE_TOKENS = 4
UNSEEN = "does not call its attention through transformers' interface: its heads cannot be seen"
NEWER = "a newer family, such as gpt2 or llama"


class HuggingFaceModel:
    """Its attention layers are numbered by their calls in a forward pass."""

    def __init__(self, folder: Path, device: torch.device, most_bytes: int | None = None) -> None:
        """In fp32. Raises BadInput; `most_bytes`: that its weights may take."""
        self.place = shown(str(folder))
        data = config_file.read(folder / config_file.FILE)
        for name in REFUSED & data.keys():
            raise self._refusal(
                f"{name}: its weights are quantized",
                "fp32, fp16 or bf16; save a model that is not quantized",
            )
        tensors, _ = read_tensors(weight_files(folder), self.place, most_bytes)
        self.model = self._loaded(data, tensors).to(device)
        probe = torch.zeros(1, PROBE_TOKENS, dtype=torch.int64, device=device)
        self.heads = [one.weights.shape[1] for one in self._probed(probe)]
        text = self.model.config.get_text_config(decoder=True)
        self.about = About(
            format="transformers",
            model_type=str(data.get("model_type"))[:64],
            d_model=int(text.hidden_size),
            kv_heads=int(getattr(text, "num_key_value_heads", None) or self.heads[0]),
            vocabulary=int(self.model.get_input_embeddings().num_embeddings),
            parameter_count=sum(one.numel() for one in self.model.parameters()),
            layers=[number for number, _, _ in self._kept],
            longest=getattr(text, "max_position_embeddings", None),
            trained={},
        )

    def _refusal(self, found: str, wanted: str) -> BadInput:
        return BadInput(f"{self.place}: {found}; wanted {wanted}")

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        """`_kept`: of each layer its number, as the model counts, weights and outputs."""
        self._gates: Gates | None = gates
        self._kept: list[tuple[int, Tensor, Tensor]] = []
        self._stand_in()
        found: Tensor = self.model(input_ids=tokens, use_cache=False).logits
        return found.float()

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        with torch.no_grad():
            self.logits(tokens)
        return [Heads(p.double(), o.transpose(1, 2).double()) for _, p, o in self._kept]

    def _probed(self, tokens: Tensor) -> list[Heads]:
        kind = type(self.model).__name__
        try:
            found = self.looked_at(tokens)
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 - a model of any family may fail in any way
            why = f"{kind} does not run on {tokens.shape[1]} tokens: {_reason(error)}"
            raise self._refusal(why, "a decoder of transformers") from None
        if not found:
            raise self._refusal(f"{kind} {UNSEEN}", NEWER)
        if any(bool(one.weights.triu(1).max() > AHEAD_SHARE) for one in found):
            raise self._refusal(f"{kind} looks at later tokens", "a causal decoder")
        return found

    def _loaded(self, data: Mapping[str, Any], tensors: dict[str, Tensor]) -> Any:
        import transformers
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        kind, version = data.get("model_type"), transformers.__version__
        if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
            known = f"one that transformers {version} knows; a newer version may know it"
            raise self._refusal(f"model_type: {shown(kind)}", known)
        try:
            config = CONFIG_MAPPING[kind].from_dict(_plain(data))
            family = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
            if family is None:
                found = f"model_type: {kind} predicts no next token in transformers {version}"
                raise self._refusal(found, "a decoder such as gpt2 or llama")
            layers = getattr(config.get_text_config(decoder=True), "num_hidden_layers", 0)
            if layers > len(tensors):  # each would take time and memory to make
                found = f"num_hidden_layers: {shown(layers)}, with {len(tensors)} tensors"
                raise self._refusal(f"{found} in its files", "all weights of a decoder")
            family = family[0] if isinstance(family, tuple) else family
            self._stand_in()
            model, report = family.from_pretrained(
                None,
                config=config,
                state_dict=tensors,
                attn_implementation=IMPLEMENTATION,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 - whatever transformers raises on these files
            if IMPLEMENTATION in str(error):  # looked up where only its own ones are
                raise self._refusal(f"{kind} {UNSEEN}", NEWER) from None
            found = f"{kind}: transformers {version} does not load it: {_reason(error)}"
            raise self._refusal(found, "config.json and weights that belong together") from None
        if missing := sorted(map(str, report["missing_keys"])):
            found = f"{kind}: {len(missing)} weights are missing, such as {shown(missing[0])}"
            raise self._refusal(found, "all weights of a decoder")
        return model.requires_grad_(requires_grad=False)

    def _stand_in(self) -> None:
        """Our function of this model, and the masks that eager ones take, under our name."""
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface, eager_mask

        AttentionInterface.register(IMPLEMENTATION, self._attend)
        AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)

    def _attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """As transformers' attention functions: output [batch, n, heads, d_v] and weights."""
        own = sys.modules[type(module).__module__]
        eager = getattr(own, "eager_attention_forward", None)
        if eager is None:
            found = f"{type(module).__name__} has no eager attention"
            raise self._refusal(found, "one whose weights can be seen")
        o, p = eager(module, query, key, value, mask, **more)
        number, layer = len(self._kept), getattr(module, "layer_idx", None)
        self._kept.append((layer if type(layer) is int else number, p.detach(), o.detach()))
        return (o if self._gates is None else o * self._gates[number][:, None]), p


def _plain(value: Any) -> Any:
    """A configuration without what LEFT_OUT names, at every level."""
    if isinstance(value, dict):
        return {
            name: _plain(inner)
            for name, inner in value.items()
            if name not in LEFT_OUT and not name.startswith("_")
        }
    return value


def _reason(error: BaseException) -> str:
    return visible(first_line(error)[:200])
