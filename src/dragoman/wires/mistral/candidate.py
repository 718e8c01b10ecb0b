"""One candidate of an answer: what its deltas add up to. Text, thinking, calls, each a part in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import as_list, as_object, as_text, gather, if_objects, telling, unread
from dragoman.errors import DragomanError
from dragoman.event import OpenText
from dragoman.message import Content, Native, Origin, ThinkingPart, ToolResultPart, Usage
from dragoman.wires.mistral.chunks import load_chunk
from dragoman.wires.mistral.outcome import AT_LIMIT, dump_finish, load_finish
from dragoman.wires.mistral.quirks import OWN
from dragoman.wires.mistral.streamed_calls import StreamedCalls
from dragoman.wires.mistral.thinking import item_text

__all__ = ["Candidate"]

_READ = ("role", "content", "tool_calls", "tool_call_id", "name", "index", "prefix")
_CHOICE_READ = ("index", "delta", "message", "messages", "finish_reason", "logprobs")


class Candidate:
    """Turns the choices of one index into the events of one message."""

    def __init__(self, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        self.emitter = emitter
        self.run: OpenPart | None = None
        """The text or thinking that is being told."""
        self.kind = ""
        """What `run` tells: `text` or `thinking`."""
        self.closed: bool | None = None
        """What the provider said last of whether the thinking in `run` is closed."""
        self.said: str | None = None
        """The provider's reason to stop; `None`: it has not stopped yet."""
        self._calls = StreamedCalls(emitter, fresh_id)
        self._response: dict[str, Any] = {}
        self._beside: dict[str, Any] = {}
        self._divided = 0
        """Deltas of `run` that its spelling counts."""

    def add(self, choice: dict[str, Any], *, whole: bool) -> None:
        """One choice of a chunk, or of a `whole` answer (which says all that it says in one step).

        Raises:
            DecodeError: it is not what a choice should be, or tells of a call that nobody began.
        """
        self.emitter.start()
        whole = (whole or "delta" not in choice) and ("message" in choice or "messages" in choice)
        told = as_list(choice.get("messages"), "messages") if whole else []
        for one in told or [choice.get("message" if whole else "delta")]:
            message = as_object(one, "message")
            if message.get("tool_call_id"):
                self._answer(message)
            else:
                self._speak(message.get("content"), whole=whole)
                for call in as_list(message.get("tool_calls"), "tool calls"):
                    self.end()
                    self._calls.add(as_object(call, "tool call"), whole=whole)
            self._beside.update(unread(message, _READ))
        self._note(choice)

    def tell(self, kind: str, delta: str) -> None:
        """More text, or more thinking. Another kind than before begins another part."""
        if delta:
            self.emitter.add(self.part(kind), delta)

    def part(self, kind: str) -> OpenPart:
        """The text or thinking that is being told, or another that begins."""
        if self.run is None or kind != self.kind:
            self.end()
            self.run = self.emitter.part(kind, ThinkingPart() if kind == "thinking" else OpenText())
            self.kind = kind
        return self.run

    def end(self) -> None:
        """Ends what is being told."""
        if self.run is not None:
            if self.closed is not None:
                OWN.open_fields(self.run.native)["closed"] = self.closed
            if "spelling" in OWN.notes(self.run.native):
                self._divide(self.run)
            self.emitter.close(self.run)
        self.run, self.kind, self.closed, self._divided = None, "", None, 0

    def finish(self, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer is complete. `response`: what stood around its choices."""
        self.emitter.start()
        self.end()
        self._calls.close(at_limit=self.said in AT_LIMIT)
        reason = load_finish(self.said, calls=bool(self.emitter.calls()))
        native = self._native(response, {} if dump_finish(reason) == self.said else {"finish_reason": self.said})
        self.emitter.finish(reason, usage, origin=origin, native=native)

    def fail(self, error: DragomanError, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer ends with an error."""
        self.emitter.fail(error, usage, origin=origin, native=self._native(response))

    def _native(self, response: dict[str, Any], said: dict[str, Any] = {}) -> Native:
        """What stood beside the message's content, and around it."""
        return OWN.note(message=self._beside, response=telling({**response, **self._response, **said}))

    def _speak(self, content: Any, *, whole: bool) -> None:
        if not isinstance(content, list):
            self.tell("text", as_text(content))
            return
        for one in as_list(content, "content"):
            chunk = as_object(one, "content chunk")
            kind = chunk.get("type")
            if whole or kind not in ("text", "thinking"):
                self.end()
                self._whole(load_chunk(chunk))
            elif kind == "text":
                self.tell("text", as_text(chunk.get("text")))
                if self.run is not None and (own := unread(chunk, ("type", "text"))):
                    OWN.open_fields(self.run.native).update(own)
            else:
                self._think(chunk)

    def _whole(self, part: Content) -> None:
        if part != ThinkingPart() and getattr(part, "kind", None) != "text":
            self.emitter.whole(part)

    def _think(self, chunk: dict[str, Any]) -> None:
        """More thinking; without any it is the end of it. What is no text in it has its place by the spelling `items`."""
        told = chunk.get("thinking")
        items = [{"type": "text", "text": told}] if isinstance(told, str) else if_objects(told)
        own = unread(chunk, ("type", "thinking"))
        if items or own:
            run = self.part("thinking")
            for item in items:
                text = as_text(item.get("text")) if item.get("type") == "text" else ""
                if not text:
                    self._refer(run, item)
                self.emitter.add(run, text)
            self.closed = own.pop("closed", self.closed)
            if own:
                OWN.open_fields(run.native).update(own)
        if not items and self.kind == "thinking":
            self.end()

    def _refer(self, run: OpenPart, item: dict[str, Any]) -> None:
        """Something in the thinking that is no text."""
        if item_text(item) is None and item.get("type") != "text":
            self._divide(run).append(item)

    def _divide(self, run: OpenPart) -> list[Any]:
        """The spelling `items` of the thinking, with all the text that has come."""
        items: list[Any] = OWN.open_notes(run.native).setdefault("spelling", {}).setdefault("items", [])
        if length := sum([len(run.deltas[place]) for place in range(self._divided, len(run.deltas))]):
            items.append(length)
        self._divided = len(run.deltas)
        return items

    def _answer(self, message: dict[str, Any]) -> None:
        """The result of a tool that the provider ran itself."""
        self.end()
        if (call := self._calls.answered(as_text(message["tool_call_id"]))) is not None:
            result = ToolResultPart(call.id, call.name, message.get("content"), run_by="provider")
            self.emitter.whole(result)

    def _note(self, choice: dict[str, Any]) -> None:
        """What is no content: the reason to stop, probabilities, fields beyond those known."""
        if isinstance(said := choice.get("finish_reason"), str) and said:
            self.said = said
        if logprobs := telling(as_object(choice.get("logprobs"), "logprobs")):
            gather(self._response.setdefault("logprobs", {}), logprobs)
        self._response.update(unread(choice, _CHOICE_READ))
