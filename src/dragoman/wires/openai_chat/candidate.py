"""One candidate of an answer: what its deltas add up to. Text, thinking, calls, media, each a part in its place."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import as_index, as_list, as_object, as_text, gather, malformed, rest, telling, unread
from dragoman.codec.media import audio_type
from dragoman.errors import DragomanError
from dragoman.event import OpenText
from dragoman.message import Content, DataPart, Native, Origin, ThinkingPart, ToolCallPart, Usage
from dragoman.wires.openai_chat.assistant import in_field
from dragoman.wires.openai_chat.calls import load_executed
from dragoman.wires.openai_chat.content import load_block
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.streamed_calls import StreamedCalls
from dragoman.wires.openai_chat.thinking import DETAILS, PLAIN, load_detail, text_key
from dragoman.wires.openai_chat.usage import dump_finish, load_finish

__all__ = ["Candidate"]

_MERGED_DETAILS = ("reasoning.text", "reasoning.summary")
_SENT_BACK = ("annotations", "extra_content")
"""Fields of the message that go back with it; other unknown ones are told as metadata and never sent."""
_READ = frozenset(
    {"role", "content", "refusal", "images", "audio", "executed_tools", "function_call", "tool_calls"}
    | {"name", "padding", "token_id", *PLAIN, DETAILS, *_SENT_BACK}
)
_THOUGHT = frozenset({*PLAIN, DETAILS})
_SHOWN = frozenset({"images", "audio"})
_CHOICE_READ = frozenset({"index", "delta", "message", "finish_reason", "logprobs", "text", "error"})


class Candidate:
    """Turns the choices of one index into the events of one message."""

    def __init__(self, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        self.emitter = emitter
        self.message_id = emitter.message_id
        self.run: OpenPart | None = None
        """The text or thinking that is being told."""
        self.kind = ""
        """What `run` tells: `text`, `refusal`, the fields of the thinking, or a detail's type and index."""
        self.said: str | None = None
        """The vendor's reason to stop; `None`: it has not stopped yet."""
        self.calls = StreamedCalls(emitter, fresh_id)
        self._fresh_id = fresh_id
        self._executed: dict[Any, ToolCallPart] = {}
        self._audio: OpenPart | None = None
        self._fields: dict[str, Any] = {}
        self._response: dict[str, Any] = {}
        self._beside: dict[str, Any] = {}
        self._refused = False

    def add(self, choice: dict[str, Any], *, whole: bool) -> None:
        """One choice of a chunk, or of a `whole` answer (which says all that it says in one step).

        Raises:
            DecodeError: it is not what a choice should be, or tells of a call that nobody began.
        """
        whole = (whole or "delta" not in choice) and "message" in choice
        told = as_object(choice.get("message" if whole else "delta"), "message")
        message = {field: value for field, value in told.items() if value is not None}
        self.emitter.start()
        if not _THOUGHT.isdisjoint(message):
            self._think(message, whole=whole)
        self._speak(message)
        if not _SHOWN.isdisjoint(message):
            self._show(message)
        self._execute(as_list(message.get("executed_tools"), "executed tools"))
        if telling(function_call := as_object(message.get("function_call"), "function call")):
            self.end()
            self.calls.add_function_call(function_call)
        for call in as_list(message.get("tool_calls"), "tool calls"):
            self.end()
            self.calls.add(as_object(call, "tool call"), whole=whole)
        self._note(choice, message)

    def tell(self, kind: str, delta: str, part: Content | None = None) -> None:
        """More of a text, or of thinking. Another kind than before begins another part."""
        if delta:
            run = self.run if kind == self.kind else None
            self.emitter.add(run or self.begin(kind, part or OpenText()), delta)

    def begin(self, kind: str, part: Content) -> OpenPart:
        """Ends what is being told, and begins `part`."""
        self.end()
        self.run, self.kind = self.emitter.part(kind, part), kind
        return self.run

    def end(self) -> None:
        """Ends what is being told."""
        if self.run is not None:
            self.emitter.close(self.run)
        self.run, self.kind = None, ""

    def filtered(self, results: Mapping[str, Any]) -> None:
        """What the vendor's filter says of the answer; the last word counts."""
        self._response["content_filter_results"] = results

    def think(self, fields: Sequence[str], delta: str) -> None:
        """More thinking, told in these fields."""
        kind = "+".join(fields)
        part = ThinkingPart(native=OWN.note({}, None if kind == PLAIN[0] else {"fields": list(fields)}))
        self.tell(kind, delta, part)

    def finish(self, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer is complete. `response`: what stood around its choices."""
        self.emitter.start()
        self.calls.close(at_limit=self.said == "length")
        reason = load_finish(self.said, calls=bool(self.emitter.calls()), refused=self._refused)
        native = self._native(response, {} if dump_finish(reason) == self.said else {"finish_reason": self.said})
        self.emitter.finish(reason, usage, origin=origin, native=native)

    def fail(self, error: DragomanError, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer ends with an error."""
        self.emitter.fail(error, usage, origin=origin, native=self._native(response))

    def _native(self, response: dict[str, Any], said: dict[str, Any] = {}) -> Native:
        """The message's own fields; what stood beside its content, and around it."""
        around = telling({**response, **self._response, **said})
        return OWN.note(self._fields, message=self._beside, response=around)

    def _think(self, message: dict[str, Any], *, whole: bool) -> None:
        details = [as_object(one, "reasoning detail") for one in as_list(message.get(DETAILS), "reasoning details")]
        text = "".join([as_text(entry.get(text_key(entry.get("type")))) for entry in details])
        again = [field for field in PLAIN if text and message.get(field) == text]
        for entry in details:
            self._think_detail(entry, again, whole=whole)
        texts: dict[str, list[str]] = {}
        for field in PLAIN:
            if field not in again and (whole or not text):  # pieces of a stream are not cut alike in all fields
                texts.setdefault(as_text(message.get(field)), []).append(field)
        for said, fields in texts.items():
            if said:
                self.think(fields, said)

    def _think_detail(self, entry: dict[str, Any], again: list[str], *, whole: bool) -> None:
        """One of `reasoning_details`. Texts and summaries come in pieces, all else is whole. `again`: fields that tell its
        text too."""
        key = text_key(entry.get("type"))
        text, own = as_text(entry.get(key)), rest(entry, key)
        if entry.get("type") not in _MERGED_DETAILS:
            self.end()
            self.emitter.whole(load_detail(entry))
            return
        kind = f"{entry['type']} {entry.get('index')} {entry.get('id') or ''}".strip()
        run = self.run if kind == self.kind and not whole else None
        run = run or self.begin(kind, ThinkingPart(native=OWN.note(own, {"again": again} if again else None)))
        OWN.open_fields(run.native).update(telling(own))
        self.emitter.add(run, text)

    def _speak(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list):
            for block in as_list(content, "content"):
                block = as_object(block, "content block")
                if block.get("type") == "text":
                    self.tell("text", as_text(block.get("text")))
                else:
                    self.end()
                    self.emitter.whole(load_block(block))
        else:
            self.tell("text", as_text(content))
        if refusal := as_text(message.get("refusal")):
            self._refused = True
            self.tell("refusal", refusal, OpenText(native=OWN.note({}, {"field": "refusal"})))

    def _show(self, message: dict[str, Any]) -> None:
        """Images and spoken audio."""
        for image in as_list(message.get("images"), "images"):
            self.end()
            self.emitter.whole(in_field("images", load_block(rest(as_object(image, "image"), "index"))))
        audio = telling(as_object(message.get("audio"), "audio"))
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
        own.update(telling(audio))

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
                self.emitter.whole(replace(result, id=self._executed[index].id, name=self._executed[index].name))

    def _note(self, choice: dict[str, Any], message: dict[str, Any]) -> None:
        """What is no content: the reason to stop, citations, probabilities, the vendor's own fields."""
        if isinstance(said := choice.get("finish_reason"), str) and (said or self.said is None):
            self.said = said or self.said
        if extra := message.get("extra_content"):
            self._fields["extra_content"] = extra
        if annotations := as_list(message.get("annotations"), "annotations"):
            gather(self._fields, {"annotations": [rest(as_object(one, "annotation"), "index") for one in annotations]})
        if logprobs := telling(as_object(choice.get("logprobs"), "logprobs")):
            gather(self._response.setdefault("logprobs", {}), logprobs)
        self._response.update(unread(choice, _CHOICE_READ))
        self._beside.update(unread(message, _READ))
