"""One candidate of an answer: what it has beyond the family's. Refusals, images, spoken audio, tools that the vendor ran."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    as_object,
    as_text,
    filled,
    gather,
    malformed,
    rest,
)
from dragoman.codec.media import audio_type
from dragoman.event import OpenText
from dragoman.message import DataPart, ToolCallPart
from dragoman.wires.chat.content import load_block
from dragoman.wires.chat.decode_parts import Candidate as ChatCandidate
from dragoman.wires.chat.dialect import Chat
from dragoman.wires.openai_chat.messages import FIELDS, in_field
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.tools import load_executed

__all__ = ["Candidate"]

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

    def __init__(self, chat: Chat, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        """See the family's."""
        super().__init__(chat, emitter, fresh_id)
        self._fresh_id = fresh_id
        self._executed: dict[Any, ToolCallPart] = {}
        self._audio: OpenPart | None = None

    def filtered(self, results: Mapping[str, Any]) -> None:
        """What the vendor's filter says of the answer; the last word counts."""
        self.response["content_filter_results"] = results

    def add_further(self, message: dict[str, Any]) -> None:
        """See the family's."""
        if _FURTHER.isdisjoint(message):
            return
        if refusal := as_text(message.get("refusal")):
            self.refused = True
            self.add_text("refusal", refusal, OpenText(native=OWN.note({}, {"field": "refusal"})))
        if not _SHOWN.isdisjoint(message):
            self._show(message)
        self._execute(as_list(message.get("executed_tools"), "executed tools"))
        if filled(function_call := as_object(message.get("function_call"), "function call")):
            self.end()
            entry = {"index": "function_call", "function": function_call}
            self.calls.add(entry, form={"field": "function_call"})
        if extra := message.get("extra_content"):
            self.fields["extra_content"] = extra
        if annotations := as_list(message.get("annotations"), "annotations"):
            gather(
                self.fields,
                {
                    "annotations": [
                        rest(as_object(one, "annotation"), "index") for one in annotations
                    ]
                },
            )

    def _show(self, message: dict[str, Any]) -> None:
        """Images and spoken audio."""
        for image in as_list(message.get("images"), "images"):
            self.end()
            self.emitter.whole(
                in_field("images", load_block(self.chat, rest(as_object(image, "image"), "index")))
            )
        audio = filled(as_object(message.get("audio"), "audio"))
        if not audio or (self._audio is None and not ({"id", "data", "transcript"} & audio.keys())):
            return
        try:
            data = b64decode(as_text(audio.pop("data", None)), validate=True)
        except ValueError:
            raise malformed(message["audio"], "audio that is no base64") from None
        if self._audio is None:
            self.end()
            part = DataPart(b"", "audio/pcm", native=OWN.note({}, {"field": "audio"}))
            self._audio = self.emitter.part("audio", part)
        if data and not self._audio.deltas and isinstance(self._audio.part, DataPart):
            self._audio.part = replace(self._audio.part, mime_type=audio_type(data) or "audio/pcm")
        self.emitter.add(self._audio, data)
        own = OWN.open_fields(self._audio.native)
        audio["transcript"] = own.get("transcript", "") + as_text(audio.get("transcript"))
        own.update(filled(audio))

    def _execute(self, entries: list[Any]) -> None:
        """Tools that the vendor ran itself: first the call, then, with it or later, its result."""
        for one in entries:
            entry = as_object(one, "executed tool")
            call, result = load_executed(entry, iter(self._fresh_id, None))
            index = as_index(entry.get("index", len(self._executed)))
            if index not in self._executed:
                self.end()
                self._executed[index] = call
                self.emitter.whole(call)
            if result is not None:
                self.emitter.whole(
                    replace(result, id=self._executed[index].id, name=self._executed[index].name)
                )
