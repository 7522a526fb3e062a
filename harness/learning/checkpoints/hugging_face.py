"""A decoder of Hugging Face's from a local folder: config.json, safetensors files, nothing else.

transformers gets a configuration object and tensors, never the folder's path: it reads no other
file, downloads nothing, and has no code of the model's to run. Its models call their attention
through one interface, in which we stand: each layer's own eager function is called, its weights
and outputs are kept, and the outputs are scaled head by head.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...files.errors import BadInput, shown
from ...files.printable import visible
from ...files.safe_files import open_plain
from ...models import config_file
from ..gated import About, Gates
from ..head_metrics import Heads
from .given import TOKENIZER, weight_files

IMPLEMENTATION = "attnbench_heads"
REFUSED = ("quantization_config", "compression_config")
LEFT_OUT = {
    *("attn_implementation", "experts_implementation", "output_attentions", "auto_map"),
    *("output_hidden_states", "fusion_config", "distributed_config", "kernel_config"),
    *("use_kernels", "transformers_weights", "torch_dtype", "dtype"),
}
"""Fields of a configuration that say how to compute, or where other files are."""
AHEAD_SHARE = 1e-6  # of a query's weight on later tokens, from which a model is not causal
PROBE_TOKENS = 4
MOST_REASON = 150  # characters
UNSEEN = (
    "does not call its attention through transformers' interface, so its heads cannot be seen;"
    " wanted a newer family, such as gpt2 or llama"
)


class HuggingFaceModel:
    """Its attention layers are numbered by their calls in a forward pass."""

    def __init__(self, folder: Path, device: torch.device, most_bytes: int | None = None) -> None:
        """In fp32. Raises BadInput; `most_bytes`: that its weights may take."""
        self.place = shown(str(folder))
        data = config_file.read(folder / config_file.FILE)
        for name in REFUSED:
            if name in data:
                raise BadInput(
                    f"{self.place}: {name}: its weights are quantized; wanted fp32, fp16 or bf16;"
                    " save a model that is not quantized"
                )
        files = weight_files(folder)
        tensors = _tensors(files, self.place, most_bytes)
        self.model = self._loaded(data, tensors).to(device)
        self._gates: Gates | None = None
        self._kept: list[tuple[int, Heads]] | None = None
        self._calls = 0
        probe = torch.zeros(1, PROBE_TOKENS, dtype=torch.int64, device=device)
        kept = self._probed(probe)
        self.heads = [one.weights.shape[1] for _, one in kept]
        text = self.model.config.get_text_config(decoder=True)
        self.about = About(
            format="transformers",
            model_type=str(data.get("model_type"))[:64],
            d_model=int(text.hidden_size),
            kv_heads=int(getattr(text, "num_key_value_heads", None) or self.heads[0]),
            vocabulary=int(self.model.get_input_embeddings().num_embeddings),
            parameter_count=sum(one.numel() for one in self.model.parameters()),
            layers=tuple(number for number, _ in kept),
            longest=getattr(text, "max_position_embeddings", None),
            trained={},
        )

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        self._gates, self._calls = gates, 0
        try:
            with self._attending():
                found: Tensor = self.model(input_ids=tokens, use_cache=False).logits
                return found.float()
        finally:
            self._gates = None

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        return [one for _, one in self._seen(tokens)]

    def _seen(self, tokens: Tensor) -> list[tuple[int, Heads]]:
        """With the number of each layer, as the model counts."""
        self._kept = []
        try:
            with torch.no_grad():
                self.logits(tokens)
            return self._kept
        finally:
            self._kept = None

    def _probed(self, tokens: Tensor) -> list[tuple[int, Heads]]:
        kind = type(self.model).__name__
        try:
            kept = self._seen(tokens)
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 - a model of any family may fail in any way
            raise BadInput(
                f"{self.place}: {kind} does not run on {tokens.shape[1]} tokens:"
                f" {_reason(error)}; wanted a decoder of transformers"
            ) from None
        if not kept:
            raise BadInput(f"{self.place}: {kind} {UNSEEN}")
        if any(bool(one.weights.triu(1).max() > AHEAD_SHARE) for _, one in kept):
            raise BadInput(f"{self.place}: {kind} looks at later tokens; wanted a causal decoder")
        return kept

    def _loaded(self, data: Mapping[str, Any], tensors: dict[str, Tensor]) -> Any:
        import transformers
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        kind, version = data.get("model_type"), transformers.__version__
        if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
            raise BadInput(
                f"{self.place}: model_type: {shown(kind)}; wanted one that transformers {version}"
                " knows; a newer version may know it"
            )
        try:
            config = CONFIG_MAPPING[kind].from_dict(_plain(data))
            family = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
            if family is None:
                raise BadInput(
                    f"{self.place}: model_type: {kind} predicts no next token in transformers"
                    f" {version}; wanted a decoder such as gpt2 or llama"
                )
            layers = getattr(config.get_text_config(decoder=True), "num_hidden_layers", 0)
            if layers > len(tensors):  # each would take time and memory to make
                raise BadInput(
                    f"{self.place}: num_hidden_layers: {shown(layers)}, with {len(tensors)} tensors"
                    " in its files; wanted all weights of a decoder"
                )
            with self._attending():
                model, report = _class_of(family).from_pretrained(
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
                raise BadInput(f"{self.place}: {kind} {UNSEEN}") from None
            raise BadInput(
                f"{self.place}: {kind}: transformers {version} does not load it: {_reason(error)};"
                " wanted config.json and weights that belong together"
            ) from None
        if missing := sorted(map(str, report["missing_keys"])):
            raise BadInput(
                f"{self.place}: {kind}: {len(missing)} weights are missing, such as"
                f" {shown(missing[0])}; wanted all weights of a decoder"
            )
        return model.requires_grad_(requires_grad=False)

    @contextmanager
    def _attending(self) -> Iterator[None]:
        """With our function, and the masks that eager ones take, under our name."""
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface, eager_mask

        AttentionInterface.register(IMPLEMENTATION, self._attend)
        AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
        yield

    def _attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """As transformers' attention functions: output [batch, n, heads, d_v] and weights."""
        own = sys.modules[type(module).__module__]
        eager = getattr(own, "eager_attention_forward", None)
        if eager is None:
            raise BadInput(
                f"{self.place}: {type(module).__name__} has no eager attention; wanted one whose"
                " weights can be seen"
            )
        o, p = eager(module, query, key, value, mask, **more)
        number, self._calls = self._calls, self._calls + 1
        if self._kept is not None:
            layer = getattr(module, "layer_idx", None)
            heads = Heads(p.detach().double(), o.detach().transpose(1, 2).double())
            self._kept.append((number if type(layer) is not int else layer, heads))
        if self._gates is not None:
            o = o * self._gates[number][:, None]
        return o, p


class UnreadableTokenizer(Exception):
    """A tokenizer.json is there and cannot be read; the message says why, without the folder."""


def token_names(folder: Path, tokens: list[int]) -> list[str] | None:
    """What the folder's tokenizer calls them; None without one. Raises UnreadableTokenizer."""
    tokenizer = _tokenizer(folder)
    return None if tokenizer is None else [tokenizer.decode([token]) for token in tokens]


def token_ids(folder: Path, text: str) -> list[int]:
    """The tokens of a text. Raises BadInput."""
    found, tokenizer = f"no {TOKENIZER}", None
    try:
        tokenizer = _tokenizer(folder)
    except UnreadableTokenizer as error:
        found = str(error)
    if tokenizer is None:
        raise BadInput(
            f"{shown(str(folder))}: {found}, so text has no tokens; wanted one that the package"
            " tokenizers wrote, or --tokens with a JSON list of token ids"
        )
    return list(tokenizer.encode(text).ids)


def _tokenizer(folder: Path) -> Any:
    """None without one. Raises UnreadableTokenizer."""
    from tokenizers import Tokenizer

    path = folder / TOKENIZER
    if not os.path.lexists(path):
        return None
    try:
        with os.fdopen(open_plain(path.resolve()), "rb") as file:
            return Tokenizer.from_buffer(file.read())
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        text = str((isinstance(error, OSError) and error.strerror) or error)
        why = visible(text.rpartition("buffer: ")[2].partition("\n")[0][:MOST_REASON])
        raise UnreadableTokenizer(f"{TOKENIZER} cannot be read ({why})") from None


def _plain(value: Any) -> Any:
    """A configuration without what LEFT_OUT names, at every level."""
    if isinstance(value, dict):
        return {
            name: _plain(inner)
            for name, inner in value.items()
            if name not in LEFT_OUT and not name.startswith("_")
        }
    return value


def _class_of(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


def _tensors(files: list[Path], place: str, most_bytes: int | None) -> dict[str, Tensor]:
    from safetensors import SafetensorError, safe_open

    found: dict[str, Tensor] = {}
    taken = 0
    try:
        for path in files:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - no mapping
                    count = 1
                    for size in file.get_slice(name).get_shape():
                        count *= size
                    taken += 4 * count
                    if most_bytes is not None and taken > most_bytes:
                        raise BadInput(
                            f"{place}: its weights take more than the memory budget, {most_bytes}"
                            " bytes, in fp32; wanted a smaller model; raise it with --memory-gib"
                        )
                    found[name] = file.get_tensor(name)
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{place}: {_reason(error)}; wanted whole safetensors files") from None
    return found


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return shown(lines[0][:200]) if lines else type(error).__name__
