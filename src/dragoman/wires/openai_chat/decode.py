"""Reads a response of Chat Completions: the ordinary chunk, and what a candidate has beyond the
family's.

An ordinary chunk is more text, more thinking, or more of a call's arguments, and nothing else. Nine
of ten chunks are ordinary, so they have struct types of their own, which decode only what is used.
Any other chunk does not fit these types. It is decoded as a whole JSON object and takes the
family's way.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec.structs import replace

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    as_object,
    as_text,
    drop_empty,
    merge_pieces,
    read_extra_fields,
    select_unread,
    shape_error,
)
from dragoman.codec.media import audio_type
from dragoman.event import OpenText, PartDelta
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import DataPart, Origin, ToolCallPart, Usage
from dragoman.wires.chat.citations import BESIDE, load_citations
from dragoman.wires.chat.content import load_block
from dragoman.wires.chat.decode import Decoder as ChatDecoder
from dragoman.wires.chat.decode_parts import ChatCandidate
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.openai_chat.messages import FIELDS, note_field
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.tools import load_executed_tool

__all__ = ["Decoder"]


class _Arguments(msgspec.Struct, gc=False):
    """More arguments of a call."""

    arguments: str
    name: None = None


class _Piece(msgspec.Struct, gc=False):
    """A piece of a call that has begun."""

    index: int
    function: _Arguments
    id: None = None
    custom: None = None
    extra_content: None = None


class _Delta(msgspec.Struct, gc=False):
    """What an ordinary chunk adds. A field of type None must be absent or null."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    refusal: None = None
    tool_calls: Annotated[list[_Piece], msgspec.Meta(min_length=1, max_length=1)] | None = None
    function_call: None = None
    audio: None = None
    images: None = None
    annotations: None = None
    executed_tools: None = None
    extra_content: None = None


class _Choice(msgspec.Struct, gc=False):
    """The candidate of an ordinary chunk."""

    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    error: None = None
    content_filter_results: dict[str, dict[str, bool | str]] | None = None
    """Azure sends it in every chunk."""


# A chunk in which a field of type None says something does not fit, and is read as a whole.
class _Ordinary(msgspec.Struct, gc=False):
    """An ordinary chunk."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: None = None
    error: None = None
    x_groq: None = None
    citations: None = None
    search_results: None = None


_ordinary = msgspec.json.Decoder(_Ordinary).decode


_BEFORE_TOOLS = "text before tools"
_CITED = ("text", _BEFORE_TOOLS)
_SHOWN = frozenset({"images", "audio"})
_FURTHER = frozenset({*FIELDS, "extra_content", "annotations"})


class Candidate(ChatCandidate):
    """Turns the choices of one index into the events of one message."""

    READ: ClassVar[frozenset[str]] = ChatCandidate.READ | {
        *FIELDS,
        "name",
        "padding",
        "token_id",
        "annotations",
        "extra_content",
    }
    CHOICE_READ: ClassVar[frozenset[str]] = ChatCandidate.CHOICE_READ | {"text", "error"}

    def __init__(self, chat: DialectRecord, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        """See the family's."""
        super().__init__(chat, emitter, fresh_id)
        self._fresh_id = fresh_id
        self._executed: dict[Any, ToolCallPart] = {}
        self._audio: OpenPart | None = None
        self._is_cited = False

    def end(self) -> None:
        """See the family's. A text ends with the sources that have come."""
        self._cite({})
        super().end()

    def finish(self, usage: Usage | None, origin: Origin | None, response: Json) -> None:
        """See the family's."""
        self._cite(response)
        super().finish(usage, origin, response)

    def _cite(self, response: Json) -> None:
        """Adds the sources that have come in an OpenAI stream to the text that is open. Their
        places are those in all of the text, so they wait for its end."""
        if self.open_key not in _CITED or self._is_cited:
            return
        if "annotations" in self.fields or not response.keys().isdisjoint(BESIDE):
            self._is_cited = True
            self.emitter.cite(load_citations(self.fields.get("annotations"), response))

    def note_filter(self, results: JsonMap) -> None:
        """Notes what the vendor's filter says of the answer. The last word counts."""
        self.response["content_filter_results"] = results

    def add_vendor_fields(self, message: Json) -> None:
        """Adds fields of OpenAI's Chat answer that the family does not have."""
        if _FURTHER.isdisjoint(message):
            return
        if annotations := as_list(message.get("annotations"), "annotations"):
            entries = [
                read_extra_fields(as_object(entry, "annotation"), "index") for entry in annotations
            ]
            merge_pieces(self.fields, {"annotations": entries})
        if refusal := as_text(message.get("refusal")):
            self.refused = True
            self.add_text("refusal", refusal, OpenText(native=OWN.note({}, {"field": "refusal"})))
        if not _SHOWN.isdisjoint(message):
            self._add_images(message)
            self._add_audio(message)
        self._execute(as_list(message.get("executed_tools"), "executed tools"))
        if drop_empty(function_call := as_object(message.get("function_call"), "function call")):
            self.end()
            # The older form of a call has no index. This one keeps its pieces together.
            entry = {"index": "function_call", "function": function_call}
            self.calls.add(entry, form={"field": "function_call"})
        if extra := message.get("extra_content"):
            self.fields["extra_content"] = extra

    def _add_images(self, message: Json) -> None:
        """Adds images, each of which comes whole."""
        for entry in as_list(message.get("images"), "images"):
            self.end()
            block = read_extra_fields(as_object(entry, "image"), "index")
            self.emitter.add_whole_part(note_field("images", load_block(self.chat, block)))

    def _add_audio(self, message: Json) -> None:
        """Adds spoken audio of an OpenAI answer, whose data and transcript come in pieces."""
        audio = drop_empty(as_object(message.get("audio"), "audio"))
        if not audio:
            return
        # A chunk with the expiry alone ends audio that has begun. It begins none.
        if self._audio is None and audio.keys().isdisjoint({"id", "data", "transcript"}):
            return
        try:
            data = b64decode(as_text(audio.pop("data", None)), validate=True)
        except ValueError:
            raise shape_error(message["audio"], "audio that is no base64") from None
        if self._audio is None:
            self.end()
            part = DataPart(b"", "audio/pcm", native=OWN.note({}, {"field": "audio"}))
            self._audio = self.emitter.ensure_part("audio", part)
        if data and not self._audio.deltas and isinstance(self._audio.part, DataPart):
            # The first bytes show the container, which the response does not name.
            self._audio.part = replace(self._audio.part, mime_type=audio_type(data) or "audio/pcm")
        self.emitter.add(self._audio, data)
        audio_fields = OWN.open_fields(self._audio.native)
        audio["transcript"] = audio_fields.get("transcript", "") + as_text(audio.get("transcript"))
        audio_fields.update(drop_empty(audio))

    def _execute(self, entries: list[Any]) -> None:
        """Adds tools that the vendor ran: first the OpenAI Chat call, then its result, in the same
        chunk or a later one."""
        for value in entries:
            entry = as_object(value, "executed tool")
            call, result = load_executed_tool(entry, iter(self._fresh_id, None))
            index = as_index(entry.get("index", len(self._executed)))
            if index not in self._executed:
                # Sources of a text may come after the tools that found them.
                if self.open_key in _CITED:
                    self.open_key = _BEFORE_TOOLS
                else:
                    self.end()
                self._executed[index] = call
                self.emitter.add_whole_part(call)
            if result is not None:
                begun_call = self._executed[index]
                self.emitter.add_whole_part(replace(result, id=begun_call.id, name=begun_call.name))


class Decoder(ChatDecoder):
    """Reads one response of Chat Completions."""

    CANDIDATE: ClassVar[type[ChatCandidate]] = Candidate
    READ: ClassVar[frozenset[str]] = ChatDecoder.READ | {"obfuscation", "prompt", "x_groq"}

    def read_fast(self, payload: bytes) -> bool:
        """Reads an ordinary chunk of an OpenAI Chat Completions stream. False if it is another
        one."""
        try:
            choice = _ordinary(payload).choices[0]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        delta, candidate = choice.delta, self._candidates.get(choice.index)
        if candidate is None:
            return False
        if choice.content_filter_results:
            candidate.note_filter(choice.content_filter_results)
        text, thought = delta.content, delta.reasoning_content or delta.reasoning
        if delta.tool_calls is not None:
            piece = delta.tool_calls[0]
            # Beside a text, or while one is open, a piece of a call takes the longer way, which
            # ends the text.
            alone = not text and not thought and candidate.open_part is None
            return alone and candidate.calls.add_arguments(piece.index, piece.function.arguments)
        if text and not thought:
            if candidate.open_key != "text":
                candidate.add_text("text", text)
                return True
            run: Any = candidate.open_part
            run.deltas.append(text)
            self._events.append(PartDelta(candidate.message_id, run.index, text))
            return True
        if thought and not text and not delta.reasoning:
            candidate.think(("reasoning_content",), thought)
            return True
        return False

    def note(self, chunk: Json) -> None:
        """Notes what in an OpenAI chunk is not content. Groq has its usage in another field."""
        if "x_groq" not in chunk:
            super().note(chunk)
            return
        groq = as_object(chunk["x_groq"], "x_groq")
        self.add_usage(groq.get("usage"))
        super().note(chunk)
        if groq_fields := select_unread(groq, ("id", "usage")):
            self._response["x_groq"] = groq_fields
