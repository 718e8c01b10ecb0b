"""Model strings, which name a provider and its models.

`provider` · `provider:chat` · `provider/chat` · `provider?chat=…&embeddings=…&media=…`. In the
place of a model may stand the URL of what is asked, with its query:
`a2a:https://host/agent?tenant=7`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import msgspec

from dragoman.errors import SettingsError

__all__ = ["ModelString", "parse_model_string"]

_NAME_BEFORE_COLON = re.compile(r"[a-z][a-z0-9+.-]*")
_MODEL_FIELDS = {"chat": "chat", "embeddings": "embeddings", "media": "media", "other": "media"}


class ModelString(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider and the names of its models; `None` means the provider's default. `str()` returns
    a string that parses back to it."""

    provider: str
    """Name or alias, lower case, as it was given."""
    chat: str | None = None
    """Name of the chat model."""
    embeddings: str | None = None
    """Name of the model for embeddings."""
    media: str | None = None
    """Name of the model that makes media."""

    def __str__(self) -> str:
        """Returns the model string, `provider:model`."""
        models = {"chat": self.chat, "embeddings": self.embeddings, "media": self.media}
        named_models = {model_kind: model for model_kind, model in models.items() if model}
        if not named_models:
            return self.provider
        is_plain = "?" not in named_models.get("chat", "") or "://" in named_models["chat"]
        if (
            named_models.keys() == {"chat"}
            and _NAME_BEFORE_COLON.fullmatch(self.provider)
            and is_plain
        ):
            return f"{self.provider}:{named_models['chat']}"
        return f"{self.provider}?" + "&".join(
            f"{model_kind}={quote(model, safe='/:')}" for model_kind, model in named_models.items()
        )


def parse_model_string(text: str) -> ModelString:
    """Parses a model string. The first `:`, `/` or `?` decides its form.

    Raises:
        SettingsError: it has none of the forms.
    """
    head, mark, tail = _split_string(text)
    provider = head.lower()
    model = tail.partition("?")[0]
    if mark == "" and provider:
        return ModelString(provider)
    if mark == ":" and _NAME_BEFORE_COLON.fullmatch(provider):
        # The URL of an agent keeps its query; behind a model's name a query means nothing.
        return ModelString(provider, (tail if "://" in tail else model) or None)
    if mark == "/" and provider and "/" not in model:
        return ModelString(provider, model or None)
    if mark == "?" and provider and (names := _parse_query(tail)) is not None:
        return ModelString(provider, **names)
    raise SettingsError(
        f'Invalid model string format: "{text}". Write provider, provider:model, provider/model or '
        "provider?chat=model&embeddings=model&media=model, such as openai:gpt-4o"
    )


def _parse_query(query: str) -> dict[str, str | None] | None:
    """Returns the model names in a model string's `chat=…&embeddings=…`, or None if a field is
    unknown."""
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    if any(field not in _MODEL_FIELDS for field, _, _ in pairs):
        return None
    return {_MODEL_FIELDS[field]: unquote(model) or None for field, _, model in pairs}


def _split_string(text: str) -> tuple[str, str, str]:
    """Splits a text at the first `:`, `/` or `?`."""
    index = min((text.index(mark) for mark in ":/?" if mark in text), default=len(text))
    return text[:index], text[index : index + 1], text[index + 1 :]
