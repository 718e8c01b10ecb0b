"""What is asked: `ModelRequest` of a model, `RunRequest` of an agent, `EmbeddingsRequest`, and
`HttpRequest`, which carries them.

Requests are neutral; a wire turns one into a body and back. `RunInfo` says on whose behalf a model
is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import msgspec

from dragoman.errors import SettingsError
from dragoman.interrupt import Resume
from dragoman.message import Message, Native

__all__ = [
    "Download",
    "EmbeddingsRequest",
    "HttpRequest",
    "ModelRequest",
    "OnLoss",
    "PrefixMode",
    "Purpose",
    "RunInfo",
    "RunRequest",
    "ServerTool",
    "Settings",
    "ToolSpec",
]


class RunInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run, as those see it who are asked by it: middlewares (`ModelRequest.run`) and hooks."""

    run_id: str
    """Id of the run."""
    thread_id: str | None = None
    """Id of the conversation."""
    resource_id: str | None = None
    """Whose conversation it is, such as a user's id."""
    parent_run_id: str | None = None
    """Id of the run within whose tool it runs; `None`: it runs for itself."""
    agent: str = ""
    """The agent's name for people."""
    context: tuple[Any, ...] = ()
    """What the run's client says beside the conversation, for agents that are asked like models."""
    state: Any = None
    """The state that client and agent share, as it is when the model is asked, for such agents too;
    `None`: there is none."""
    hooks: tuple[Any, ...] = ()
    """The `Hooks` that watch the run, for `dragoman.hooks.call_hooks`."""


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, tag="tool"):
    """A tool that the model may call, as the request tells it."""

    name: str
    """Its name, as the agent knows it."""
    description: str = ""
    """What it does and when to use it, for the model."""
    input_schema: Mapping[str, Any] = {}
    """JSON Schema of the arguments object."""
    native: Native = None


class ServerTool(msgspec.Struct, frozen=True, omit_defaults=True, tag="server_tool"):
    """A tool that the provider runs itself, such as a web search."""

    name: str
    """The name that all providers have in common, such as `web_search`, or one provider's own."""
    options: Mapping[str, Any] = {}
    """Its options by their common names, such as `allowed_domains`; others are the provider's
    fields, as they are."""
    native: Native = None


Effort = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model is to think."""

_NUMBER, _WHOLE, _TEXT = ((int, float), "a number"), ((int,), "a whole number"), ((str,), "a text")
_SETTINGS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "temperature": _NUMBER,
    "max_tokens": _WHOLE,
    "top_p": _NUMBER,
    "top_k": _WHOLE,
    "presence_penalty": _NUMBER,
    "frequency_penalty": _NUMBER,
    "stop": ((tuple,), "a tuple of texts"),
    "seed": _WHOLE,
    "tool_choice": _TEXT,
    "parallel_tool_calls": ((bool,), "true or false"),
    "reasoning": ((str, int), "an effort or a number of tokens"),
    "cache": _TEXT,
}


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a model is to answer. `None` leaves it to the provider.

    Raises:
        SettingsError: a value is of another type than its field.
    """

    temperature: float | None = None
    """How freely it chooses its words: 0 takes the likeliest; most providers go up to 1 or 2."""
    max_tokens: int | None = None
    """Most tokens of the answer."""
    top_p: float | None = None
    """It chooses among the likeliest words whose probabilities add up to this, from 0 to 1."""
    top_k: int | None = None
    """It chooses among so many of the likeliest words."""
    presence_penalty: float | None = None
    """Above 0: words that occurred become less likely; most providers take -2 to 2."""
    frequency_penalty: float | None = None
    """Above 0: words become less likely the more often they occurred; most providers take -2 to
    2."""
    stop: tuple[str, ...] | None = None
    """Texts at which the answer ends."""
    seed: int | None = None
    """The same seed with the same request gives the same answer, as far as the provider can."""
    tool_choice: str | None = None
    """`auto`, `none`, `required`, or the name of the tool that must be called."""
    parallel_tool_calls: bool | None = None
    """Whether one answer may call several tools."""
    reasoning: Effort | int | None = None
    """How much to think: `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or a budget in
    tokens. A model that does not take it is asked for the nearest below, or else its least."""
    cache: Literal["short", "long"] | None = None
    """Keep the prompt in the provider's cache, so that the next request of the conversation costs
    less: for minutes, or for an hour and more. Nothing is sent to providers that cache by
    themselves."""

    def __post_init__(self) -> None:
        """Checks the settings. Raises `SettingsError` for one of another type."""
        for name, (kinds, expected) in _SETTINGS.items():
            value: Any = getattr(self, name)
            if value is None:
                continue
            if name == "stop" and isinstance(value, (list, tuple)):
                value = tuple(cast("list[Any]", value))
                msgspec.structs.force_setattr(self, name, value)
            if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
                raise SettingsError(f"Settings({name}=…) must be {expected}, not {value!r:.100}")
        if self.stop is not None and not all(
            isinstance(text, str) for text in cast("tuple[object, ...]", self.stop)
        ):
            raise SettingsError(
                f"Settings(stop=…) must be a tuple of texts, not {self.stop!r:.100}"
            )
        if isinstance(self.reasoning, str) and self.reasoning not in get_args(Effort):
            raise SettingsError(
                f"Settings(reasoning=…) must be one of {', '.join(get_args(Effort))}, or a number of tokens, not {self.reasoning!r}"
            )

    def over(self, other: Settings | None) -> Settings:
        """Returns these settings of a request, with those of `other` for what is not set here."""
        if other is None or other == _NOTHING:
            return self
        own_values = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(other, **own_values)


_NOTHING = Settings()


OnLoss = Literal["tell", "error"]
PrefixMode = Literal["keep", "break", "drop"]
_PREFIX_MODES = get_args(PrefixMode)


class ModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to a model."""

    model: str
    """The provider's name of the model. Where a middleware sees it: the model string."""
    messages: tuple[Message, ...] = ()
    """The conversation, oldest first."""
    tools: tuple[ToolSpec | ServerTool, ...] = ()
    """What the model may call."""
    settings: Settings = Settings()
    """How it is to answer."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer must satisfy."""
    stream: bool = False
    """Whether the answer is to come as it is made."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are (the seeds' provider
    options)."""
    native: Native = None
    """How a wire wrote the neutral fields, where it knows several forms; only `load_request` fills
    it."""
    on_loss: OnLoss = "tell"
    """What to do where the wire or its target cannot hold all of it: send the rest and name what is
    left out, or refuse."""
    wire: str | None = None
    """The wire whose fields `options` are, where a loader took them from a request: another wire
    does not write them. `None`: that of whoever the request goes to."""
    run: RunInfo | None = None
    """The run that asks, for middlewares and hooks; no wire writes it."""
    retries: int | None = None
    """How often the transport may send it again at most where it fails; `None`: as often as the
    transport does by itself."""
    as_sent: bool = False
    """A client's own request in the wire of whoever it goes to: the wire adds nothing to it, and
    takes nothing away."""
    verbatim: Mapping[str, Any] | None = None
    """The body that a client wrote in the wire of whoever the request goes to: it is sent as it is,
    but for the name of the model. A copy with other content has none."""
    prefix: PrefixMode = "keep"
    """What becomes of a system text or tools that change in the middle of a conversation: the
    request keeps those that it began with and says at its end what has changed, or has the new ones
    in their place. `drop`: as `keep`, and the provider drops thinking that is bound to another
    conversation, where it would refuse the request."""

    renamed: bool = False
    """A client's own request (`as_sent`) for another model than the client named: it is lowered to
    what that model accepts."""

    def __post_init__(self) -> None:
        """Checks the options of a model request, and makes tuples of its messages and tools."""
        if self.on_loss not in ("tell", "error"):
            raise SettingsError(f'on_loss={self.on_loss!r} is unknown; it is "tell" or "error"')
        if self.prefix not in _PREFIX_MODES:
            raise SettingsError(f'prefix={self.prefix!r} is unknown; it is "keep" or "break"')
        if type(self.messages) is not tuple:
            msgspec.structs.force_setattr(self, "messages", tuple(self.messages))
        if type(self.tools) is not tuple:
            msgspec.structs.force_setattr(self, "tools", tuple(self.tools))

    def replace(self, **changes: Any) -> ModelRequest:
        """Returns a copy of the request with some fields changed."""
        if (
            self.verbatim is not None
            and "verbatim" not in changes
            and not changes.keys() <= _AROUND
        ):
            changes["verbatim"] = None
        return msgspec.structs.replace(self, **changes)


_AROUND = frozenset(["model", "on_loss", "prefix", "run", "retries"])
"""Fields of a request that its body does not hold, or that are no part of what it says."""


Purpose = Literal["query", "document"]
"""What a vector is for: to search with, or to be found."""


class EmbeddingsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Texts that are to be turned into vectors by one request."""

    model: str
    """The provider's name of the model."""
    texts: tuple[str, ...] = ()
    """Each becomes a vector."""
    purpose: Purpose | None = None
    """`None`: another one, or the provider knows no such thing."""
    dimensions: int | None = None
    """Numbers of each vector; `None`: as many as the model gives."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are."""
    native: Native = None
    """As in `ModelRequest`."""

    def __post_init__(self) -> None:
        if type(self.texts) is not tuple:
            msgspec.structs.force_setattr(self, "texts", tuple(self.texts))

    def replace(self, **changes: Any) -> EmbeddingsRequest:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class HttpRequest(msgspec.Struct, frozen=True):
    """A request as HTTP carries it: a wire makes it, a transport sends it."""

    path: str
    """Relative to the provider's base URL; a transport is given the whole URL here."""
    headers: Mapping[str, str] = {}
    """Those that the wire or the caller sets."""
    body: Mapping[str, Any] | bytes | None = None
    """A JSON object, or bytes as they are; `None`: there is none, as with a GET."""
    method: Literal["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] = "POST"
    """The HTTP method."""
    names: Mapping[str, str] = {}
    """Name under which a tool was sent → the tool's own name, where they differ. For whoever reads
    the answer."""
    secret: bool = False
    """Its bodies hold credentials: a recorder does not write it down."""
    retries: int | None = None
    """How often it may be sent again at most; `None`: as often as the transport does by itself."""

    def __repr__(self) -> str:
        """Returns the request without headers and body, which may hold keys."""
        scheme, separator, address = self.path.partition("?")[0].rpartition("://")
        # User, headers, query and body may hold keys.
        host, slash, path = address.partition("/")
        return (
            f"HttpRequest({self.method} {scheme}{separator}{host.rpartition('@')[2]}{slash}{path})"
        )


class Download(msgspec.Struct, frozen=True):
    """How a provider is asked for a file that it holds."""

    content: HttpRequest
    """Asks for the bytes."""
    about: HttpRequest | None = None
    """Tells `filename` and `mime_type` as JSON, where the answer with the bytes does not."""


class RunRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to an agent, in full. `Agent.run` and every way of sending take it in place of a
    prompt; the same fields are their keywords, which go before the request's."""

    messages: tuple[Message, ...] = ()
    """The conversation, oldest first. What follows the last message of the model's is new, and of
    this run; all before it is history."""
    thread_id: str | None = None
    """Id of the conversation; `None`: it is the run's."""
    run_id: str | None = None
    """Id of the run; `None`: one is made."""
    resource_id: str | None = None
    """Whose conversation it is, such as a user's id."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the client runs, beside the agent's own."""
    context: tuple[Any, ...] = ()
    """What the client tells beside the conversation, any JSON. Tools and orchestrators see it, the
    model does not."""
    state: Any = None
    """The state that client and agent share, any JSON value; `None`: none."""
    resume: tuple[Resume, ...] = ()
    """Answers to what the last run of the conversation waits for."""
    settings: Settings | None = None
    """How the model is to answer; go before the agent's, one by one."""
    options: Mapping[str, Any] | None = None
    """Body fields without a neutral name; go before the agent's, one by one."""
    metadata: Mapping[str, Any] = {}
    """Anything that is to be passed on unread."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of the output; `None`: text, or what the send says."""
    native: Native = None
    """What a protocol has beside these fields; only its `load_run` fills it."""

    def __post_init__(self) -> None:
        for name in ("messages", "tools", "context", "resume"):
            if type(value := getattr(self, name)) is not tuple:
                msgspec.structs.force_setattr(self, name, tuple(value))

    def replace(self, **changes: Any) -> RunRequest:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)
