"""Model messages: each ↔ one of ours. Results stand in messages of the role `tool`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text, rest
from dragoman.codec.media import label
from dragoman.codec.replay import kind_of
from dragoman.codec.turns import only_answers
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.envelope import JOINED, Expected, extras_of, with_extras
from dragoman.wires.ai_sdk_messages.model_media import KEY, dump_file
from dragoman.wires.ai_sdk_messages.model_parts import (
    CORE,
    LOADERS,
    MODEL,
    dump_call,
    dump_reasoning,
    dump_result,
    dump_text,
)
from dragoman.wires.ai_sdk_messages.named import named_in
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, dialect_of
from dragoman.wires.ai_sdk_messages.reading import Reading, fault, load_parts
from dragoman.wires.ai_sdk_messages.signatures import origin_of

__all__ = ["dump_message", "load_message"]

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "tool": Role.USER,
}
_NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}


def load_message(
    given: Any, where: str, dialect: str, origin: Origin | None, out: list[Message]
) -> None:
    """A model message, added to `out`.

    Raises:
        HistoryError: it cannot be read.
    """
    if type(given) is not dict:
        fault(f"{where} must be an object, a message with a role")
    entry = cast("dict[str, Any]", given)
    name, content = entry.get("role"), entry.get("content")
    role = ROLES.get(name) if type(name) is str else None
    if role is None:
        fault(f"{where}.role must be one of {', '.join(ROLES)}, not {name!r:.50}")
    source = origin if role is Role.MODEL else None
    if (
        type(content) is str
        and content
        and len(entry) == 2
        and name != "tool"
        and dialect == MODEL
        and source is None
    ):
        out.append(Message(role, (TextPart(content),)))
        return
    own, form = rest(entry, "role", "content", KEY), dict[str, Any]()
    it = Reading(dialect, role)
    if isinstance(content, str) and name != "tool":
        if content:
            it.add(TextPart(content))
        else:
            form["content"] = ""
    elif isinstance(content, list) and role is not Role.SYSTEM:
        load_parts(cast("list[Any]", content), it, LOADERS, {}, f"{where}.content")
        if _is_plain([*it.pieces, *it.answers]):
            form["content"] = "list"
        if name == "tool" and not (it.pieces and only_answers(Message(role, tuple(it.pieces)))):
            form["role"] = "tool"
    else:
        fault(
            f"{where}.content must be a string{' or a list of parts' if name != 'tool' else ', a list of results'}"
        )
    options = entry.get(KEY)
    extras = if_object(options).get(OURS)
    if KEY in entry and (not isinstance(options, dict) or set(if_object(options)) != {OURS}):
        own[KEY] = rest(if_object(options), OURS) if isinstance(options, dict) else options
    message = _message(it, role, own, form, dialect, origin)
    if extras is not None:
        found = with_extras([message], extras)
        expected = [
            Expected(None, None, origin_of(it.provider, None) if role is Role.MODEL else None)
        ]
        if (
            found is not None
            and extras_of(found, expected, joined=JOINED in if_object(extras), metadata=True)
            == extras
        ):
            message = found[0]
        else:
            message = _message(it, role, {**own, KEY: options}, form, dialect, origin)
            extras = None
    if (
        if_object(extras).get(JOINED) is True
        and out
        and role is Role.USER
        and only_answers(out[-1])
    ):
        message = message.replace(content=(*out.pop().content, *message.content))
    out.append(message)


def dump_message(
    message: Message, position: int, dialect: str, losses: list[Loss], version: str | None
) -> list[dict[str, Any]]:
    """A message → the model message that it is, or a `tool` message and what else it says."""
    form = (
        OWN.form(message.native)
        if dialect_of(message.native) in (dialect, None) and message.native
        else {}
    )
    answers: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    thinking: list[ThinkingPart] = []
    written: list[Content] = []
    is_model, is_tool = message.role is Role.MODEL, form.get("role") == "tool"
    for place, piece in enumerate(message.content):
        if isinstance(piece, ThinkingPart) and is_model:
            thinking.append(piece)
            continue
        parts += dump_reasoning(thinking, dialect)
        thinking = []
        if (
            isinstance(piece, ToolResultPart)
            and (not is_model or piece.run_by != "provider")
            and not is_tool
        ):
            if piece.run_by == "provider":
                losses.append(
                    Loss(
                        position,
                        place,
                        Lost.tool_result,
                        "what a provider ran stands in its model's message",
                    )
                )
                continue
            if written or is_model:
                losses.append(
                    Loss(position, place, Lost.order, "results stand in a message of their own")
                )
            answers.append(dump_result(piece, dialect, version))
            continue
        part, lost = _dump(piece, message.role, dialect, version, is_tool=is_tool)
        if lost is not None:
            losses.append(msgspec.structs.replace(lost, message=position, part=place))
        if part is not None:
            written.append(piece)
            parts.append(part)
    parts += dump_reasoning(thinking, dialect)
    out = [{"role": "tool", "content": answers}] if answers else []
    if answers and not written and not is_model and message.content:
        return [_with_options(out[0], message, [], dialect, joined=False)]
    entry: dict[str, Any] = {"role": "tool" if is_tool else _NAMES[message.role]}
    entry["content"] = _content(parts, message, form, position, losses)
    main = _with_options(
        entry, message, parts, dialect, joined=bool(answers) and message.role is Role.USER
    )
    return [main, *out] if is_model else [*out, main]


def _message(
    it: Reading,
    role: Role,
    own: Mapping[str, Any],
    form: Mapping[str, Any],
    dialect: str,
    origin: Origin | None,
) -> Message:
    is_model = role is Role.MODEL
    given = (
        {"origin": msgspec.to_builtins(origin)}
        if origin is not None and is_model and it.provider is None
        else {}
    )
    noted = {**form, "in": dialect} if own or form or dialect == CORE else {}
    native = OWN.note(own, noted, **given)
    source = origin_of(it.provider, origin) if is_model else None
    return Message(role, (*it.pieces, *it.answers), origin=source, native=native)


def _dump(
    piece: Content, role: Role, dialect: str, version: str | None, *, is_tool: bool
) -> tuple[dict[str, Any] | None, Loss | None]:
    """A piece → its part, and what is lost of it."""
    is_model = role is Role.MODEL
    if isinstance(piece, TextPart):
        return dump_text(piece, dialect), None
    if isinstance(piece, MarkPart):
        own = (
            OWN.is_ours(piece.native)
            and OWN.form(piece.native).get("in") == dialect
            and role is not Role.SYSTEM
        )
        return ({"type": piece.kind, **OWN.fields(piece.native)} if own else None), None
    if isinstance(piece, ProviderPart):
        if OWN.is_ours(piece.native) and (
            dialect == MODEL or OWN.form(piece.native).get("in") == dialect
        ):
            return {"type": piece.kind, **OWN.fields(piece.native)}, None
        return None, Loss(
            None, None, Lost.provider, "a block that only its provider understands", piece.kind
        )
    if (
        isinstance(piece, (DataPart, LinkPart, FilePart))
        and role is not Role.SYSTEM
        and not is_tool
    ):
        return dump_file(piece, dialect, version), None
    if isinstance(piece, ToolCallPart) and is_model:
        return dump_call(piece, dialect), None
    if isinstance(piece, ToolResultPart) and (is_model or is_tool):
        return dump_result(piece, dialect, version, usual="provider" if is_model else "agent"), None
    which = label(piece) if isinstance(piece, (DataPart, LinkPart, FilePart)) else ""
    return None, Loss(
        None, None, kind_of(piece), f"a message of the {role.value}'s has no such part", which
    )


def _content(
    parts: Sequence[Mapping[str, Any]],
    message: Message,
    form: Mapping[str, Any],
    position: int,
    losses: list[Loss],
) -> Any:
    if message.role is Role.SYSTEM:
        texts = [if_text(part.get("text")) for part in parts]
        if len(texts) > 1:
            losses.append(Loss(position, None, Lost.texts, "a message of the system's is one text"))
        return "\n\n".join(texts)
    if not parts and form.get("content") == "":
        return ""
    is_plain = len(parts) == 1 and len(parts[0]) == 2 and parts[0].get("type") == "text"
    return (
        parts[0]["text"]
        if is_plain and form.get("content") != "list" and form.get("role") != "tool"
        else list(parts)
    )


def _with_options(
    entry: dict[str, Any],
    message: Message,
    parts: Iterable[Mapping[str, Any]],
    dialect: str,
    *,
    joined: bool,
) -> dict[str, Any]:
    """The message with what it has beside its content."""
    provider = (
        next((found for part in parts if (found := named_in(part))), None)
        if message.origin
        else None
    )
    expected = [Expected(None, None, origin_of(provider, None))]
    extras = extras_of([message], expected, joined=joined, metadata=True)
    is_own = message.native and dialect_of(message.native) in (dialect, None)
    own = OWN.fields(message.native) if is_own else {}
    if extras:
        kept = own.pop(KEY, None)
        entry[KEY] = {**if_object(kept), OURS: extras}
    return {**entry, **own}


def _is_plain(content: Sequence[Content]) -> bool:
    return len(content) == 1 and isinstance(content[0], TextPart) and content[0].native is None
