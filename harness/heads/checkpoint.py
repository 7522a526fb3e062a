"""A decoder of Hugging Face's from a local folder: config.json, safetensors files, nothing else.

A checkpoint is data: no name in it is imported, no pickle is read, nothing is downloaded.

transformers gets a configuration object and tensors, never the folder's path: it reads no other
file, downloads nothing, and has no code of the model's to run. Its models call their attention
through one interface, in which we stand: each layer's own eager function is called, its weights
are kept, and its outputs are scaled head by head.
"""

import json
import sys
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import StrictInt, TypeAdapter
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from ..files.errors import BadInput, first_line, option, shown
from ..files.printable import visible
from ..files.safe_files import opened, read_text
from ..models import config_file
from .removal import Gates
from .synthetic_tasks import UNSCORED, Batch

SINGLE = "model.safetensors"
IMPLEMENTATION, EAGER = "attnbench_heads", "eager_attention_forward"
REFUSED = {"quantization_config", "compression_config"}
LEFT_OUT = {
    *("attn_implementation", "experts_implementation", "output_attentions", "auto_map"),
    *("output_hidden_states", "fusion_config", "distributed_config", "kernel_config"),
    *("use_kernels", "transformers_weights", "torch_dtype", "dtype"),
}
"""Fields of a configuration that say how to compute, or where other files are."""
AHEAD_SHARE = 1e-6  # of a query's weight on later tokens, from which a model is not causal
PROBE_TOKENS = 4


class Layer(NamedTuple):
    """One with attention. `weights`: [batch, heads, n, n]. `d_k`, `d_v`: of keys and values."""

    weights: Tensor
    kv_heads: int
    d_k: int
    d_v: int


class Model:
    """`heads`: of the layers with attention, in the order of their calls. `d_model`: the width.
    `vocabulary`: tokens from 0. `longest`: tokens of a sequence; None: no limit is known.
    """

    def __init__(self, folder: Path, device: torch.device, most_bytes: int | None = None) -> None:
        """In fp32. Raises BadInput; `most_bytes`: that its weights may take."""
        self.folder, self._place = folder, shown(str(folder))
        data = config_file.read(folder / config_file.FILE)
        self.kind = visible(str(data.get("model_type"))[:64])
        for name in REFUSED & data.keys():
            found = f"{name}: its weights are quantized"
            raise self._refusal(found, "fp32, fp16 or bf16; save a model that is not quantized")
        probed: list[Layer] = []
        try:
            self.model = self._loaded(data, self._tensors(folder, most_bytes)).to(device)
            probed = self.seen(torch.zeros(1, PROBE_TOKENS, dtype=torch.int64, device=device))
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 - whatever transformers raises on these files
            if not any(name in str(error) for name in (IMPLEMENTATION, EAGER)):
                why = visible(first_line(error)[:200])
                found = f"{self.kind}: transformers does not load and run it: {why}"
                raise self._refusal(found, "config.json and weights that belong together") from None
        if not probed:
            found = f"{self.kind} does not call its attention through transformers' interface"
            newer = "a newer family, such as gpt2 or llama"
            raise self._refusal(f"{found}: its heads cannot be seen", newer)
        if any(bool(one.weights.triu(1).max() > AHEAD_SHARE) for one in probed):
            raise self._refusal(f"{self.kind} looks at later tokens", "a causal decoder")
        self.heads = [one.weights.shape[1] for one in probed]
        text = self.model.config.get_text_config(decoder=True)
        self.d_model = int(text.hidden_size)
        self.longest: int | None = getattr(text, "max_position_embeddings", None)
        self.vocabulary = int(self.model.get_input_embeddings().num_embeddings)

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        """See removal.Gated."""
        self._seen: list[Layer] = []
        self._gates = gates
        self._stand_in()
        found: Tensor = self.model(input_ids=tokens, use_cache=False).logits
        return found.float()

    def seen(self, tokens: Tensor) -> list[Layer]:
        """What each layer's heads do on these tokens."""
        with torch.no_grad():
            self.logits(tokens)
        return self._seen

    def _refusal(self, found: str, wanted: str) -> BadInput:
        return BadInput(f"{self._place}: {found}; wanted {wanted}")

    def _tensors(self, folder: Path, most_bytes: int | None) -> dict[str, Tensor]:
        from safetensors import safe_open

        files: list[Any] = [safe_open(path, framework="pt") for path in _files(folder)]
        places = {name: file for file in files for name in file.keys()}  # noqa: SIM118
        count = sum(prod(file.get_slice(name).get_shape()) for name, file in places.items())
        if most_bytes is not None and 4 * count > most_bytes:
            found = f"its weights take more than the memory budget, {most_bytes} bytes, in fp32"
            raise self._refusal(found, f"a smaller model; raise it with {option('memory_gib')}")
        return {name: file.get_tensor(name) for name, file in places.items()}

    def _loaded(self, data: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
        import transformers
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        kind = data.get("model_type")
        known = isinstance(kind, str) and kind in CONFIG_MAPPING
        config = CONFIG_MAPPING[kind].from_dict(_plain(data)) if known else None
        family = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
        if family is None:
            version = transformers.__version__
            wanted = f"a decoder that transformers {version} knows; a newer version may know it"
            raise self._refusal(f"model_type: {shown(kind)}", wanted)
        self._stand_in()
        model, report = (family[0] if isinstance(family, tuple) else family).from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            attn_implementation=IMPLEMENTATION,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        if missing := sorted(map(str, report["missing_keys"])):
            found = f"{self.kind}: {len(missing)} weights are missing, such as {shown(missing[0])}"
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
        eager = getattr(sys.modules[type(module).__module__], EAGER)
        o, p = eager(module, query, key, value, mask, **more)
        gate = None if self._gates is None else self._gates[len(self._seen)]
        self._seen.append(Layer(p.detach(), key.shape[1], key.shape[-1], value.shape[-1]))
        return (o if gate is None else o * gate[:, None]), p


def _plain(value: Any) -> Any:
    """A configuration without what LEFT_OUT names, at every level."""
    if not isinstance(value, dict):
        return value
    kept = {name: of for name, of in value.items() if name not in LEFT_OUT}
    return {name: _plain(of) for name, of in kept.items() if not name.startswith("_")}


def _files(folder: Path) -> list[Path]:
    """Those that the index names, else the single one. Raises BadInput."""
    config_file.weight_bytes(folder)  # whole files, and none missing
    if (folder / config_file.INDEX).is_file():
        return config_file.weight_files(folder)
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    raise BadInput(
        f"{shown(str(folder))}: no {SINGLE}; wanted it, or several with {config_file.INDEX}; other"
        " formats hold pickles, which are never read"
    )


# ---- the tokens that a model is looked at with ---------------------------------------------------
# It is to predict the next token, always. Without --tokens FILE they are random tokens, said twice:
# who has induction heads knows the second half (Olsson et al. 2022, arXiv:2209.11895), which alone
# is scored.

REPEATED = 24  # random tokens, which are then said again
SEQUENCES = 16
LONGEST = 48  # tokens of a sequence of the user's
MAX_BYTES = 1 << 20
TOKENIZER = "tokenizer.json"
MOST_TOKENIZER_BYTES = 128 << 20  # the largest that are published have 33
WANTED = f"a JSON list of token ids, or text for a model that has a {TOKENIZER}"
ROWS = TypeAdapter(list[list[StrictInt]])
MOST_REASON = 150  # characters


class Sequences(NamedTuple):
    """`looked_at`: what the numbers are of. `judged_on`: others, by which heads are ranked; the
    same with fewer than four. `source`: in words.
    """

    looked_at: Batch
    judged_on: Batch
    source: str


def sequences(model: Model, file: str | None, seed: int) -> Sequences:
    """Of the user's tokens, else random ones. Raises BadInput."""
    if file is not None:
        return given(model, Path(file))
    half = min(REPEATED, (model.longest or 2 * REPEATED) // 2)
    generator = Generator().manual_seed(seed)
    once = torch.randint(model.vocabulary, (2 * SEQUENCES, half), generator=generator)
    tokens = once.repeat(1, 2).to(model.model.device)
    return _halves(tokens, f"{half} random tokens, said twice", unscored=half - 1)


def given(model: Model, file: Path) -> Sequences:
    """Raises BadInput for what are not tokens of the model, and text without its tokenizer."""
    place = option("tokens", shown(str(file)))
    text, size = read_text(file, place, MAX_BYTES, WANTED), min(LONGEST, model.longest or LONGEST)
    try:
        is_json = text.lstrip().startswith("[")
        read = json.loads(text) if is_json else _encoded(text, place, model.folder)
        rows = ROWS.validate_python(read if read and isinstance(read[0], list) else [read])
        if len(rows) == 1:  # one long text, as sequences of one length
            words, size = rows[0], min(size, len(rows[0]))
            rows = [words[at : at + size] for at in range(0, len(words) - size + 1, size)]
        tokens = torch.tensor([row[:size] for row in rows[: 2 * SEQUENCES]])
        most = model.vocabulary - 1
        if tokens.shape[1] < 2 or not 0 <= int(tokens.min()) <= int(tokens.max()) <= most:
            raise ValueError
    except BadInput:
        raise
    except (ValueError, RecursionError):
        raise BadInput(
            f"{place}: not sequences of this model's tokens; wanted one list, or lists of one"
            f" length, of 2 or more whole numbers from 0 to {model.vocabulary - 1}"
        ) from None
    count, size = tokens.shape
    what = f"{count} sequence{'s' if count > 1 else ''} of {size} tokens from {file.name}"
    return _halves(tokens.to(model.model.device), what)


def _halves(tokens: Tensor, source: str, unscored: int = 0) -> Sequences:
    """`unscored`: targets at the beginning of each sequence that nobody can know."""
    targets = pad(tokens[:, 1:], (0, 1), value=UNSCORED)
    targets[:, :unscored] = UNSCORED
    batch, half = Batch(tokens, targets), min(len(tokens) // 2, SEQUENCES)
    if len(tokens) < 4:
        return Sequences(batch, batch, source)
    return Sequences(batch.part(0, half), batch.part(half, 2 * half), source)


def _encoded(text: str, place: str, folder: Path) -> list[int]:
    """Raises BadInput without a tokenizer that can be read."""
    from tokenizers import Tokenizer

    try:
        with opened((folder / TOKENIZER).resolve()) as file:
            tokenizer = Tokenizer.from_buffer(file.read(MOST_TOKENIZER_BYTES))
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        said = str((isinstance(error, OSError) and error.strerror) or error)
        why = visible(said.rpartition("buffer: ")[2].partition("\n")[0][:MOST_REASON])
        raise BadInput(
            f"{place}: text, and {TOKENIZER} of {shown(str(folder))} cannot be read ({why});"
            " wanted one that the package tokenizers wrote, or a JSON list of token ids"
        ) from None
    ids: list[int] = tokenizer.encode(text).ids
    return ids
