"""Events as documents of the year 2025 have them, in which a `message` is whole or the text so far,
and calls and results are objects or lists → events of 1.0.

A chunk holds the text of its answer so far: what is new in it is told. Calls are told when no more
of their arguments can come.
"""

from __future__ import annotations

from typing import Any, cast

from dragoman.codec.json_values import (
    if_object,
    if_objects,
    if_text,
    read_extra_fields,
    text_or_json,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.a2a.compact import continues_text, new_text

__all__ = ["SeedEvents"]

_TEXTS = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_END")
_ROLES = ("user", "system", "developer")
"""Roles other than the model's."""


class SeedEvents:
    """Rewrites objects of that shape as objects of 1.0."""

    def __init__(self) -> None:
        """Creates the reader of AG-UI events that hold a whole text, call or result."""
        self._texts = 0
        self._text: tuple[str, str] | None = None
        """Id and text of the answer that chunks opened."""
        self._calls: dict[str, Json] = {}
        """Call id → its start and arguments, until these are complete."""
        self._arguments: dict[str, Json] = {}
        """Id of a call that has not arrived → its arguments."""

    @property
    def is_open(self) -> bool:
        """True if a text is open, or a call waits for its arguments."""
        return self._text is not None or bool(self._calls)

    def read(self, fields: Json, *, is_old: bool) -> list[Json] | None:
        """Returns the AG-UI objects of 1.0 for one object, or None if it has another shape.

        Args:
            fields: the object, its type in capitals.
            is_old: True if its type was written in lower case, as those documents do.
        """
        event_type = fields["type"]
        if event_type in _TEXTS and "message" in fields and "delta" not in fields:
            return self._read_text(event_type, if_object(fields["message"]))
        if event_type in ("TOOL_CALL_START", "TOOL_CALL_ARGS") and (
            "toolCall" in fields or "toolCalls" in fields
        ):
            return self._read_calls(event_type, fields)
        if event_type == "TOOL_CALL_RESULT" and (
            "results" in fields or (is_old and "result" in fields)
        ):
            return [*self.close(), *_read_results(fields)]
        return None

    def close(self) -> list[Json]:
        """Returns the objects that are due before anything else: the end of the text, and waiting
        calls."""
        return [*self._end_text(), *self._end_calls()]

    def _read_text(self, event_type: str, message: Json) -> list[Json]:
        """Returns the AG-UI objects for a whole text, or for the text so far."""
        text, role = if_text(message.get("content")), message.get("role")
        if not message:
            return []
        if role in _ROLES:
            self._arguments.clear()
            return [*self.close(), *self._write_text(text, role)]
        out = self._end_calls()
        if event_type == "TEXT_MESSAGE_CHUNK":
            return [*out, *self._continue_text(text)]
        return [*out, *self._finish_text(text)]

    def _continue_text(self, text: str) -> list[Json]:
        """Returns the AG-UI objects for the text so far. A text that does not continue the one
        before starts another answer."""
        id_, before = self._text or ("", "")
        # an earlier state of the text that came late
        if id_ and before != text and before.startswith(text):
            return []
        out: list[Json] = []
        if not id_ or not continues_text(text, before):
            start = self._start_text("assistant")
            out = [*([_text_end(id_)] if id_ else []), start]
            id_, before = start["messageId"], ""
        self._text = id_, text
        return [*out, *_text_content(id_, new_text(text, before))]

    def _finish_text(self, text: str) -> list[Json]:
        """Returns the AG-UI objects for the whole text of an answer, whose beginning may have been
        streamed."""
        if not text:
            return self._end_text()
        return [*self._continue_text(text), *self._end_text()]

    def _write_text(self, text: str, role: str) -> list[Json]:
        """Returns start, content and end of a text."""
        start = self._start_text(role)
        return [start, *_text_content(start["messageId"], text), *self._end_text()]

    def _start_text(self, role: str) -> Json:
        """Returns the start of an AG-UI text, under a new id."""
        self._texts += 1
        self._text = f"text-{self._texts}", ""
        return {
            "type": "TEXT_MESSAGE_START",
            "messageId": self._text[0],
            "role": role,
        }

    def _end_text(self) -> list[Json]:
        """Returns the end of the open AG-UI text, if there is one."""
        if self._text is None:
            return []
        id_, _ = self._text
        self._text = None
        return [_text_end(id_)]

    def _read_calls(self, event_type: str, fields: Json) -> list[Json]:
        """Returns the AG-UI objects that calls cause. The calls themselves wait until their
        arguments are complete."""
        calls = if_objects(fields.get("toolCalls")) or if_objects([fields.get("toolCall")])
        if event_type == "TOOL_CALL_ARGS":
            for call in calls:
                self._add_arguments(call)
            return []
        text = if_text(fields.get("content"))
        ids = {_call_id(call) for call in calls}
        if self._calls.keys() <= ids:
            out = []
        else:
            out = self._end_calls()
        out += self._finish_text(text) if text else self._end_text()
        common = read_extra_fields(fields, "toolCall", "toolCalls", "content")
        for call in calls:
            self._add_call(call, common)
        return out

    def _add_arguments(self, call: Json) -> None:
        """Merges a piece of arguments into its AG-UI call, or stores it until the call arrives."""
        id_, arguments = _call_id(call), call.get("arguments")
        if not isinstance(arguments, dict):
            return
        target = self._arguments
        if id_ in self._calls:
            target = self._calls[id_]
            if not isinstance(target["arguments"], dict):
                target["arguments"] = {}
            target, id_ = cast("dict[str, Json]", target), "arguments"
        target.setdefault(id_, {}).update(if_object(arguments))

    def _add_call(self, call: Json, common: Json) -> None:
        """Adds an AG-UI call, with earlier pieces of its arguments."""
        id_ = _call_id(call)
        function = if_object(call.get("function")) or call
        arguments: Any = function.get("arguments")
        before = {
            **if_object(self._calls.get(id_, {}).get("arguments")),
            **self._arguments.pop(id_, {}),
        }
        if isinstance(arguments, dict) or not arguments:
            arguments = {**before, **if_object(arguments)}
        name = if_text(call.get("toolCallName")) or if_text(function.get("name"))
        start = {
            **common,
            "type": "TOOL_CALL_START",
            "toolCallId": id_,
            "toolCallName": name,
        }
        self._calls[id_] = {"start": start, "arguments": arguments}

    def _end_calls(self) -> list[Json]:
        """Returns start, arguments and end of each waiting call in the AG-UI events of the seed."""
        out: list[Json] = []
        for id_, call in self._calls.items():
            content = {
                "type": "TOOL_CALL_ARGS",
                "toolCallId": id_,
                "delta": text_or_json(call["arguments"]),
            }
            out += [call["start"], content, {"type": "TOOL_CALL_END", "toolCallId": id_}]
        self._calls.clear()
        return out


def _read_results(fields: Json) -> list[Json]:
    """Returns the results in one AG-UI object, and the text beside them as a user's."""
    common = read_extra_fields(fields, "results", "result", "content", "toolCallId")
    if isinstance(fields.get("results"), list):
        listed = if_objects(fields["results"])
    else:
        listed = [fields]
    out = [
        {
            **common,
            "toolCallId": _call_id(result),
            "content": text_or_json(result.get("result")),
        }
        for result in listed
        if "result" in result
    ]
    text = if_text(fields.get("content"))
    if text and out:
        id_ = f"beside-{out[0]['toolCallId']}"
        out += [
            {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "user"},
            *_text_content(id_, text),
        ]
        out.append(_text_end(id_))
    return out


def _text_end(id_: str) -> Json:
    """Returns the end of a text."""
    return {"type": "TEXT_MESSAGE_END", "messageId": id_}


def _text_content(id_: str, delta: str) -> list[Json]:
    """Returns the content of an AG-UI text, or nothing if it is empty."""
    if delta:
        return [{"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": delta}]
    return []


def _call_id(call: JsonMap) -> str:
    """Returns the id of a call, under either of its names."""
    return if_text(call.get("toolCallId")) or if_text(call.get("id"))
