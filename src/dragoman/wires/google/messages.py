"""The conversation: `{"systemInstruction": …, "contents": […]}` ↔ messages, exactly and in order. A content is a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from dragoman.codec.ids import call_ids, fitted
from dragoman.codec.json_values import bounded, if_list, if_object
from dragoman.codec.replay import readable
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires.google.keys import camelled, given, not_usual
from dragoman.wires.google.pairing import Pairing, is_unnamed
from dragoman.wires.google.parts import load_part
from dragoman.wires.google.pieces import Writer
from dragoman.wires.google.quirks import OWN, Quirks

__all__ = ["dump_messages", "load_conversation", "load_messages", "sent_names", "write_conversation"]

_ROLES = {"user": Role.USER, "model": Role.MODEL, "function": Role.USER, "tool": Role.USER}
_Content = dict[str, Any]


def load_messages(payload: Any, *, origin: Origin | None = None) -> list[Message]:
    """The wire's conversation → messages. `origin` is given to the model's messages.

    Raises:
        HistoryError: the payload is no conversation of this format.
    """
    if not isinstance(payload, Mapping):
        raise HistoryError(
            'the payload must be {"systemInstruction": …, "contents": […]}, of a generateContent request'
        )
    return load_conversation(bounded(cast("Mapping[str, Any]", payload)), origin)


def load_conversation(payload: Mapping[str, Any], origin: Origin | None) -> list[Message]:
    """As `load_messages`, of an object that is known to be bounded in depth."""
    payload = camelled(payload, set())
    contents: Any = payload.get("contents") or []
    if not isinstance(contents, list | dict):
        raise HistoryError('"contents" must be a list')
    pairing = Pairing()
    out: list[Message] = []
    if payload.get("systemInstruction") is not None:
        out.append(_load(Role.SYSTEM, _object(payload["systemInstruction"], "systemInstruction"), pairing, ""))
    before: Message | None = None
    for position, content in enumerate([if_object(contents)] if isinstance(contents, dict) else if_list(contents)):
        content = _object(content, f"contents[{position}]")
        given: Any = content.get("role") or "user"
        role = _ROLES.get(given) if isinstance(given, str) else None
        if role is None:
            raise HistoryError(f'"contents[{position}]" has the role {given!r}; there are user and model')
        if role is Role.MODEL and (before is None or before.role is not Role.MODEL):
            pairing.round()
        message = _load(role, content, pairing, "user" if role is Role.USER else "model")
        if role is Role.MODEL:
            message = message.replace(origin=origin)
        elif before is not None and _joins(message, before):
            message = message.replace(native=OWN.with_form(message.native, turn="as is"))
        out.append(message)
        before = message
    return out


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """Messages → `{"systemInstruction": …, "contents": […]}` (no `systemInstruction` where there is none)."""
    messages = list(messages)
    quirks = quirks or Quirks()
    model = (target.model if target else None) or ""
    return write_conversation(messages, sent_names(messages, quirks, target), model, target, quirks, losses)


def sent_names(
    messages: Sequence[Message], quirks: Quirks, target: Origin | None, tools: Sequence[ToolSpec] = ()
) -> dict[str, str]:
    """Name of each function of the request and of its history → the name to send. One that breaks the rules and was
    recorded so goes back as it is where there is no target."""
    calls = [p for m in messages for p in m.content if isinstance(p, ToolCallPart) and p.run_by != "provider"]
    recorded = (*tools, *calls) if target is None else ()
    as_is = [named.name for named in recorded if OWN.form(named.native).get("name") == "as is"]
    return fitted([named.name for named in (*tools, *calls)], quirks.names, as_is=as_is)


def write_conversation(
    messages: Sequence[Message],
    names: Mapping[str, str],
    model: str,
    target: Origin | None,
    quirks: Quirks,
    losses: list[Loss] | None,
) -> dict[str, Any]:
    """As `dump_messages`, with the names of functions and the model that the request tells."""
    losses = [] if losses is None else losses
    calls = [p for m in messages for p in m.content if isinstance(p, ToolCallPart) and p.run_by != "provider"]
    unnamed = {call.id for call in calls if is_unnamed(call.native)}
    called = {call.id: call.name for call in calls}
    order = {call.id: position for position, call in enumerate(calls)}
    ids = call_ids(messages, quirks.ids, as_is=None if target else _as_it_is)
    writers = [
        Writer(quirks, losses, names, unnamed, called, model, position, message.role, why, ids, target is not None)
        for position, (message, why) in enumerate(zip(messages, readable(messages, target, quirks.reads), strict=True))
    ]
    head = next((place for place, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    payload: dict[str, Any] = {}
    if head:  # D-120, as decision 20b reads it
        parts = [part for place in range(head) for part in writers[place].parts(messages[place].content)]
        if parts or "parts" in OWN.form(messages[0].native):
            payload["systemInstruction"] = _content(messages[0], parts, "")
    contents: list[_Content] = []
    joined: Message | None = None
    for writer, message in zip(writers[head:], messages[head:], strict=True):
        content = _entry(writer, _in_order(message, unnamed, order))
        if content is None:
            continue
        if joined is not None and _joins(message, joined) and "turn" not in OWN.form(message.native):
            before = if_list(contents[-1].get("parts"))
            contents[-1] = {**contents[-1], "parts": [*before, *if_list(content.get("parts"))]}  # D-121
        else:
            contents.append(content)
        joined = message
    if target is not None and contents and contents[0].get("role") == "model":
        losses.append(Loss(head, None, "beginning", "the API wants the user to speak first; a placeholder does"))
        contents.insert(0, {"role": "user", "parts": [{"text": quirks.opening}]})
    return {**payload, "contents": contents}


def _load(role: Role, content: _Content, pairing: Pairing, usual: str) -> Message:
    told: dict[str, Any] = {}
    if usual and content.get("role") != usual:
        told["role"] = content.get("role", "absent")
    own = {key: value for key, value in content.items() if key not in (("role", "parts") if usual else ("parts",))}
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        told["parts"] = not_usual(content, "parts")
        parts = []
    pieces = [load_part(_object(part, "a part"), pairing) for part in cast("list[Any]", parts)]
    return Message(role, tuple(pieces), native=OWN.note(own, form=told))


def _content(message: Message, parts: list[dict[str, Any]], usual: str) -> _Content:
    told = OWN.form(message.native)
    content = OWN.fields(message.native)
    if usual and (role := told.get("role", usual)) != "absent":
        content["role"] = role
    if parts or "parts" not in told:
        return {**content, "parts": parts}
    return {**content, **given(told["parts"], "parts")}


def _entry(writer: Writer, message: Message) -> _Content | None:
    """A content; `None` where nothing of it can be sent."""
    parts = writer.parts(message.content)
    if not parts and "parts" not in OWN.form(message.native):
        writer.lose(None, "message", "nothing of it can be sent, and the API takes no empty content")
        return None
    if message.role is Role.SYSTEM:
        writer.lose(None, "system message", "the API takes none within the conversation; sent as a marked user text")
        return {"role": "user", "parts": [{"text": f"<system>\n{message.text}\n</system>"}]}
    return _content(message, parts, message.role.value)


def _in_order(message: Message, unnamed: set[str], order: Mapping[str, int]) -> Message:
    """The message with results that have no id to send in the order of their calls, name by name."""
    content = list(message.content)
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(content):
        if isinstance(piece, ToolResultPart) and piece.id in unnamed:
            places.setdefault(piece.name, []).append(place)
    for group in places.values():
        for place, source in zip(
            group, sorted(group, key=lambda p: order[cast("Any", message.content[p]).id]), strict=True
        ):
            content[place] = message.content[source]
    return message.replace(content=tuple(content)) if len(places) else message


def _joins(message: Message, before: Message) -> bool:
    """Whether both hold results of one round, which the API wants in one content."""
    return message.role is before.role is Role.USER and all(
        any(isinstance(piece, ToolResultPart) for piece in one.content) for one in (message, before)
    )


def _as_it_is(_: ToolCallPart | ToolResultPart) -> bool:
    """Ids stay as they are where nothing is sent anywhere."""
    return True


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HistoryError(f'"{what}" must be an object')
    return cast("dict[str, Any]", value)
