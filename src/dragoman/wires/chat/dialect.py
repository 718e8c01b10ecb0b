"""What one format of the family is: a record of names, tables, flags, and of the functions that it has in place of the family's.
Such a record is a wire (`wires.Wire`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec import outgoing
from dragoman.codec.error_rules import ErrorInfo, ErrorRules, error_info
from dragoman.codec.ids import call_ids, fitted
from dragoman.codec.layout import Layout
from dragoman.codec.marks import kinds, unmarked_all
from dragoman.codec.native import Own
from dragoman.codec.serving import SSE_PING, Route
from dragoman.errors import DragomanError, SettingsError
from dragoman.event import Event
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    Origin,
    Role,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from dragoman.wires.chat.content import READERS, Reader, sent_block, usual_type, write_block
from dragoman.wires.chat.decode import Decoder
from dragoman.wires.chat.decode_parts import Candidate
from dragoman.wires.chat.encode import STREAM_TYPE, Encoder, dump_response, envelope
from dragoman.wires.chat.errors import (
    ERRORS,
    ErrorLine,
    dump_error,
    error_body,
    error_of,
    load_error,
)
from dragoman.wires.chat.messages import (
    Loader,
    dump_conversation,
    dump_other,
    dump_piece,
    load_messages,
    unsendable,
)
from dragoman.wires.chat.messages_votes import call_votes, votes
from dragoman.wires.chat.quirks import Quirks
from dragoman.wires.chat.request import ROUTES, dump_http, load_request
from dragoman.wires.chat.settings import SETTINGS, Way
from dragoman.wires.chat.tools import dump_tools, load_tool, load_tools
from dragoman.wires.chat.usage import COUNTS, FINISH, WORDS, load_usage

__all__ = ["Chat", "Outgoing", "named", "prepared"]

_NAMED = (ToolCallPart, ToolResultPart)
_NOTHING: dict[str, str] = {}


def _as_loaded(messages: list[Message]) -> list[Message]:
    return messages


def _usual(
    chat: Chat,
    messages: Sequence[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec],
) -> Outgoing:
    """A conversation made ready for a vendor that takes ids and names of the usual kind, and thinking in its first field for it."""
    all_named = named(messages, tools)
    ids = call_ids(messages) if len(all_named) > len(tools) else {}
    names = fitted([one.name for one in all_named])
    thinking = next(iter(chat.thinking), None)
    return prepared(chat, messages, target, quirks, losses, ids=ids, names=names, thinking=thinking)


class Chat(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A format of the family. The defaults are what most vendors have."""

    # names

    name: str
    """Of the wire."""
    own: Own
    """Its part of `native`."""
    title: str = "Chat Completions"
    """What people call it."""
    id_prefix: str = "chatcmpl-"
    """Of ids of responses."""
    path: str = "/chat/completions"
    """Of requests, relative to the base URL."""
    tools: str = "tools"
    """The body's field for tools."""
    calls: str = "tool_calls"
    """A message's field for calls."""
    thinking: tuple[str, ...] = ("reasoning_content",)
    """A message's fields for thinking as text; the first is the usual one. Without any it stands in the content."""
    details: str = ""
    """A message's field for thinking in pieces that are signed or encrypted; empty: there is none."""
    empty: str | None = None
    """How the content of a model's message without text is usually written."""
    files_of: str = ""
    """Name of another wire whose ids of files mean the same."""

    # tables

    roles: Mapping[str, Role] = msgspec.field(
        default_factory=lambda: {"system": Role.SYSTEM, "user": Role.USER}
    )
    """Roles of messages, beside the model's and those of results."""
    result_roles: tuple[str, ...] = ("tool",)
    """Roles of messages that hold a result; the first is the usual one."""
    inputs: Mapping[str, str] = msgspec.field(default_factory=lambda: {"function": "arguments"})
    """Type of a call → the field of its input. What is no function has a text as its input."""
    no_ids: tuple[str, ...] = ()
    """What stands for no id in a streamed call."""
    fields: Mapping[str, Loader] = {}
    """A model's message: its fields beside content, thinking and calls → how they are loaded, in their order."""
    single: tuple[str, ...] = ()
    """Of these fields those that hold one thing, and no list."""
    alone: tuple[str, ...] = ()
    """Of these fields those beside which a message needs no content."""
    further: tuple[str, ...] = ()
    """The body's further fields that have a neutral name."""
    streaming: Mapping[str, Any] = {}
    """What the body of a streamed request has beside `stream`."""
    no_text: Mapping[str, Any] = {}
    """What a delta holds that adds no text."""
    readers: Mapping[str, Reader] = msgspec.field(default_factory=lambda: READERS)
    """Type of a content block → how it is loaded."""
    settings: Mapping[str, Sequence[Way]] = msgspec.field(default_factory=lambda: SETTINGS)
    """Setting → the ways to write it."""
    counts: Mapping[str, Sequence[tuple[str, ...]]] = msgspec.field(default_factory=lambda: COUNTS)
    """Neutral count → where it may stand in `usage`."""
    finish: Mapping[str, FinishReason] = msgspec.field(default_factory=lambda: FINISH)
    """Word for the end of an answer → neutral reason."""
    words: Mapping[FinishReason, Sequence[str]] = msgspec.field(default_factory=lambda: WORDS)
    """Neutral reason → the words that may stand for it."""
    errors: Sequence[ErrorLine] = ERRORS
    """Class of errors → status, type and code."""
    error_rules: ErrorRules = ErrorRules()
    """What errors mean with this vendor alone."""

    evidence: Mapping[str, int] = {}
    """Of a message: roles, types of blocks, and fields of the model's → how surely they tell this format (`votes`); any other: 1."""
    layout: Layout = Layout(fields=("messages",), of_tools=frozenset(["function"]))
    """Where its messages stand in the body of a request."""
    routes: tuple[Route, ...] = ROUTES
    """Places of the official API."""

    # flags

    takes_empty: bool = True
    """Takes messages that hold nothing."""
    signed: bool = True
    """What a model's message has of its own goes back to its origin only."""
    bare_results: bool = False
    """A result goes to a target without fields of its own."""
    keeps_form: bool = False
    """A request goes in the form in which it was loaded, whatever the vendor's quirks are."""
    calls_have_names: bool = False
    """The first piece of a streamed call has a name; else an id is enough."""
    straight: bool = True
    """Texts, calls and results that have nothing of their own are written in the family's form without asking `sent_block`,
    `dump_other`, `dump_piece` and `unsendable`."""
    usage_apart: bool = True
    """A stream holds the usage in a chunk of its own, without choices."""

    # functions and classes

    quirks: Callable[[], Any] = Quirks
    """Makes the usual quirks."""
    outgoing: Callable[
        [Chat, Sequence[Message], Origin | None, Any, list[Loss] | None, Sequence[ToolSpec]],
        Outgoing,
    ] = _usual
    """(…, messages, target, quirks, losses, tools) → the conversation, ready for its dump."""
    loaded: Callable[[list[Message]], list[Message]] = _as_loaded
    """A whole conversation that was loaded → with what only the whole tells."""
    usual_type: Callable[[Chat, Content, Mapping[str, str]], str] = usual_type
    """A part → the type of its content block."""
    write_block: Callable[[str, Any, Mapping[str, Any]], dict[str, Any]] = write_block
    """(type, part, wire form) → what the block holds."""
    sent_block: Callable[[Outgoing, int, int, Content], dict[str, Any] | None] = sent_block
    """(…, position, place, piece) → the block to send."""
    dump_other: Callable[[Outgoing, int, Mapping[str, str | None]], list[dict[str, Any]]] = (
        dump_other
    )
    """(…, position, ids) → the messages for one that is none of the model's."""
    dump_piece: Callable[[Outgoing, int, int, Content], tuple[str, Any]] = dump_piece
    """(…, position, place, piece) → a field of the model's message, and what the piece adds to it."""
    unsendable: Callable[[Outgoing, int, Content], str | None] = unsendable
    """(…, position, piece) → why a piece of the model's cannot be sent."""
    load_tools: Callable[
        [Chat, dict[str, Any], dict[str, Any]], tuple[ToolSpec | ServerTool, ...]
    ] = load_tools
    """(…, body, wire form) → the tools, taken out of the body."""
    load_tool: Callable[[Chat, Mapping[str, Any]], ToolSpec | ServerTool] = load_tool
    """One tool of a request."""
    dump_tools: Callable[
        [Outgoing, Sequence[ToolSpec | ServerTool], Mapping[str, Any]], dict[str, Any]
    ] = dump_tools
    """(…, tools, wire form) → fields of the body."""
    load_usage: Callable[[Chat, Mapping[str, Any]], tuple[Usage | None, dict[str, Any]]] = (
        load_usage
    )
    """`usage` → the neutral counts, and the rest."""
    error_info: Callable[[Any], ErrorInfo] = error_info
    """An error's JSON → what it says."""
    error_of: Callable[[Chat, Mapping[str, Any]], DragomanError | None] = error_of
    """The error that a chunk holds."""
    error_body: Callable[[str, str, str | None, int], dict[str, Any]] = error_body
    """(message, type, code, status) → an error's body."""
    whole_response: Callable[
        [Chat, Iterable[Event], list[Loss] | None, Mapping[str, Any]], dict[str, Any]
    ] = dump_response
    """(…, events, losses, envelope) → a whole response."""
    decoder_type: type[Decoder] = Decoder
    """Reads a response; a wire's own has a short way for its ordinary chunks."""
    candidate_type: type[Candidate] = Candidate
    """Reads one candidate of a response."""
    encoder_type: type[Encoder] = Encoder
    """Writes a streamed response."""
    call_votes: Callable[[str], int] = call_votes
    """An id of a call → how surely it is of this format (`votes`)."""
    embeddings: Any = None
    """The wire's embeddings (`wires.EmbeddingsWire`), where it has some."""

    # the wire: of its operations, those that are a room's function

    stream_type, ping = STREAM_TYPE, SSE_PING
    load_messages, votes = load_messages, votes
    load_request, dump_http = load_request, dump_http
    envelope = envelope
    load_error, dump_error = load_error, dump_error

    def __post_init__(self) -> None:
        for name in ("thinking", "result_roles", "no_ids", "single", "alone", "further"):
            if isinstance(value := getattr(self, name), str):
                raise SettingsError(f"{name} is a tuple of names, also for one: ({value!r},)")

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> list[dict[str, Any]]:
        """Messages → the list of messages. What the format or its target cannot hold is added to `losses`."""
        return dump_conversation(self.unmarked(messages, target, quirks, losses, ()))

    def unmarked(
        self,
        messages: Iterable[Message],
        target: Origin | None,
        quirks: Any,
        losses: list[Loss] | None,
        tools: Sequence[ToolSpec],
    ) -> Outgoing:
        """A conversation, without its marks, made ready for its dump. `tools`: those of the request."""
        left, places = unmarked_all(messages)
        out = self.outgoing(self, left, target, quirks or self.quirks(), losses, tools)
        return msgspec.structs.replace(out, places=places) if places else out

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> dict[str, Any]:
        """The neutral request → a request's body. `options` are written last and have the last word."""
        return cast(
            "dict[str, Any]",
            self.dump_http(request, target=target, quirks=quirks, losses=losses).body,
        )

    def load_response(
        self,
        body: bytes | Mapping[str, Any],
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> list[Event]:
        """A whole response, or a recorded stream → the events that its stream would have been."""
        return self.decoder_type(self, origin, new_id).whole(body)

    def dump_response(
        self, events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
    ) -> dict[str, Any]:
        """Events → a whole response, or, where one of them is an error, its body. `envelope`: as for `encoder`."""
        return self.whole_response(self, events, losses, envelope)

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> Decoder:
        """A decoder of one response."""
        return self.decoder_type(self, origin, new_id)

    def encoder(self, **envelope: Any) -> Encoder:
        """An encoder of one streamed response.

        `envelope`: fields of every chunk (`id`, `model`, `created`, `system_fingerprint` …), and `include_usage` (default
        true): whether the end holds the usage, as a client asks by `stream_options`.
        """
        return self.encoder_type(self, **envelope)


class Outgoing(outgoing.Outgoing[Any], frozen=True, kw_only=True, gc=False):
    """One conversation on its way out. The fields beyond the general ones are what a vendor's quirks say."""

    chat: Chat
    """The format in which it goes."""
    roles: Mapping[str, Role]
    """The roles that the target knows."""
    blocks: Mapping[str, str] = _NOTHING
    """Media type, or its first half → the block that carries it, beyond the usual ones."""
    string_only: bool = False
    """Text is one string only, never a list of blocks."""
    tool_media: bool = False
    """Tool messages may hold media; else they follow in a user message."""
    thinking: str | None = None
    """The field for thinking that came in no field of this format; `None`: it is left out."""
    json_schema: bool = True
    """The vendor takes a schema of the output; else JSON mode stands in for it."""
    refuses: Collection[str] = ()
    """Fields of the body that the vendor refuses."""
    ways: Mapping[str, str] = _NOTHING
    """Setting → the way in which the vendor takes it, where that is not the usual one."""
    head: int = 0
    """How many system messages stand before all others, where the place of one matters."""
    bridge: str | None = None
    """What the model is made to say between results of tools and a user's message; `None`: nothing."""


def prepared(
    chat: Chat,
    messages: Sequence[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    **own: Any,
) -> Outgoing:
    """A conversation made ready for its dump; `own`: `ids`, `names` and what else differs from the usual."""
    fields = {"chat": chat, "roles": chat.roles, "tool_media": quirks.tool_media, **own}
    return outgoing.prepared(Outgoing, messages, target, quirks, losses, **fields)


def named(
    messages: Iterable[Message], tools: Sequence[ToolSpec]
) -> list[ToolSpec | ToolCallPart | ToolResultPart]:
    """All that has the name of a tool."""
    messages = tuple(messages)
    if kinds(messages).isdisjoint(_NAMED):
        return [*tools]
    pieces = [
        one
        for message in messages
        for one in message.content
        if isinstance(one, _NAMED) and one.name
    ]
    return [*tools, *pieces]
