"""The conversation: `{"systemInstruction": …, "contents": […]}` ↔ messages, exactly and in order. A
content is a message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, cast

from dragoman.codec.citations import lose_citations
from dragoman.codec.fit_ids import fit_names, list_calls, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_objects,
    read_extra_fields,
)
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.opening import count_system_messages
from dragoman.codec.outgoing_conversation import prepare_outgoing, read_sole_text
from dragoman.codec.serving import Problem, note_problem
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires.google.content import dump_content, is_known, load_content
from dragoman.wires.google.keys import given, not_usual, to_camel_case
from dragoman.wires.google.quirks import NAME, OWN, Quirks
from dragoman.wires.google.tools import OutgoingContents, Pairing, is_unnamed

__all__ = [
    "dump_conversation",
    "dump_messages",
    "load_conversation",
    "load_messages",
    "prepare_conversation",
    "votes",
    "layout",
]

layout = Layout(fields=("contents",), beside=("systemInstruction", "system_instruction"))
"""Where its messages stand."""

_ROLES = {"user": Role.USER, "model": Role.MODEL, "function": Role.USER, "tool": Role.USER}
_SENT_ROLES = {Role.USER: "user", Role.MODEL: "model"}
_Content = Json


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Returns the messages of Gemini's `{"systemInstruction": …, "contents": […]}`."""
    if not isinstance(payload, Mapping):
        raise HistoryError(
            'the payload must be {"systemInstruction": …, "contents": […]}, of a generateContent request'
        )
    payload = to_camel_case(cast("JsonMap", payload), set())
    contents: Any = payload.get("contents") or []
    if not isinstance(contents, list | dict):
        raise HistoryError('"contents" must be a list').at(field="contents")
    pairing = Pairing()
    out: list[Message] = []
    if payload.get("systemInstruction") is not None:
        out.append(
            _load(
                Role.SYSTEM,
                _object(check_depth(payload["systemInstruction"]), "systemInstruction"),
                pairing,
                "",
            )
        )
    before: Message | None = None
    for position, content in enumerate(
        [if_object(contents)] if isinstance(contents, dict) else if_list(contents)
    ):
        try:
            before = _load_entry(content, position, before, pairing, origin, problems)
        except HistoryError as error:
            note_problem(error, problems, position, _find_faulty_field(content), "contents")
        else:
            out.append(before)
    return out


def votes(message: Any) -> int:
    """Returns how surely a JSON message is a content of the Gemini format: 0 (it cannot be) to 3
    (it is hardly anything else)."""
    fields = if_object(message)
    parts = if_objects(fields.get("parts"))
    of_others = "content" in fields or any("type" in entry for entry in (fields, *parts))
    if of_others or not (isinstance(fields.get("role"), str) or parts) or _role(fields) is None:
        return 0
    if not parts and ("parts" not in fields or fields["parts"] not in (None, [])):
        return 0
    if any(map(is_known, parts)):
        return 3
    return 2 if fields.get("role") == "model" else 1


def _find_names_as_they_are(named: Iterable[ToolSpec | ToolCallPart]) -> list[str]:
    """Returns the names that break the Gemini API's rules and were recorded so."""
    return [
        tool_or_call.name
        for tool_or_call in named
        if OWN.form(tool_or_call.native).get("name") == "as is"
    ]


def _choose_model(target: Origin | None, model: str | None) -> str:
    """Returns the model of a Gemini request, or the target's if the request names none."""
    if model is not None:
        return model
    return (target and target.model) or ""


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Iterable[ToolSpec] = (),
    *,
    model: str | None = None,
) -> OutgoingContents:
    """Returns a conversation made ready for its dump as Gemini contents. `tools`: of the Gemini
    request; those and the functions that are called in the history get names that the API takes;
    `model`: its model, else the target's. A name that breaks the rules and was recorded so goes
    back as it is where there is no target."""
    messages, part_indexes = strip_all_marks(messages)
    quirks = quirks or Quirks()
    ids = map_call_ids(messages, quirks.ids, as_is=None if target else _as_it_is)
    calls = [call for _, call in list_calls(messages, ids)]
    named = [*tools, *calls]
    as_is = _find_names_as_they_are(named) if target is None else []
    return prepare_outgoing(
        OutgoingContents,
        messages,
        target,
        quirks,
        losses,
        part_indexes=part_indexes,
        ids=ids,
        names=fit_names([tool_or_call.name for tool_or_call in named], quirks.names, as_is=as_is),
        model=_choose_model(target, model),
        unnamed={call.id for call in calls if is_unnamed(call.native)},
        functions={call.id: call.name for call in calls},
    )


def _shares_content(message: Message, before: Message | None) -> bool:
    """True if a message goes into the content of the one before it: both hold results of one round,
    and did not come in two contents."""
    return before is not None and _joins(message, before) and "turn" not in OWN.form(message.native)


def _dump_system_instruction(out: OutgoingContents, head: int) -> Json:
    """Writes the system messages at the head of a conversation, the first `head` ones, as Gemini's
    `systemInstruction`. Returns an empty object if nothing of them is left."""
    first = out.messages[0]
    parts = list(
        chain.from_iterable(
            dump_content(out.messages[number].content, out, number) for number in range(head)
        )
    )
    if parts or "parts" in OWN.form(first.native):
        return {"systemInstruction": _content(first, parts, "")}
    return {}


def _dump_opening(out: OutgoingContents, head: int) -> list[_Content]:
    """Returns the placeholder for a user's turn, which Gemini wants before a model's, or nothing
    where none is needed. `head`: the index of the first message after the system messages."""
    if out.before or out.target is None:
        return []
    out.lose(
        head, None, Lost.beginning, "the API wants the user to speak first; a placeholder does"
    )
    return [{"role": "user", "parts": [{"text": out.quirks.opening}]}]


def _number_calls(out: OutgoingContents) -> dict[str, int]:
    """Returns the calls' ids and their numbers in the conversation, if results go to Gemini without
    ids: then they must stand in the order of their calls."""
    if not out.unnamed:
        return {}
    return {call.id: number for number, (_, call) in enumerate(list_calls(out.messages, out.ids))}


def dump_conversation(out: OutgoingContents) -> Json:
    """Converts a conversation to Gemini's `{"systemInstruction": …, "contents": […]}`."""
    lose_citations(out, NAME)
    messages = out.messages
    order = _number_calls(out)
    head = count_system_messages(messages)
    payload = _dump_system_instruction(out, head) if head else Json()
    contents: list[_Content] = []
    joined: Message | None = None
    for position, message in enumerate(messages[head:], head):
        content: _Content | None
        shares, text = False, read_sole_text(message)
        if text is not None and message.role is not Role.SYSTEM:
            content = {"role": _SENT_ROLES[message.role], "parts": [{"text": text}]}
        else:
            content = _entry(
                _in_order(message, out.unnamed, order) if order else message, out, position
            )
            shares = _shares_content(message, joined)
        if content is None:
            continue
        if not contents and content.get("role") == "model":
            contents += _dump_opening(out, head)
        if shares:
            before = if_list(contents[-1].get("parts"))
            contents[-1] = {
                **contents[-1],
                "parts": [*before, *if_list(content.get("parts"))],
            }
        else:
            contents.append(content)
        joined = message
    return {**payload, "contents": contents}


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _role(content: JsonMap) -> Role | None:
    """Returns the role of a content, or None if it is no known one."""
    name = content.get("role") or "user"
    return _ROLES.get(name) if isinstance(name, str) else None


def _begins_answer(role: Role, before: Message | None) -> bool:
    """True if a content of this role is the first of the model's after another role's."""
    return role is Role.MODEL and (before is None or before.role is not Role.MODEL)


def _load_entry(
    content: Any,
    position: int,
    before: Message | None,
    pairing: Pairing,
    origin: Origin | None,
    problems: list[Problem] | None,
) -> Message:
    """Converts a Gemini content to the message. `before`: the one that came last."""
    if (plain := _load_plain(content, origin)) is not None:
        if _begins_answer(plain.role, before):
            pairing.round()
        return plain
    content = _object(
        content if problems is None else check_depth(content), f"contents[{position}]"
    )
    role = _role(content)
    if role is None:
        raise HistoryError(
            f'"contents[{position}]" has the role {content["role"]!r:.100}; there are user and model'
        )
    if _begins_answer(role, before):
        pairing.round()
    message = _load(role, content, pairing, role.value)
    if role is Role.MODEL:
        return message.replace(origin=origin)
    if before is not None and _joins(message, before):
        return message.replace(native=OWN.with_form(message.native, turn="as is"))
    return message


def _load_plain(content: Any, origin: Origin | None) -> Message | None:
    """Returns a Gemini content of the usual role and one text with nothing beside it, as nearly all
    are; `None`: any other."""
    if type(content) is not dict or len(fields := cast("Json", content)) != 2:
        return None
    name, parts = fields.get("role"), fields.get("parts")
    if (
        type(parts) is not list
        or len(some := cast("list[Any]", parts)) != 1
        or type(part := some[0]) is not dict
    ):
        return None
    text = cast("Json", part).get("text")
    if not isinstance(text, str) or not text or len(cast("Json", part)) != 1:
        return None
    if name == "user":
        return Message(Role.USER, (TextPart(text),))
    if name == "model":
        return Message(Role.MODEL, (TextPart(text),), origin=origin)
    return None


def _find_faulty_field(content: Any) -> str | None:
    """Returns the field for which a Gemini content could not be read, `role` or `parts`; None if it
    is neither."""
    fields = if_object(content)
    if _role(fields) is None:
        return "role"
    if any(not isinstance(part, dict) for part in if_list(fields.get("parts"))):
        return "parts"
    return None


def _load(role: Role, content: _Content, pairing: Pairing, usual: str) -> Message:
    """Returns the message of a Gemini content. `usual`: the role's usual name; empty if it has
    none."""
    form: Json = {}
    if usual and content.get("role") != usual:
        form["role"] = content.get("role", "absent")
    wire_fields = read_extra_fields(content, "parts", *(["role"] if usual else []))
    if not (parts := if_list(content.get("parts"))):
        form["parts"] = not_usual(content, "parts")
    pieces = load_content([_object(part, "a part") for part in parts], pairing)
    return Message(role, pieces, native=OWN.note(wire_fields, form=form))


def _content(message: Message, parts: list[Json], usual: str) -> _Content:
    """Returns the Gemini content of a message: its role and parts, as it was read."""
    if usual and not message.native:
        return {"role": usual, "parts": parts}
    form = OWN.form(message.native)
    content = OWN.fields(message.native)
    if usual and (role := form.get("role", usual)) != "absent":
        content["role"] = role
    if parts or "parts" not in form:
        return {**content, "parts": parts}
    return {**content, **given(form["parts"], "parts")}


def _entry(message: Message, out: OutgoingContents, position: int) -> _Content | None:
    """Returns a Gemini content; `None` where nothing of it can be sent."""
    parts = dump_content(message.content, out, position)
    if not parts and "parts" not in OWN.form(message.native):
        why = "nothing of it can be sent, and the API takes no empty content"
        out.lose(position, None, Lost.message, why)
        return None
    if message.role is Role.SYSTEM:
        why = "the API takes none within the conversation; sent as a marked user text"
        out.lose(position, None, Lost.system_message, why)
        return {"role": "user", "parts": [{"text": f"<system>\n{message.text}\n</system>"}]}
    return _content(message, parts, _SENT_ROLES[message.role])


def _in_order(message: Message, unnamed: Collection[str], order: Mapping[str, int]) -> Message:
    """Returns the message for Gemini with results that have no id to send in the order of their
    calls, name by name."""
    content = list(message.content)
    indexes: dict[str, list[int]] = {}
    for index, piece in enumerate(content):
        if isinstance(piece, ToolResultPart) and piece.id in unnamed:
            indexes.setdefault(piece.name, []).append(index)
    for group in indexes.values():
        for index, source in zip(
            group,
            sorted(group, key=lambda p: order[cast("Any", message.content[p]).id]),
            strict=True,
        ):
            content[index] = message.content[source]
    if len(indexes):
        return message.replace(content=tuple(content))
    return message


def _joins(message: Message, before: Message) -> bool:
    """Returns True if both hold results of one round, which the Gemini API wants in one content."""
    return message.role is before.role is Role.USER and all(
        any(isinstance(piece, ToolResultPart) for piece in neighbour.content)
        for neighbour in (message, before)
    )


def _as_it_is(_: ToolCallPart | ToolResultPart) -> bool:
    """Returns an id unchanged: without a target nothing is sent."""
    return True


def _object(value: Any, what: str) -> Json:
    if not isinstance(value, dict):
        raise HistoryError(f'"{what}" must be an object').at(field=what)
    return cast("Json", value)
