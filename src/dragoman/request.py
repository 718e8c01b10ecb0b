"""What is asked of a model: `ModelRequest` and what it holds, `EmbeddingsRequest`. Neutral; a wire turns it into a body and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.errors import SettingsError
from dragoman.message import Message, Native

__all__ = [
    "Download",
    "EmbeddingsRequest",
    "HttpRequest",
    "ModelRequest",
    "OnLoss",
    "Purpose",
    "ServerTool",
    "Settings",
    "ToolSpec",
]


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, tag="tool"):
    """A tool that the model may call, as the request tells it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = {}
    """JSON Schema of the arguments object."""
    native: Native = None


class ServerTool(msgspec.Struct, frozen=True, omit_defaults=True, tag="server_tool"):
    """A tool that the provider runs itself, such as a web search."""

    name: str
    """The provider's name of it, such as `web_search`."""
    options: Mapping[str, Any] = {}
    native: Native = None


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a model is to answer. `None` leaves it to the provider."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Most tokens of the answer."""
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] | None = None
    """Texts at which the answer ends."""
    seed: int | None = None
    tool_choice: str | None = None
    """`auto`, `none`, `required`, or the name of the tool that must be called."""
    parallel_tool_calls: bool | None = None
    reasoning: Literal["off", "low", "medium", "high"] | int | None = None
    """How much to think: an effort, or a budget in tokens."""
    cache: Literal["short", "long"] | None = None
    """Keep the prompt in the provider's cache, so that the next request of the conversation costs less: for minutes, or for
    an hour and more. Nothing is sent to providers that cache by themselves."""

    def over(self, other: Settings | None) -> Settings:
        """These settings, and `other`'s where these say nothing."""
        if other is None or other == _NOTHING:
            return self
        mine = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(other, **mine)


_NOTHING = Settings()


OnLoss = Literal["tell", "error"]


class ModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to a model."""

    model: str
    """The provider's name of the model."""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec | ServerTool, ...] = ()
    settings: Settings = Settings()
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer must satisfy."""
    stream: bool = False
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are (the seeds' provider options)."""
    native: Native = None
    """How a wire spelled the neutral fields, where it knows several spellings; only `load_request` fills it."""
    on_loss: OnLoss = "tell"
    """What to do where the wire or its target cannot hold all of it: send the rest and name what is left out, or refuse."""

    def __post_init__(self) -> None:
        if self.on_loss not in ("tell", "error"):
            raise SettingsError(f'on_loss={self.on_loss!r} is unknown; it is "tell" or "error"')
        for name in ("messages", "tools"):
            if type(value := getattr(self, name)) is not tuple:
                msgspec.structs.force_setattr(self, name, tuple(value))

    def replace(self, **changes: Any) -> ModelRequest:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


Purpose = Literal["query", "document"]
"""What a vector is for: to search with, or to be found (D-144)."""


class EmbeddingsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Texts that are to be turned into vectors by one request."""

    model: str
    """The provider's name of the model."""
    texts: tuple[str, ...] = ()
    purpose: Purpose | None = None
    """`None`: another one, or the provider knows no such thing."""
    dimensions: int | None = None
    """Numbers of each vector (D-143); `None`: as many as the model gives."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are."""
    native: Native = None
    """As in `ModelRequest`."""

    def __post_init__(self) -> None:
        if type(self.texts) is not tuple:
            msgspec.structs.force_setattr(self, "texts", tuple(self.texts))

    def replace(self, **changes: Any) -> EmbeddingsRequest:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class HttpRequest(msgspec.Struct, frozen=True):
    """A request as HTTP carries it: a wire makes it, a transport sends it."""

    path: str
    """Relative to the provider's base URL; a transport is given the whole URL here."""
    headers: Mapping[str, str] = {}
    body: Mapping[str, Any] | bytes | None = None
    """A JSON object, or bytes as they are; `None` for a GET."""
    method: Literal["POST", "GET"] = "POST"
    names: Mapping[str, str] = {}
    """Name under which a tool was sent → the tool's own name, where they differ. For whoever reads the answer."""
    secret: bool = False
    """Its bodies hold credentials: a recorder does not write it down."""

    def __repr__(self) -> str:
        scheme, separator, rest = self.path.partition("?")[0].rpartition("://")
        place, slash, path = rest.partition("/")  # user, headers, query and body may hold keys
        return f"HttpRequest({self.method} {scheme}{separator}{place.rpartition('@')[2]}{slash}{path})"


class Download(msgspec.Struct, frozen=True):
    """How a provider is asked for a file that it holds."""

    content: HttpRequest
    about: HttpRequest | None = None
    """Tells `filename` and `mime_type` as JSON, where the answer with the bytes does not."""
