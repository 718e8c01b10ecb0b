"""Model messages, of ai 5 and later and of ai 4 (`core`): their tables, and each message ↔ one of
ours. Results stand in messages of the role `tool`; what a provider ran stands with its call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import drop_empty, if_object, if_text, pick, read_extra_fields
from dragoman.codec.media import media_label
from dragoman.codec.signature_check import name_part_type
from dragoman.codec.turns import holds_only_answers
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
from dragoman.wires.ai_sdk_messages.dragoman_metadata import (
    JOINED,
    Expected,
    extras_of,
    with_extras,
)
from dragoman.wires.ai_sdk_messages.files import dump_model_file, load_model_file
from dragoman.wires.ai_sdk_messages.model_tool_calls import (
    dump_model_call,
    dump_model_result,
    load_model_call,
    load_model_result,
)
from dragoman.wires.ai_sdk_messages.notes import CORE, MODEL, OURS, OWN, Part, Parts, dialect_of
from dragoman.wires.ai_sdk_messages.provider_metadata import first_provider, origin_of
from dragoman.wires.ai_sdk_messages.read_parts import (
    MessageDialect,
    Reading,
    fault,
    load_parts,
    object_in,
    role_in,
)
from dragoman.wires.ai_sdk_messages.texts_and_thinking import (
    dump_reasoning,
    dump_text,
    load_reasoning,
    load_redacted,
    load_text,
)

__all__ = ["MODEL_DIALECTS", "OPTIONS", "dump_message", "load_message"]

OPTIONS = "providerOptions"
"""Field with the metadata of a model message or part."""
_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "tool": Role.USER,
}
_NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
_MEDIA = (DataPart, LinkPart, FilePart)


def _load_block(part: Part, reading: Reading, where: str) -> None:  # noqa: ARG001 whatever it holds
    """Reads a block that only its provider understands."""
    native = OWN.note(read_extra_fields(part, "type"), {"in": reading.dialect.name}, mark=True)
    reading.add(ProviderPart(part["type"], native))


_MODEL = MessageDialect(
    MODEL,
    {
        "text": load_text,
        "reasoning": load_reasoning,
        "redacted-reasoning": load_redacted,
        "image": load_model_file,
        "file": load_model_file,
        "tool-call": load_model_call,
        "tool-result": load_model_result,
        "custom": _load_block,
        "reasoning-file": _load_block,
    },
    metadata=OPTIONS,
    signs_empty_texts=False,
)
_CORE = msgspec.structs.replace(
    _MODEL, name=CORE, mime="mimeType", arguments="args", output="result"
)
MODEL_DIALECTS = {MODEL: _MODEL, CORE: _CORE}
"""Name → the table of model messages."""


def load_message(
    entry: Any, where: str, dialect: str, origin: Origin | None, out: list[Message]
) -> None:
    """Reads an AI SDK model message, and adds it to `out`.

    Args:
        entry: the model message.
        where: path for error messages.
        dialect: name of the dialect.
        origin: for a model message that names none.
        out: the messages so far.

    Raises:
        HistoryError: it cannot be read.
    """
    fields = object_in(entry, where, "a message with a role")
    role = role_in(fields, _ROLES, where)
    if _is_plain_entry(fields, dialect) and not (origin is not None and role is Role.MODEL):
        out.append(Message(role, (TextPart(fields["content"]),)))
        return
    reading, form = _load_content(fields, role, dialect, where)
    message, extras = _read_message_fields(reading, fields, form, origin)
    is_joined = if_object(extras).get(JOINED) is True and role is Role.USER
    if is_joined and out and holds_only_answers(out[-1]):
        message = message.replace(content=(*out.pop().content, *message.content))
    out.append(message)


def _read_message_fields(
    reading: Reading, fields: Part, form: Part, origin: Origin | None
) -> tuple[Message, Any]:
    """Returns an AI SDK message with its fields beside the content, and what it carries. None if
    dragoman did not write that."""
    further_fields = read_extra_fields(fields, "role", "content", OPTIONS)
    options = fields.get(OPTIONS)
    extras = if_object(options).get(OURS)
    whole = {**further_fields, **pick(fields, [OPTIONS])}
    if extras is None:
        return _message_of(reading, whole, form, origin), None
    other_options = read_extra_fields(if_object(options), OURS)
    message = _message_of(
        reading, {**further_fields, **drop_empty({OPTIONS: other_options})}, form, origin
    )
    # What is under our key counts only if it is what would be written for this message.
    described = _with_extras(message, extras, reading)
    if described is None:
        return _message_of(reading, whole, form, origin), None
    return described, extras


def _is_plain_entry(entry: Part, dialect: str) -> bool:
    """True if an AI SDK model message is nothing but a text."""
    content = entry.get("content")
    is_text = type(content) is str and bool(content)
    return is_text and len(entry) == 2 and entry["role"] != "tool" and dialect == MODEL


def _load_content(
    entry: Part,
    role: Role,
    dialect: str,
    where: str,
) -> tuple[Reading, Part]:
    """Returns the reading of an AI SDK message's content, and the note of its form."""
    content, is_tool = entry.get("content"), entry["role"] == "tool"
    reading = Reading(MODEL_DIALECTS[dialect], role)
    form: Part = {}
    if isinstance(content, str) and not is_tool:
        if content:
            reading.add(TextPart(content))
        else:
            form["content"] = ""
    elif isinstance(content, list) and role is not Role.SYSTEM:
        load_parts(cast("list[Any]", content), reading, f"{where}.content")
        if _is_bare_text(reading.pieces):
            form["content"] = "list"
        if is_tool and not holds_only_answers(Message(role, tuple(reading.pieces))):
            form["role"] = "tool"
    else:
        expected = " or a list of parts"
        if is_tool:
            expected = ", a list of results"
        fault(f"{where}.content must be a string{expected}")
    return reading, form


def _is_bare_text(content: Sequence[Content]) -> bool:
    """True if a content would be written as a string."""
    return len(content) == 1 and isinstance(content[0], TextPart) and content[0].native is None


def _message_of(
    reading: Reading,
    fields: Part,
    form: Part,
    origin: Origin | None,
) -> Message:
    """Returns the message that the reading of an AI SDK model message collected."""
    is_model, provider = reading.is_model, reading.provider
    notes: Part = {}
    if origin is not None and is_model and provider is None:
        notes = {"origin": msgspec.to_builtins(origin)}
    name = reading.dialect.name
    if fields or form or name == CORE:
        form = {**form, "in": name}
    else:
        form = {}
    native = OWN.note(fields, form, **notes)
    source = None
    if is_model:
        source = origin_of(provider, origin)
    return Message(reading.role, tuple(reading.pieces), origin=source, native=native)


def _with_extras(message: Message, extras: Any, reading: Reading) -> Message | None:
    """Returns an AI SDK message with what it carries, or None if dragoman did not write that."""
    described = with_extras([message], extras)
    if described is None:
        return None
    usual = None
    if reading.is_model:
        usual = origin_of(reading.provider, None)
    joined = JOINED in if_object(extras)
    again = extras_of(described, [Expected(None, None, usual)], joined=joined, metadata=True)
    return described[0] if again == extras else None


def dump_message(
    message: Message, position: int, dialect: str, losses: list[Loss], version: str | None
) -> Parts:
    """Returns the AI SDK model message of a message, or two: a `tool` message for its results, and
    one for the rest.

    Args:
        message: the message.
        position: of the message in the conversation.
        dialect: name of the dialect.
        losses: grows with what the dialect cannot hold.
        version: release of the library that reads it; None for any.
    """
    is_own = dialect_of(message.native) in (dialect, None)
    if is_own and message.native:
        form = OWN.form(message.native)
    else:
        form = {}
    writing = _Writing(message, MODEL_DIALECTS[dialect], version, form.get("role") == "tool")
    parts, answers = writing.write()
    is_model = message.role is Role.MODEL
    losses += [msgspec.structs.replace(loss, message=position) for loss in writing.losses]
    if answers:
        results = [{"role": "tool", "content": answers}]
    else:
        results = []
    # Results alone are one `tool` message, which then has what the message says beside them.
    if results and not writing.is_said and not is_model and message.content:
        return [_with_options(results[0], message, [], dialect, joined=False)]
    entry: Part = {"role": "tool" if writing.is_tool else _NAMES[message.role]}
    entry["content"] = _dump_content(parts, message, form, position, losses)
    joined = bool(answers) and message.role is Role.USER
    entry = _with_options(entry, message, parts, dialect, joined=joined)
    if is_model:
        return [entry, *results]
    return [*results, entry]


class _Writing:
    """Writes the content of one message."""

    def __init__(
        self, message: Message, dialect: MessageDialect, version: str | None, is_tool: bool
    ) -> None:
        """Creates the writer of one AI SDK model message."""
        self.message, self.dialect, self.version = message, dialect, version
        self.is_tool = is_tool
        """True if it was read from a `tool` message that is more than results."""
        self.is_model = message.role is Role.MODEL
        self.is_said = False
        """True if anything but results is written."""
        self.losses: list[Loss] = []
        self._parts: Parts = []
        self._answers: Parts = []

    def write(self) -> tuple[Parts, Parts]:
        """Returns the AI SDK parts, and the parts of results that go into a message of their
        own."""
        thinking: list[ThinkingPart] = []
        for piece_index, piece in enumerate(self.message.content):
            if isinstance(piece, ThinkingPart) and self.is_model:
                thinking.append(piece)
                continue
            self._flush(thinking)
            if isinstance(piece, ToolResultPart) and self._is_apart(piece):
                self._write_answer(piece, piece_index)
                continue
            part = self._part_of(piece, piece_index)
            if part is not None:
                self.is_said = True
                self._parts.append(part)
        self._flush(thinking)
        return self._parts, self._answers

    def _flush(self, thinking: list[ThinkingPart]) -> None:
        """Writes adjacent thinking, and empties the list."""
        self._parts += dump_reasoning(thinking, self.dialect)
        thinking.clear()

    def _lose_piece(
        self,
        piece_index: int,
        what: Lost,
        why: str,
        detail: str = "",
    ) -> None:
        """Notes the loss of a piece that an AI SDK model message cannot hold."""
        self.losses.append(Loss(None, piece_index, what, why, detail))

    def _is_apart(self, result: ToolResultPart) -> bool:
        """True if a result goes into a message of its own."""
        is_with_call = self.is_model and result.run_by == "provider"
        return not is_with_call and not self.is_tool

    def _write_answer(self, result: ToolResultPart, piece_index: int) -> None:
        """Writes a result into the AI SDK message of results."""
        if result.run_by == "provider":
            why = "what a provider ran stands in its model's message"
            self._lose_piece(piece_index, Lost.tool_result, why)
            return
        if self.is_said or self.is_model:
            self._lose_piece(piece_index, Lost.order, "results stand in a message of their own")
        self._answers.append(dump_model_result(result, self.dialect, self.version))

    def _part_of(self, piece: Content, piece_index: int) -> Part | None:
        """Returns the AI SDK part of a piece, or None. A piece without a part is a loss if it says
        something."""
        if isinstance(piece, TextPart):
            return dump_text(piece, self.dialect, self.is_model)
        if isinstance(piece, MarkPart):
            return self._whole_as_read(piece, has_parts=self.message.role is not Role.SYSTEM)
        if isinstance(piece, ProviderPart):
            if (part := self._whole_as_read(piece, of_any=self.dialect.name == MODEL)) is None:
                why = "a block that only its provider understands"
                self._lose_piece(piece_index, Lost.provider, why, piece.kind)
            return part
        part = self._part_in_role(piece)
        if part is None:
            detail = ""
            if isinstance(piece, _MEDIA):
                detail = media_label(piece)
            why = f"a message of the {self.message.role.value}'s has no such part"
            self._lose_piece(piece_index, name_part_type(piece), why, detail)
        return part

    def _part_in_role(self, piece: Content) -> Part | None:
        """Returns the AI SDK part of a file, call or result, or None if messages of this role
        cannot have it."""
        has_media = self.message.role is not Role.SYSTEM and not self.is_tool
        if isinstance(piece, _MEDIA) and has_media:
            return dump_model_file(piece, self.dialect, self.version)
        if isinstance(piece, ToolCallPart) and self.is_model:
            return dump_model_call(piece, self.dialect)
        if isinstance(piece, ToolResultPart) and (self.is_model or self.is_tool):
            usual = "agent"
            if self.is_model:
                usual = "provider"
            return dump_model_result(piece, self.dialect, self.version, usual=usual)
        return None

    def _whole_as_read(
        self, piece: MarkPart | ProviderPart, *, of_any: bool = False, has_parts: bool = True
    ) -> Part | None:
        """Returns a mark or block as it was read from an AI SDK model message, or None.

        Args:
            piece: the mark or block.
            of_any: True to accept any dialect of the family.
            has_parts: False if the message can have no parts.
        """
        is_own = of_any or OWN.form(piece.native).get("in") == self.dialect.name
        if not OWN.is_ours(piece.native) or not is_own or not has_parts:
            return None
        return {"type": piece.kind, **OWN.fields(piece.native)}


def _dump_content(
    parts: Parts, message: Message, form: Part, position: int, losses: list[Loss]
) -> Any:
    """Returns the content of a message: its AI SDK parts, or a string for a single text."""
    if message.role is Role.SYSTEM:
        texts = [if_text(part.get("text")) for part in parts]
        if len(texts) > 1:
            losses.append(Loss(position, None, Lost.texts, "a message of the system's is one text"))
        return "\n\n".join(texts)
    if not parts and form.get("content") == "":
        return ""
    # A text that was read from a list, or from a `tool` message, stays in one.
    is_listed = form.get("content") == "list" or form.get("role") == "tool"
    if is_listed or len(parts) != 1:
        return parts
    if parts[0].get("type") == "text" and len(parts[0]) == 2:
        return parts[0]["text"]
    return parts


def _with_options(
    entry: Part, message: Message, parts: Parts, dialect: str, *, joined: bool
) -> Part:
    """Returns an AI SDK model message with the fields beside its content."""
    provider: str | None = None
    if message.origin:
        provider = first_provider(parts)
    usual = Expected(None, None, origin_of(provider, None))
    extras = extras_of([message], [usual], joined=joined, metadata=True)
    is_own = message.native and dialect_of(message.native) in (dialect, None)
    fields = OWN.fields(message.native) if is_own else {}
    if extras:
        entry[OPTIONS] = {**if_object(fields.pop(OPTIONS, None)), OURS: extras}
    return {**entry, **fields}
