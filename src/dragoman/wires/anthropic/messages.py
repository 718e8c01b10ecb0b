"""The conversation: `{"system": …, "messages": […]}` ↔ messages, exactly and in order.

`load_conversation` reads the field `system`, then each entry of `messages`; `load_content` reads
the blocks. What a dump would write otherwise is noted in the message's form.

A dump has two steps. `prepare_conversation` fits ids and names to the API's rules, and
`dump_conversation` writes. The API wants the results of tools first in one user message, so a
turn is kept open until no further results can join it, and `_join_turn` then puts results first.
`votes` says how surely a message has this format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.fit_ids import TOOL_NAMES, fit_names, list_calls, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_objects,
    if_text,
    read_extra_fields,
)
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.message_list import load_plain_message
from dragoman.codec.outgoing_conversation import prepare_outgoing, read_sole_text
from dragoman.codec.serving import Problem, note_problem
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    Message,
    Origin,
    ProviderPart,
    Role,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.anthropic.content import OutgoingBlocks, dump_blocks, dump_content, load_content
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.tools import CALLS, dump_tools

__all__ = [
    "load_change",
    "dump_messages",
    "load_messages",
    "prepare_conversation",
    "load_conversation",
    "votes",
    "dump_conversation",
    "layout",
]

layout = Layout(
    fields=("messages",),
    beside=("system",),
    distinctive=frozenset(
        [
            "system",
            "stop_sequences",
            "anthropic_version",
            "mcp_servers",
            "output_config",
            "container",
        ]
    ),
    of_tools=frozenset(["input_schema"]),
)
"""Where its messages stand."""

_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "system": Role.SYSTEM}
_SENT_ROLES = {role: name for name, role in _ROLES.items()}
_SPEAKERS = {"user": Role.USER, "assistant": Role.MODEL}
_FOREIGN = frozenset(
    {
        "function_call",
        "images",
        "parts",
        "reasoning_content",
        "tool_call_id",
        "tool_calls",
        "tool_plan",
    }
)
"""Fields of messages that other formats have, and this one never."""
_VOTES: Mapping[str, tuple[str, type, int]] = {
    "text": ("text", str, 1),
    "thinking": ("thinking", str, 2),
    "redacted_thinking": ("data", str, 3),
    "image": ("source", dict, 3),
    "document": ("source", dict, 3),
    "container_upload": ("file_id", str, 3),
    "search_result": ("source", str, 3),
    "compaction": ("content", object, 3),
    "tool_addition": ("tool", dict, 3),
    **dict.fromkeys(CALLS, ("input", object, 3)),
}
"""Type of a block → a field that every such block has, the type of that, and how surely such a
block is of this format."""
_SIGNS = {"cache_control": 2, "citations": 2, "signature": 3}
"""Further fields of blocks, and how surely one that has them is of this format."""


class _Sent(NamedTuple):
    """A message of the wire."""

    entry: Json
    position: int
    joins: bool
    """It holds results of tools, which belong to the turn of the user before it."""


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Returns the Anthropic messages of `{"system": …, "messages": […]}`. For problems the index of
    `system` is -1."""
    if not isinstance(payload, Mapping):
        raise HistoryError(
            'the payload must be {"system": …, "messages": […]}, the part of a Messages API request'
        )
    payload = cast("JsonMap", payload)
    entries = payload.get("messages", [])
    if not isinstance(entries, list):
        raise HistoryError('"messages" must be a list').at(field="messages")
    names: dict[str, str] = {}
    out: list[Message] = []
    if system := payload.get("system"):
        try:
            form: Json = {}
            content = load_content(
                {"content": check_depth(system)}, Role.SYSTEM, names, form, "system"
            )
            out.append(Message(Role.SYSTEM, content, native=OWN.note(form=form)))
        except HistoryError as error:
            note_problem(error, problems, -1, "system")
    for position, entry in enumerate(cast("list[Any]", entries)):
        try:
            if problems is not None:
                check_depth(entry)
            message = load_plain_message(entry, _SPEAKERS, origin)
            if message is None:
                before = out[-1].role if out else None
                message = _load_anthropic_message(entry, position, names, before, origin)
            out.append(message)
        except HistoryError as error:
            note_problem(error, problems, position, _find_faulty_field(entry))
    return out


def votes(message: Any) -> int:
    """Returns how surely a message has the Anthropic format: 0 = cannot be, 1 = could be, 2 =
    likely, 3 = hardly anything else."""
    fields = if_object(message)
    role, content = _role_of(fields), fields.get("content")
    if (
        role is None
        or not _FOREIGN.isdisjoint(fields)
        or fields.get("type", "message") != "message"
    ):
        return 0
    # A system message that only changes settings, which no other format knows.
    if role is Role.SYSTEM and "content" not in fields:
        return 3 if "output_config" in fields else 0
    if not isinstance(content, (str, list)):
        return 0
    # A whole response.
    if fields.get("type") == "message" and "stop_reason" in fields:
        return 3
    return _count_votes(if_list(content))


def _count_votes(blocks: list[Any]) -> int:
    """Returns how surely a message with these blocks has the Anthropic format."""
    all_votes = [1, *map(_block_votes, blocks)]
    surest = max(all_votes)
    # Unknown blocks speak against the format, unless another block could be of no other.
    if 0 in all_votes and surest < 3:
        return 0
    return surest


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Iterable[ToolSpec] = (),
    *,
    model: str | None = None,
) -> OutgoingBlocks:
    """Returns a conversation made ready to be dumped as Anthropic messages. `tools`: the Anthropic
    request's, whose names are made fit with those of the calls; `model`: its model, else the
    target's. Without a target, an id or name that breaks the rules but was recorded so stays as it
    is."""
    messages, part_indexes = strip_all_marks(messages, NAME)
    quirks = quirks or Quirks()
    # An export gives back what was recorded, even where it breaks the API's rules.
    ids = map_call_ids(messages, quirks.ids, as_is=_is_recorded if target is None else None)
    # Names of the provider's own tools are fixed: no rule applies to them.
    named = [*tools, *[call for _, call in list_calls(messages, ids)]]
    as_is: list[str] = []
    if target is None:
        as_is = [piece.name for piece in named if piece.native and _is_recorded(piece)]
    if model is None:
        model = _model_of(target)
    return prepare_outgoing(
        OutgoingBlocks,
        messages,
        target,
        quirks,
        losses,
        part_indexes=part_indexes,
        model=model,
        ids=ids,
        names=fit_names([piece.name for piece in named], quirks.names, as_is=as_is),
    )


def _model_of(target: Origin | None) -> str:
    """Returns the Anthropic model of a target; empty if there is none."""
    if target is None:
        return ""
    return target.model or ""


def dump_conversation(out: OutgoingBlocks) -> Json:
    """Converts a conversation to `{"system": …, "messages": […]}`."""
    head = _system_length(out.messages)
    system = [block for position in range(head) for block in dump_blocks(out, position)]
    turn: list[_Sent] = []
    entries: list[Json] = []
    # A conversation without a target is an export: it goes back as it came, whoever speaks first.
    # Where messages went before these (`before`), somebody has spoken already.
    begun = out.target is None or out.before > 0
    for position in range(head, len(out.messages)):
        message = out.messages[position]
        joins, text = False, read_sole_text(message)
        if text is not None and message.role is not Role.SYSTEM:
            entry: Json | None = {"role": _SENT_ROLES[message.role], "content": text}
        else:
            entry = _dump_anthropic_message(out, position)
            # Recorded where joining would move it: it goes back where it stood.
            alone = OWN.form(message.native).get("turn") == "as is"
            joins = entry is not None and not alone and _has_results(entry)
        if entry is None:
            continue
        # Most answers: nothing joins the model's messages, so no turn has to be kept open.
        if begun and entry["role"] == "assistant":
            entries += _whole_turn(turn, out)
            entries.append(entry)
            turn = []
            continue
        dumped_message = _Sent(entry, position, joins)
        if dumped_message.joins and turn and turn[0].entry["role"] == "user":
            turn.append(dumped_message)
            continue
        entries += _whole_turn(turn, out)
        turn = [dumped_message]
        if not begun and dumped_message.entry["role"] == "assistant":
            out.lose(
                head,
                None,
                Lost.beginning,
                "the API wants the user to speak first; a placeholder does",
            )
            entries.append({"role": "user", "content": out.quirks.opening})
        begun = begun or dumped_message.entry["role"] != "system"
    entries += _whole_turn(turn, out)
    if system:
        return {"system": dump_content(system, out.messages[0]), "messages": entries}
    return {"messages": entries}


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def load_change(
    text: str, added: Sequence[ToolSpec | ServerTool], removed: Sequence[str]
) -> Message | None:
    """Returns the system message that tells a model in the middle of a conversation what has
    changed.

    Args:
        text: the new system text; empty: it is as before.
        added: tools that the model may call from here on.
        removed: names of those that it may not call any more.
    """
    names = [*removed, *[tool.name for tool in added]]
    # They would have to be sent under other names, which the request's own tools decide.
    if not all(map(TOOL_NAMES.fits, names)):
        return None
    definitions = dump_tools(added, prepare_conversation((), None, None, None))
    blocks: list[Json] = []
    if text:
        blocks.append({"type": "text", "text": text})
    blocks += [
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}
        for name in removed
    ]
    blocks += [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
        for definition in definitions
    ]
    content: str | list[Json] = blocks
    # Without changed tools, in the short form that a conversation has when it is read.
    if text and len(blocks) == 1:
        content = text
    return _load_anthropic_message({"role": "system", "content": content}, 0, {}, None, None)


def _block_votes(block: Any) -> int:
    """Returns how surely an Anthropic block belongs to Anthropic messages. One of a type that is
    not known may stand beside others, since the API has ever more of them."""
    fields = if_object(block)
    block_type = if_text(fields.get("type"))
    # Every tool that the provider runs has a result type of its own, so they have no list.
    if block_type.endswith("tool_result"):
        field, field_type, least = "tool_use_id", str, 3
    else:
        field, field_type, least = _VOTES.get(block_type, ("", str, 0))
    if not isinstance(fields.get(field), field_type) or field not in fields:
        return 0
    return max([least, *(vote for sign, vote in _SIGNS.items() if fields.get(sign))])


def _load_anthropic_message(
    entry: Any, position: int, names: dict[str, str], before: Role | None, origin: Origin | None
) -> Message:
    """Converts an Anthropic message. `names`: id of each call so far to its tool, to which its own
    calls are added; `before`: the role of the one before it."""
    role = _role_of(entry)
    if role is None:
        fault = f'"messages[{position}]" must be an object whose role is user, assistant or system'
        if isinstance(entry, dict):
            raise HistoryError(fault).at(field=f"messages[{position}].role")
        raise HistoryError(fault)
    form: Json = {}
    # A message of the system's at the head would be dumped to the field `system` otherwise.
    if role is Role.SYSTEM:
        form["place"] = "messages"
    content = load_content(entry, role, names, form, f"messages[{position}]")
    if role is Role.USER and _would_move(content, before):
        form["turn"] = "as is"
    native = OWN.note(read_extra_fields(entry, "role", "content"), form=form)
    if role is Role.MODEL:
        return Message(role, content, origin=origin, native=native)
    return Message(role, content, native=native)


def _role_of(entry: Any) -> Role | None:
    return _ROLES.get(if_text(if_object(entry).get("role")))


def _find_faulty_field(entry: Any) -> str | None:
    """Returns the field for which an Anthropic message cannot be read, where one is known."""
    if not isinstance(entry, dict):
        return None
    if _role_of(entry) is None:
        return "role"
    content = if_object(entry).get("content")
    if isinstance(content, str) or if_objects(content):
        return None
    return "content"


def _system_length(messages: Sequence[Message]) -> int:
    """Returns how many messages at the head go to Anthropic's field `system`."""
    for position, message in enumerate(messages):
        if message.role is not Role.SYSTEM or OWN.form(message.native).get("place") == "messages":
            return position
    return len(messages)


def _is_recorded(named: ToolSpec | ToolCallPart | ToolResultPart) -> bool:
    """Returns True if its id or name was recorded so, whatever the rules."""
    return OWN.form(named.native).get("id_or_name") == "as is"


def _dump_anthropic_message(out: OutgoingBlocks, position: int) -> Json | None:
    """Returns one message of the Anthropic wire, or None if nothing of it can be sent."""
    message = out.messages[position]
    blocks = dump_blocks(out, position)
    entry = {**OWN.fields(message.native), "role": _SENT_ROLES[message.role]}
    form = OWN.form(message.native)
    if not message.content and (recorded := _dump_empty(entry, form.get("content"))) is not None:
        return recorded
    if not blocks:
        out.lose(
            position,
            None,
            Lost.message,
            "nothing of it can be sent, and the API takes no empty message",
        )
        return None
    profile = out.quirks.profile
    is_known_to_take = profile is not None and profile.midsys is True
    takes_system = is_known_to_take or form.get("place") == "messages"
    if message.role is Role.SYSTEM and not takes_system:
        why = "the model takes none after the first user message; sent as a marked user text"
        out.lose(position, None, Lost.system_message, why)
        return {"role": "user", "content": f"<system>\n{message.text}\n</system>"}
    return {**entry, "content": dump_content(blocks, message)}


def _dump_empty(entry: Json, content_form: Any) -> Json | None:
    """Returns an Anthropic message that was recorded without content as it came; None if it was
    not."""
    if content_form == "absent":
        return entry
    if content_form == [] or (isinstance(content_form, str) and not content_form.strip()):
        return {**entry, "content": content_form}
    return None


def _whole_turn(turn: Sequence[_Sent], out: OutgoingBlocks) -> list[Json]:
    """Returns the Anthropic messages of a turn that nothing more joins: one of the user's has those
    behind it that hold results of tools."""
    if len(turn) == 1 and not turn[0].joins:
        return [turn[0].entry]
    if turn:
        return [_join_turn(turn, out)]
    return []


def _join_turn(turn: Iterable[_Sent], out: OutgoingBlocks) -> Json:
    """Returns the messages of a turn as one, results of tools first, as the Anthropic API wants
    them."""
    entry: Json = {}
    results: list[Json] = []
    other_blocks: list[Json] = []
    for dumped_message in turn:
        entry |= dumped_message.entry
        moves = False
        for block in _list_blocks(dumped_message.entry):
            is_result = block.get("type") == "tool_result"
            if is_result:
                results.append(block)
            else:
                other_blocks.append(block)
            # A result behind anything else goes before it, and the order of the turn is lost.
            moves = moves or (is_result and bool(other_blocks))
        if moves:
            out.lose(
                dumped_message.position,
                None,
                Lost.order,
                "the API wants results of tools before everything else",
            )
    return {**entry, "content": [*results, *other_blocks]}


def _would_move(content: Sequence[Content], before: Role | None) -> bool:
    """True if dumping the conversation as Anthropic messages would not leave a user's message where
    it was, as it was. `before`: the role of the one before it."""
    results = [
        isinstance(piece, ToolResultPart)
        or (isinstance(piece, ProviderPart) and piece.kind == "tool_result")
        for piece in content
    ]
    return any(results) and (results != sorted(results, reverse=True) or before is Role.USER)


def _has_results(entry: JsonMap) -> bool:
    return entry["role"] == "user" and any(
        block.get("type") == "tool_result" for block in _list_blocks(entry)
    )


def _list_blocks(entry: JsonMap) -> list[Json]:
    """Returns the content blocks of one of Anthropic's messages."""
    content = entry.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return if_objects(content)
