"""The model's message ⇄ a message of the role `assistant`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_objects, if_text, merged, rest
from dragoman.codec.replay import kind_of
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.openai_chat.calls import (
    dump_call,
    dump_executed,
    is_call,
    load_call,
    load_executed,
    load_function_call,
)
from dragoman.wires.openai_chat.content import dump_content, load_block, load_content
from dragoman.wires.openai_chat.outgoing import Outgoing
from dragoman.wires.openai_chat.quirks import NAME, OWN
from dragoman.wires.openai_chat.thinking import dump_thinking, load_thinking

__all__ = ["dump_assistant", "in_field", "load_assistant"]

_Loader = Callable[[Any, Iterator[str]], list[Content]]


def load_assistant(message: Mapping[str, Any], origin: Origin | None, fresh_ids: Iterator[str]) -> Message:
    """A message of the role `assistant` → the model's. `fresh_ids`: ids for calls that came without one."""
    spelled: dict[str, Any] = {}
    thinking, read = load_thinking(message)
    content: list[Content] = [*thinking, *load_content(message, None, spelled)]
    for field, load in _FIELDS.items():
        if pieces := load(message.get(field), fresh_ids):
            content += pieces
            read = (*read, field)
    native = OWN.note(rest(message, "role", "content", *read), spelled)
    return Message(Role.MODEL, tuple(content), origin=origin, native=native)


def dump_assistant(position: int, out: Outgoing) -> dict[str, Any]:
    """A model's message → a message of the role `assistant` (without text its content is null)."""
    message, reason = out.messages[position], out.reasons[position]
    results = {piece.id: piece for piece in message.content if isinstance(piece, ToolResultPart)}
    thinking: list[ThinkingPart] = []
    said: dict[str, Any] = {}
    for place, whole in enumerate(message.content):
        piece = _sendable(position, place, whole, out)
        if isinstance(piece, ThinkingPart):
            thinking.append(piece)
        elif isinstance(piece, ToolCallPart) and piece.run_by == "provider":
            entries = said.setdefault("executed_tools", [])
            entries.append(dump_executed(piece, results.get(piece.id), len(entries)))
        elif piece is not None and not isinstance(piece, ToolResultPart):
            field, value = _said(position, place, piece, out)
            if field == "content" and "tool_calls" in said:
                out.lose(position, place, "order", "this format has all text before the calls")
            said[field] = said.get(field, "") + value if isinstance(value, str) else [*said.get(field, []), value]
    spelled, own = OWN.form(message.native), OWN.fields(message.native)
    content = dump_content(said.pop("content", []), None, spelled, string_only=out.quirks.string_content)
    said |= {field: said[field][0] for field in _SINGLE & said.keys()}
    body = {"role": "assistant", **content, **dump_thinking(thinking, out.quirks.thinking), **said}
    if out.target is not None and body.get("content", "") is None and not _SAYING & said.keys():
        body["content"] = ""  # taken where null is refused
    if own and reason is not None:
        out.lose(position, None, ", ".join(own), reason)
    return merged(body, own if reason is None else {})


_SINGLE = {"audio", "function_call"}
_SAYING = {"audio", "function_call", "refusal", "tool_calls"}
"""Fields beside which a message needs no content."""


def _said(position: int, place: int, piece: Content, out: Outgoing) -> tuple[str, Any]:
    """The field of the message in which a piece is said, and what it adds to it."""
    exact = out.exact(out.messages[position])
    field = OWN.form(piece.native).get("field") if exact else None
    if isinstance(piece, ToolCallPart):
        sent = dump_call(piece, out.call_id(position, place, piece), out.name(piece.name), exact=exact)
        older = field == "function_call" and "function" in sent
        return ("function_call", sent["function"]) if older else ("tool_calls", sent)
    if field == "refusal" and isinstance(piece, TextPart):
        return "refusal", piece.text
    if field == "audio":
        return "audio", {"id": piece.id if isinstance(piece, FilePart) else OWN.fields(piece.native).get("id")}
    return "images" if field == "images" else "content", out.block(position, place, piece)


def _sendable(position: int, place: int, piece: Content, out: Outgoing) -> Content | None:
    """A piece as it may be sent; `None` where it may not. What is lost is noted."""
    reason = out.reasons[position]
    why = _refused(piece, out, exact=out.exact(out.messages[position]), reason=reason)
    if why is not None:
        out.lose(position, place, kind_of(piece), why)
        return None
    if reason is not None and (own := rest(OWN.fields(piece.native), "id")):
        out.lose(position, place, ", ".join(own), reason)
        return replace(piece, native=OWN.without_fields(piece.native))
    return piece


def _refused(piece: Content, out: Outgoing, *, exact: bool, reason: str | None) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
    ours = NAME in (piece.native or ())
    if isinstance(piece, ThinkingPart):
        if not ours and out.quirks.thinking is None and out.target is not None:
            return reason or "the vendor takes no thinking back"
        return reason or (None if ours or piece.text else "it is signed for another format")
    if isinstance(piece, ProviderPart):
        return reason or (None if ours else "it is a block of another format")
    if isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider":
        taken = out.target is None or out.quirks.executed_tools
        return reason or (None if taken else "the vendor takes no record of tools that it ran")
    if isinstance(piece, ToolResultPart):
        return "a result stands in a user message"
    if isinstance(piece, (DataPart, LinkPart, FilePart)) and not exact:
        return "a model's message holds no media in this format"
    return None


def _objects(load: Callable[[Mapping[str, Any], Iterator[str]], Iterable[Content | None]]) -> _Loader:
    """Loads a field that is a list of objects."""

    def load_all(value: Any, fresh_ids: Iterator[str]) -> list[Content]:
        return [part for entry in if_objects(value) for part in load(entry, fresh_ids) if part is not None]

    return load_all


def in_field(field: str, part: Content) -> Content:
    """A part that is said in a field of its own, beside the message's content."""
    return replace(part, native=OWN.with_form(part.native, field=field))


def _refusal(value: Any, _: Iterator[str]) -> list[Content]:
    return [in_field("refusal", TextPart(value))] if isinstance(value, str) and value else []


def _audio(value: Any, _: Iterator[str]) -> list[Content]:
    audio_id = if_text(if_object(value).get("id"))
    return [in_field("audio", FilePart(audio_id))] if value == {"id": audio_id} and audio_id else []


def _function_call(value: Any, fresh_ids: Iterator[str]) -> list[Content]:
    return [load_function_call(value, fresh_ids)] if if_object(value).get("name") else []


def _tool_calls(value: Any, fresh_ids: Iterator[str]) -> list[Content]:
    calls = if_objects(value)
    return [load_call(call, fresh_ids) for call in calls] if all(map(is_call, calls)) else []


_FIELDS: dict[str, _Loader] = {
    "refusal": _refusal,
    "images": _objects(lambda image, _: [in_field("images", load_block(image))]),
    "audio": _audio,
    "executed_tools": _objects(load_executed),
    "function_call": _function_call,
    "tool_calls": _tool_calls,
}
"""Fields of an assistant message beside its content and thinking, in the order in which they are said."""
