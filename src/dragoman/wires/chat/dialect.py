"""The base class of the family's formats: the record (`record.DialectRecord`) together with the
operations that the other rooms of the family define.

A vendor's format is an instance of `ChatDialect` if names, tables and flags say everything. A
format that does something in its own way is a subclass that overrides that operation. Where an
operation of `Wire` is a function of a room, it is taken over as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

from dragoman.codec.error_rules import read_error_info
from dragoman.codec.fit_ids import fit_names, map_call_ids
from dragoman.codec.serving import SSE_PING, Route
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Origin
from dragoman.request import ModelRequest, ToolSpec
from dragoman.wires.chat.content import READERS, choose_block_type, dump_noted_block, write_block
from dragoman.wires.chat.decode import Decoder
from dragoman.wires.chat.encode import STREAM_TYPE, Encoder, dump_response, envelope
from dragoman.wires.chat.errors import ERRORS, dump_error, error_body, error_of, load_error
from dragoman.wires.chat.messages import (
    dump_input_message,
    dump_piece,
    explain_unsendable,
    load_messages,
    prepare_conversation,
)
from dragoman.wires.chat.messages_alternating import dump_alternating
from dragoman.wires.chat.messages_votes import votes
from dragoman.wires.chat.record import (
    DialectRecord,
    ErrorLine,
    Reader,
    SettingWriter,
    find_named_pieces,
)
from dragoman.wires.chat.request import ROUTES, dump_http, load_request
from dragoman.wires.chat.settings import SETTINGS
from dragoman.wires.chat.tools import dump_tools, load_tool, load_tools
from dragoman.wires.chat.usage import COUNTS, FINISH, WORDS, load_usage

__all__ = ["ChatDialect"]


class ChatDialect(DialectRecord, frozen=True, kw_only=True, eq=False):
    """A format of the family, as a wire. The defaults are what most vendors have."""

    readers: Mapping[str, Reader] = READERS
    settings: Mapping[str, Sequence[SettingWriter]] = SETTINGS
    counts: Mapping[str, Sequence[tuple[str, ...]]] = COUNTS
    finish: Mapping[str, FinishReason] = FINISH
    words: Mapping[FinishReason, Sequence[str]] = WORDS
    errors: Sequence[ErrorLine] = ERRORS
    routes: tuple[Route, ...] = ROUTES

    decoder_type: ClassVar[type[Decoder]] = Decoder
    """Class that reads a response. A wire's own may have a short way for ordinary chunks."""
    encoder_type: ClassVar[type[Encoder]] = Encoder
    """Class that writes a streamed response."""
    whole_response: ClassVar[Callable[[Encoder, Iterable[Event], list[Loss] | None], Json]] = (
        staticmethod(dump_response)
    )
    """(encoder, events, losses) → a whole response."""

    stream_type, ping = STREAM_TYPE, SSE_PING
    load_messages, votes = load_messages, votes
    load_request, dump_http = load_request, dump_http
    envelope = envelope
    load_error, dump_error = load_error, dump_error

    choose_block_type, write_block = choose_block_type, staticmethod(write_block)
    dump_noted_block, dump_input_message = (
        staticmethod(dump_noted_block),
        staticmethod(dump_input_message),
    )
    dump_piece, explain_unsendable = staticmethod(dump_piece), staticmethod(explain_unsendable)
    load_tools, load_tool, dump_tools = load_tools, load_tool, staticmethod(dump_tools)
    load_usage = load_usage
    error_info, error_of = staticmethod(read_error_info), error_of
    error_body = staticmethod(error_body)

    def fit(
        self,
        messages: Sequence[Message],
        target: Origin | None,  # noqa: ARG002 for those that change less without one
        quirks: Any,  # noqa: ARG002 for those that have further ones
        tools: Sequence[ToolSpec],
        /,
    ) -> Json:
        """Returns for this Chat dialect the fields of an `OutgoingChat` by which a conversation
        fits the vendor: ids and names of the usual kind, and thinking in the first field for it."""
        named_pieces = find_named_pieces(messages, tools)
        return {
            # As many named pieces as tools: the conversation has no calls whose ids could change.
            "ids": map_call_ids(messages) if len(named_pieces) > len(tools) else {},
            "names": fit_names([piece.name for piece in named_pieces]),
            "thinking": next(iter(self.thinking), None),
        }

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> list[Json]:
        """Writes the list of messages in this Chat dialect. Adds to `losses` what the Chat format
        or its target cannot hold."""
        return dump_alternating(prepare_conversation(self, messages, target, quirks, losses, ()))

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Json:
        """Writes the Chat body of a request. `options` are written last and replace other
        fields."""
        http = self.dump_http(request, target=target, quirks=quirks, losses=losses)
        return cast("Json", http.body)

    def load_response(
        self,
        body: bytes | JsonMap,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> list[Event]:
        """Reads a whole Chat response, or a recorded stream, into the events that its stream would
        have given."""
        return self.decoder_type(self, origin, new_id).read_response(body)

    def dump_response(
        self, events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
    ) -> Json:
        """Writes a whole Chat response. If one of the events is an error, returns the error's body.
        `envelope`: as for `encoder`."""
        return self.whole_response(self.encoder(**envelope), events, losses)

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> Decoder:
        """Returns a decoder for one response of the Chat family."""
        return self.decoder_type(self, origin, new_id)

    def encoder(self, **envelope: Any) -> Encoder:
        """Returns an encoder for one streamed response of the Chat Completions dialect.

        `envelope`: fields of every chunk (`id`, `model`, `created`, `system_fingerprint` …), and
        `include_usage` (default true), which says whether the end holds the usage, as a client asks
        for by `stream_options`.
        """
        return self.encoder_type(self, **envelope)
