"""What a provider's list of models tells of what each accepts, as a `ModelProfile`.

Each shape is data: where a value stands, and the field of the profile that it is. A key that is
missing says nothing, since lists are often older than what the models can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from dragoman.codec.efforts import EFFORTS
from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.model_profile import ModelProfile

__all__ = ["load_listed_profile"]


def load_listed_profile(fields: JsonMap) -> ModelProfile | None:
    """Returns the profile that a provider's list says of one model. `fields`: the model's entry;
    `None`: it says nothing that a profile holds."""
    cells: Json = {}
    for field, path, read in _CELLS:
        value = read(_find_by_keys(fields, path))
        if value is not None:
            cells.setdefault(field, value)
    cells |= _read_anthropic_thinking(_find_by_keys(fields, "capabilities"))
    return ModelProfile(**cells) if cells else None


def _find_by_keys(fields: JsonMap, path: str) -> Any:
    """Returns the value at a path of keys in a model's list entry, for its profile, or None."""
    *above, last = path.split("/")
    for key in above:
        fields = if_object(fields.get(key))
    return fields.get(last)


def _read_count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _read_bool(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _read_supported(value: Any) -> bool | None:
    return _read_bool(if_object(value).get("supported"))


def _read_date(value: Any) -> date | None:
    """Returns for a profile the date that a text of the list begins with, or None."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _read_inputs(value: Any) -> tuple[str, ...] | None:
    """Returns for a profile a list of media types in the words of a profile, or None."""
    words = {"file": "pdf", "document": "pdf"}
    names = [words.get(name, name) for name in if_list(value) if isinstance(name, str)]
    return tuple(name for name in names if name in ("image", "pdf", "audio", "video")) or None


def _read_efforts(value: Any) -> tuple[str, ...] | None:
    words = [word for word in if_list(value) if word in EFFORTS or word == "none"]
    return tuple(words) or None


def _read_temperatures(value: Any) -> Mapping[str, tuple[float, float]] | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return {"temperature": (0, value)}


def _when(wanted: bool, cell: Any) -> Callable[[Any], Any]:
    """Reads a flag that says one thing if it has this value, and else nothing."""
    return lambda value: cell if value is wanted else None


def _if_has(word: str, cell: Any) -> Callable[[Any], Any]:
    """Reads a list that says one thing if a word is in it, and else nothing."""
    return lambda value: cell if word in if_list(value) else None


_CELLS: Sequence[tuple[str, str, Callable[[Any], Any]]] = (
    # Anthropic
    ("input", "max_input_tokens", _read_count),
    ("output", "max_tokens", _read_count),
    ("schema", "capabilities/structured_outputs", _read_supported),
    ("retires", "retires_at", _read_date),
    # Google
    ("input", "inputTokenLimit", _read_count),
    ("output", "outputTokenLimit", _read_count),
    ("ranges", "maxTemperature", _read_temperatures),
    ("thinks", "thinking", _when(False, "never")),
    # Mistral
    ("window", "max_context_length", _read_count),
    ("inputs", "capabilities/vision", _when(True, ("image",))),
    ("tools", "capabilities/function_calling", _read_bool),
    ("thinks", "capabilities/reasoning", _when(False, "never")),
    ("retires", "deprecation", _read_date),
    # OpenRouter
    ("window", "context_length", _read_count),
    ("output", "top_provider/max_completion_tokens", _read_count),
    ("inputs", "architecture/input_modalities", _read_inputs),
    ("thinks", "reasoning/mandatory", _when(True, "always")),
    ("efforts", "reasoning/supported_efforts", _read_efforts),
    ("retires", "expiration_date", _read_date),
    # Groq, Baseten
    ("window", "context_window", _read_count),
    ("output", "max_completion_tokens", _read_count),
    ("inputs", "input_modalities", _read_inputs),
    ("schema", "supported_features", _if_has("structured_outputs", True)),
    ("tools", "supported_features", _if_has("tools", True)),
    # Cohere
    ("inputs", "features", _if_has("vision", ("image",))),
    ("tools", "features", _if_has("tools", True)),
    ("retired", "is_deprecated", _when(True, True)),
    # Ollama, llama.cpp
    ("inputs", "capabilities", _if_has("vision", ("image",))),
    ("tools", "capabilities", _if_has("tools", True)),
    ("window", "details/context_length", _read_count),
    ("window", "meta/n_ctx", _read_count),
)
"""Field of the profile, where its value stands, and how it is read. The first that says anything
counts."""


def _read_anthropic_thinking(capabilities: Any) -> Json:
    """Reads for a profile what Anthropic's list of models says of thinking. It lacks efforts that
    the models take, so efforts count only where it speaks of all of them."""
    told = if_object(capabilities)
    thinking, effort = if_object(told.get("thinking")), if_object(told.get("effort"))
    cells: Json = {}
    types = if_object(thinking.get("types"))
    adaptive, budget = _read_supported(types.get("adaptive")), _read_supported(types.get("enabled"))
    if adaptive is not None and budget is not None:
        ways = {"adaptive": adaptive, "budget": budget}
        cells["ways"] = tuple(way for way, is_taken in ways.items() if is_taken)
    if _read_supported(thinking) is False:
        cells["thinks"] = "never"
    levels = {name: _read_supported(effort.get(name)) for name in EFFORTS[2:]}
    if None not in levels.values():
        cells["efforts"] = tuple(name for name, is_taken in levels.items() if is_taken)
    media = {"image": told.get("image_input"), "pdf": told.get("pdf_input")}
    inputs = tuple(name for name, told_of in media.items() if _read_supported(told_of))
    return {**cells, "inputs": inputs} if inputs else cells
