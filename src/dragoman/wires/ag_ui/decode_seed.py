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
from dragoman.wires.a2a.compact import continuation, holds

__all__ = ["SeedEvents"]

_TEXTS = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_END")
_ROLES = ("user", "system", "developer")
"""Roles that are not the model's."""


class SeedEvents:
    """Objects of that shape → those of 1.0."""

    def __init__(self) -> None:
        self._texts = 0
        self._text: tuple[str, str] | None = None
        """Id and text of the answer that chunks have opened."""
        self._calls: dict[str, Json] = {}
        """Id of each call that came, until its arguments are whole → its fields."""
        self._arguments: dict[str, Json] = {}
        """Id of a call that did not come yet → its arguments."""

    @property
    def is_open(self) -> bool:
        """Whether something is still to be told or closed."""
        return self._text is not None or bool(self._calls)

    def read(self, fields: Json, *, is_old: bool) -> list[Json] | None:
        """One object; `None`: it is of another shape. `is_old`: its type is written as those
        documents do."""
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
            return [*self.close(), *_results(fields)]
        return None

    def close(self) -> list[Json]:
        """What is told and closed since something else begins."""
        return [*self._end_text(), *self._tell_calls()]

    def _read_text(self, event_type: str, message: Json) -> list[Json]:
        text, role = if_text(message.get("content")), message.get("role")
        if not message:
            return []
        if role in _ROLES:
            self._arguments.clear()
            return [*self.close(), *self._whole_text(text, role)]
        out = self._tell_calls()
        if event_type == "TEXT_MESSAGE_CHUNK":
            return [*out, *self._go_on(text)]
        return [*out, *self._finish(text)]

    def _go_on(self, text: str) -> list[Json]:
        """The text so far; one that does not hold what was told is another answer's."""
        id_, before = self._text or ("", "")
        # an earlier state of the text that came late
        if id_ and before != text and before.startswith(text):
            return []
        out: list[Json] = []
        if not id_ or not holds(text, before):
            start = self._start_text("assistant")
            out = [*([_end(id_)] if id_ else []), start]
            id_, before = start["messageId"], ""
        self._text = id_, text
        return [*out, *_content(id_, continuation(text, before))]

    def _finish(self, text: str) -> list[Json]:
        """The whole text of an answer, of which chunks may have told the beginning."""
        if not text:
            return self._end_text()
        return [*self._go_on(text), *self._end_text()]

    def _whole_text(self, text: str, role: str) -> list[Json]:
        start = self._start_text(role)
        return [start, *_content(start["messageId"], text), *self._end_text()]

    def _start_text(self, role: str) -> Json:
        self._texts += 1
        self._text = f"text-{self._texts}", ""
        return {"type": "TEXT_MESSAGE_START", "messageId": self._text[0], "role": role}

    def _end_text(self) -> list[Json]:
        if self._text is None:
            return []
        id_, _ = self._text
        self._text = None
        return [_end(id_)]

    def _read_calls(self, event_type: str, fields: Json) -> list[Json]:
        calls = if_objects(fields.get("toolCalls")) or if_objects([fields.get("toolCall")])
        if event_type == "TOOL_CALL_ARGS":
            for call in calls:
                self._add_arguments(call)
            return []
        text = if_text(fields.get("content"))
        ids = {_id(call) for call in calls}
        out = [] if self._calls.keys() <= ids else self._tell_calls()
        out += self._finish(text) if text else self._end_text()
        common = read_extra_fields(fields, "toolCall", "toolCalls", "content")
        for call in calls:
            self._add_call(call, common)
        return out

    def _add_arguments(self, call: Json) -> None:
        id_, arguments = _id(call), call.get("arguments")
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
        id_ = _id(call)
        function = if_object(call.get("function")) or call
        arguments: Any = function.get("arguments")
        before = {
            **if_object(self._calls.get(id_, {}).get("arguments")),
            **self._arguments.pop(id_, {}),
        }
        if isinstance(arguments, dict) or not arguments:
            arguments = {**before, **if_object(arguments)}
        name = if_text(call.get("toolCallName")) or if_text(function.get("name"))
        start = {**common, "type": "TOOL_CALL_START", "toolCallId": id_, "toolCallName": name}
        self._calls[id_] = {"start": start, "arguments": arguments}

    def _tell_calls(self) -> list[Json]:
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


def _results(fields: Json) -> list[Json]:
    """The results of one event; text beside them is the user's."""
    common = read_extra_fields(fields, "results", "result", "content", "toolCallId")
    listed = if_objects(fields["results"]) if isinstance(fields.get("results"), list) else [fields]
    out = [
        {**common, "toolCallId": _id(result), "content": text_or_json(result.get("result"))}
        for result in listed
        if "result" in result
    ]
    text = if_text(fields.get("content"))
    if text and out:
        id_ = f"beside-{out[0]['toolCallId']}"
        out += [
            {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "user"},
            *_content(id_, text),
        ]
        out.append(_end(id_))
    return out


def _end(id_: str) -> Json:
    return {"type": "TEXT_MESSAGE_END", "messageId": id_}


def _content(id_: str, delta: str) -> list[Json]:
    return [{"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": delta}] if delta else []


def _id(call: JsonMap) -> str:
    return if_text(call.get("toolCallId")) or if_text(call.get("id"))
