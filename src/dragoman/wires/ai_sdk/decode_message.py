"""The messages of a turn, as chunks tell of them: the model's of each step, and the user's with the results of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, rest
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import parse_call
from dragoman.message import (
    Content,
    FinishReason,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk.quirks import OURS
from dragoman.wires.ai_sdk_messages.reading import Reading, load_parts
from dragoman.wires.ai_sdk_messages.ui import UI_DIALECT

__all__ = ["Turn"]

_WHOLE = ("file", "source-url", "source-document", "reasoning-file", "custom")
_INPUT, _OUTPUT = "tool-input-", "tool-output-"


class _Open:
    """A part that is told."""

    __slots__ = ("call", "index", "message_id", "metadata", "text")

    def __init__(self, message_id: str, index: int, metadata: Any) -> None:
        self.message_id, self.index, self.metadata = message_id, index, metadata
        self.text: list[str] = []
        self.call: dict[str, Any] = {}


class Turn:
    """Feed it chunks; it adds events."""

    def __init__(
        self, events: list[Event], origin: Origin | None, new_id: Callable[[], str] | None
    ) -> None:
        self._events, self._origin, self._new_id = events, origin, new_id
        self._turn = ""
        self._count = 0
        self._message: str | None = None
        """Id of the open message."""
        self._step: list[str] = []
        """Ids of the step's messages."""
        self._role = Role.MODEL
        self._index = 0
        self._texts: dict[tuple[str, str], _Open] = {}
        self._inputs: dict[str, _Open] = {}
        self._calls: dict[str, tuple[ToolCallPart, dict[str, Any]]] = {}
        """Those without a result: the call, and its part."""
        self._metadata: dict[str, Any] = {}
        """Of the UI message; the message that is closed next has it."""

    @property
    def open_calls(self) -> list[ToolCallPart]:
        """The calls that wait for their results."""
        return [call for call, _ in self._calls.values()]

    def name(self, turn: str) -> None:
        """The id of the UI message."""
        self._turn = turn or self._turn

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Metadata of the UI message, added to what is known of it; objects in it are merged."""
        left = [(self._metadata, rest(metadata, OURS))]
        while left:
            into, given = left.pop()
            for name, value in given.items():
                known = into.get(name)
                if isinstance(known, dict) and isinstance(value, dict):
                    left.append((if_object(known), if_object(value)))
                else:
                    into[name] = value

    def take(self, kind: str, chunk: Mapping[str, Any]) -> bool:
        """A chunk of a part → whether it was one.

        Raises:
            DecodeError: it goes on with what was not begun, or cannot be read.
        """
        head, _, tail = kind.rpartition("-")
        if head in ("text", "reasoning"):
            self._text(head, tail, chunk)
        elif kind.startswith(_INPUT):
            self._input(kind.removeprefix(_INPUT), chunk)
        elif kind.startswith(_OUTPUT):
            self._output(kind.removeprefix(_OUTPUT), chunk)
        elif kind in _WHOLE:
            self.mark(chunk)
        else:
            return False
        return True

    def mark(self, chunk: Mapping[str, Any]) -> None:
        """A part that comes whole."""
        for piece in self._loaded(dict(chunk))[0]:
            self._add(piece)

    def next(self) -> None:
        """The next step: another message."""
        if self._message is not None and (self._role is Role.USER or self._index):
            self._close(None)
        self._step = [] if self._message is None else [self._message]

    def drop(self) -> list[str]:
        """The step is taken back → the messages that are void."""
        dropped, self._step, self._message = self._step, [], None
        self._texts.clear()
        self._inputs.clear()
        self._calls = {
            id_: each for id_, each in self._calls.items() if each[1].get("message") not in dropped
        }
        return dropped

    def end(self, reason: FinishReason | None) -> None:
        """The end of the turn. What is open is cut."""
        for found in [*self._texts.values(), *self._inputs.values()]:
            self._cut(found)
        self._texts.clear()
        self._inputs.clear()
        if self._message is not None:
            self._close(reason)

    # texts

    def _text(self, kind: str, step: str, chunk: Mapping[str, Any]) -> None:
        key = (kind, if_text(chunk.get("id")))
        if step == "start":
            found = self._texts[key] = self._opened(
                OpenText() if kind == "text" else ThinkingPart("")
            )
            found.metadata = chunk.get("providerMetadata")
            return
        found = self._texts.get(key)
        if found is None:
            raise DecodeError(f"a {kind}-{step} for {key[1]!r:.100} comes without its start")
        found.metadata = chunk.get("providerMetadata") or found.metadata
        if step == "delta":
            delta = if_text(chunk.get("delta"))
            if delta:
                found.text.append(delta)
                self._events.append(PartDelta(found.message_id, found.index, delta))
            return
        if step != "end":
            return
        del self._texts[key]
        self._end_text(kind, found, chunk)

    def _end_text(self, kind: str, found: _Open, chunk: Mapping[str, Any]) -> None:
        part: dict[str, Any] = {"type": kind, "text": "".join(found.text), "state": "done"}
        if found.metadata is not None:
            part["providerMetadata"] = found.metadata
        if "citations" in chunk:
            part["citations"] = chunk["citations"]
        pieces = self._loaded(part)[0]
        for piece in pieces[:1]:
            self._events.append(PartFinished(found.message_id, found.index, piece))

    # calls

    def _input(self, step: str, chunk: Mapping[str, Any]) -> None:
        id_ = if_text(chunk.get("toolCallId"))
        if step == "start":
            found = self._opened(ToolCallPart(id_, if_text(chunk.get("toolName")), {}))
            found.call = {
                "toolName": chunk.get("toolName"),
                "dynamic": chunk.get("dynamic"),
                "title": chunk.get("title"),
            }
            self._inputs[id_] = found
            return
        if step == "delta":
            if (found := self._inputs.get(id_)) is None:
                raise DecodeError(f"a tool-input-delta for {id_!r:.100} comes without its start")
            if delta := if_text(chunk.get("inputTextDelta")):
                found.text.append(delta)
                self._events.append(PartDelta(found.message_id, found.index, delta))
            return
        found = self._inputs.pop(id_, None)
        name = if_text(chunk.get("toolName"))
        if found is None:
            found = self._opened(ToolCallPart(id_, name, {}))
        part = _tool_part(id_, name, chunk)
        part |= {"state": "input-available", "input": chunk.get("input")}
        if step == "error":
            raw = "".join(found.text) or chunk.get("input")
            call = parse_call(ToolCallPart(id_, name, {}), raw if isinstance(raw, str) else "{")
        else:
            pieces = [piece for piece in self._loaded(part)[0] if isinstance(piece, ToolCallPart)]
            call = pieces[0] if pieces else ToolCallPart(id_, name, {})
        self._events.append(PartFinished(found.message_id, found.index, call))
        self._calls[id_] = call, {**part, "message": found.message_id}

    def _output(self, step: str, chunk: Mapping[str, Any]) -> None:
        id_ = if_text(chunk.get("toolCallId"))
        if chunk.get("preliminary") is True:
            return
        known = self._calls.pop(id_, None)
        call, part = known or (
            ToolCallPart(id_, "", {}),
            {"type": "dynamic-tool", "toolName": "", "toolCallId": id_},
        )
        shown = {name: value for name, value in part.items() if name != "message"} | {
            "state": f"output-{step}"
        }
        shown |= {
            name: chunk[name]
            for name in ("output", "errorText", "providerExecuted")
            if name in chunk
        }
        if (metadata := chunk.get("providerMetadata")) is not None:
            shown["resultProviderMetadata"] = metadata
        shown.setdefault("input", dict(call.arguments))
        pieces, answers = self._loaded(shown)
        for result in [each for each in (*answers, *pieces) if isinstance(each, ToolResultPart)][
            :1
        ]:
            if result.run_by != "provider" and (self._role is Role.MODEL or self._message is None):
                self._close_if_open()
                self._begin(Role.USER)
            self._add(result)

    # messages

    def _opened(self, part: Content | OpenText) -> _Open:
        if self._message is None or self._role is Role.USER:
            self._close_if_open()
            self._begin(Role.MODEL)
        assert self._message is not None
        found = _Open(self._message, self._index, None)
        self._index += 1
        self._events.append(PartStarted(found.message_id, found.index, part))
        return found

    def _add(self, piece: Content) -> None:
        if isinstance(piece, ToolResultPart) and self._message is not None:
            index, self._index = self._index, self._index + 1
            self._events.append(PartStarted(self._message, index, piece))
            self._events.append(PartFinished(self._message, index, piece))
            return
        found = self._opened(piece)
        self._events.append(PartFinished(found.message_id, found.index, piece))

    def _begin(self, role: Role) -> None:
        self._count += 1
        minted = self._new_id() if self._new_id is not None else f"message-{self._count}"
        if self._turn:
            minted = self._turn if self._count == 1 else f"{self._turn}:{self._count - 1}"
        self._turn = self._turn or minted
        self._message, self._role, self._index = minted, role, 0
        self._step.append(minted)
        origin = self._origin if role is Role.MODEL else None
        self._events.append(MessageStarted(minted, role, origin=origin, turn=self._turn))

    def _close_if_open(self) -> None:
        if self._message is not None:
            self._close(None)

    def _close(self, reason: FinishReason | None) -> None:
        assert self._message is not None
        own = reason if self._role is Role.MODEL else None
        if (
            self._role is Role.MODEL
            and own is None
            and any(part.get("message") == self._message for _, part in self._calls.values())
        ):
            own = FinishReason.tool_calls
        described, self._metadata = self._metadata, {}
        self._events.append(MessageFinished(self._message, own, metadata=described))
        self._message = None

    def _cut(self, found: _Open) -> None:
        if found.call:
            raw = "".join(found.text)
            name = if_text(found.call.get("toolName"))
            id_ = next((each for each, one in self._inputs.items() if one is found), "")
            self._events.append(
                PartFinished(
                    found.message_id, found.index, ToolCallPart(id_, name, {}, raw=raw, state="cut")
                )
            )
            return
        kind = next((key[0] for key, one in self._texts.items() if one is found), "text")
        if found.text or found.metadata is not None:
            self._end_text(kind, found, {})

    def _loaded(self, part: dict[str, Any]) -> tuple[list[Content], list[Content]]:
        """A part of a UI message → pieces, and results.

        Raises:
            DecodeError: it cannot be read.
        """
        it = Reading(UI_DIALECT, Role.MODEL)
        try:
            load_parts([part], it, "the stream")
        except HistoryError as error:
            raise DecodeError(error.message) from error
        return list(it.pieces), list(it.answers)


def _tool_part(id_: str, name: str, chunk: Mapping[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = (
        {"type": "dynamic-tool", "toolName": name}
        if chunk.get("dynamic") is True
        else {"type": f"tool-{name}"}
    )
    part["toolCallId"] = id_
    for field in ("title", "toolMetadata", "providerExecuted"):
        if chunk.get(field) is not None:
            part[field] = chunk[field]
    if chunk.get("providerMetadata") is not None:
        part["callProviderMetadata"] = if_object(chunk["providerMetadata"])
    return part
