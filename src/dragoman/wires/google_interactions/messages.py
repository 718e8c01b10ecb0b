"""Reads and writes the conversation: `{"system_instruction": …, "input": …}`.

The input is a list of steps. Each `user_input` is a message, results that follow each other are
one, and the model's steps are one until somebody else speaks. Leading system messages become the system
instruction. A text, or a list of content blocks, is the input of one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.citations import lose_citations
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.opening import count_system_messages
from dragoman.codec.outgoing_conversation import (
    Outgoing,
    is_provider_tool,
    prepare_named_outgoing,
    read_sole_text,
)
from dragoman.codec.serving import Problem, note_problem
from dragoman.codec.signature_check import name_part_type
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
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.google_interactions.content import (
    BLOCK_TYPES,
    dump_block,
    is_block,
    load_block,
    load_content,
)
from dragoman.wires.google_interactions.quirks import NAME, OWN, Quirks
from dragoman.wires.google_interactions.steps import (
    INPUT,
    OUTPUT,
    THOUGHT,
    StepList,
    dump_step,
    load_model_step,
    read_step_start,
)
from dragoman.wires.google_interactions.tools import FUNCTION, RESULT, load_result

__all__ = [
    "dump_conversation",
    "dump_messages",
    "load_conversation",
    "load_messages",
    "prepare_conversation",
    "votes",
    "layout",
]

_SYSTEM = "system_instruction"
layout = Layout(
    fields=("input",),
    beside=(_SYSTEM,),
    text=True,
    follows="previous_interaction_id",
    distinctive=frozenset([_SYSTEM, "generation_config", "response_modalities"]),
)
"""Where the messages stand in the body of a request."""

_STEPS = frozenset([INPUT, OUTPUT, THOUGHT, RESULT])
"""Types of steps that no other format has. `function_call` is one of the Responses API too."""
_EMPTY = "it says nothing, and the API takes no empty step"


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads an Interactions conversation: `{"system_instruction": …, "input": …}`."""
    if not isinstance(payload, Mapping):
        raise HistoryError('the payload must be {"system_instruction": …, "input": …}')
    payload = cast("JsonMap", payload)
    messages = [Message.system(text)] if (text := if_text(payload.get(_SYSTEM))) else []
    conversation = payload.get("input", [])
    if (message := _load_short(conversation)) is not None:
        return [*messages, message]
    if not isinstance(conversation, list):
        raise HistoryError('"input" must be a text, content or a list of steps').at(field="input")
    reader = _Reader(messages, origin)
    for position, step in enumerate(cast("list[Any]", conversation)):
        try:
            reader.read(_need_step(step if problems is None else check_depth(step)))
        except HistoryError as error:
            field = "type" if isinstance(step, dict) else None
            note_problem(error, problems, position, field, "input")
    return reader.end()


def votes(message: Any) -> int:
    """Returns how surely a step is of the Interactions format: 0 impossible, 1 possible, 2 likely,
    3 almost certain."""
    fields = if_object(message)
    step_type = if_text(fields.get("type"))
    if "role" in fields:
        return 0
    if step_type in _STEPS:
        return 3
    if step_type == FUNCTION:
        return 3 if isinstance(fields.get("arguments"), dict) and "id" in fields else 0
    id_field = "id" if step_type.endswith("_call") else "call_id"
    is_server_step = step_type.endswith(("_call", "_result")) and "output" not in fields
    has_id = isinstance(fields.get(id_field), str) and "status" not in fields
    return 2 if is_server_step and has_id else 0


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
) -> Outgoing[Quirks]:
    """Returns a conversation that is ready to be written as Interactions steps. `tools`: the
    request's. Without a target ids and names stay as they are, however odd."""
    return prepare_named_outgoing(
        messages, target, quirks or Quirks(), losses, tools, keeps_id=_has_own_id
    )


def dump_conversation(out: Outgoing[Quirks]) -> Json:
    """Writes a conversation as the Interactions fields `system_instruction` and `input`."""
    lose_citations(out, NAME)
    head = 0 if out.before else count_system_messages(out.messages)
    payload: Json = {_SYSTEM: _dump_instruction(out, head)} if head else {}
    steps: list[Json] = []
    for position in range(head, len(out.messages)):
        steps += _dump_message(out, position)
    # A request that was loaded without steps is written without, as long as it says no more.
    input_form = (
        OWN.form(out.messages[-1].native).get("input") if len(out.messages) == head + 1 else ""
    )
    blocks = if_list(steps[0].get("content")) if input_form and len(steps) == 1 else []
    if input_form == "text" and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return {**payload, "input": blocks[0]["text"]}
    if input_form == "block" and len(blocks) == 1:
        return {**payload, "input": blocks[0]}
    return {**payload, "input": blocks if input_form == "blocks" and blocks else steps}


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _load_short(conversation: Any) -> Message | None:
    """Returns the message of an Interactions input that has no steps: a text, a content block, or a
    list of them. None for any other."""
    if isinstance(conversation, str) and conversation:
        return Message(
            Role.USER, (TextPart(conversation),), native=OWN.note(form={"input": "text"})
        )
    blocks = if_objects(conversation)
    if conversation and blocks and all(block.get("type") in BLOCK_TYPES for block in blocks):
        native = OWN.note(form={"input": "blocks"})
        return Message(Role.USER, tuple(load_content(blocks)), native=native)
    if isinstance(conversation, dict):
        block = cast("Json", conversation)
        if block.get("type") in BLOCK_TYPES:
            return Message(
                Role.USER, (load_block(block),), native=OWN.note(form={"input": "block"})
            )
    return None


def _need_step(step: Any) -> Json:
    """Returns the value if it is a step: an object with a type."""
    if not isinstance(step, dict) or not if_text(cast("Json", step).get("type")):
        raise HistoryError(f"a step must be an object with a type, not {step!r:.200}")
    return cast("Json", step)


class _Reader:
    """Gathers steps into messages."""

    def __init__(self, messages: list[Message], origin: Origin | None) -> None:
        """Creates the reader of Interactions steps as messages. They are added to `messages`."""
        self._messages = messages
        self._origin = origin
        self._role: Role | None = None
        self._pieces: list[Content] = []
        # Id of each call so far → its tool.
        self._names: dict[str, str] = {}

    def read(self, step: Json) -> None:
        """Reads the next step of an Interactions conversation."""
        if step["type"] == INPUT:
            message = self._load_input(step)
            self.end()
            self._messages.append(message)
        elif step["type"] == RESULT:
            result = load_result(step, self._names)
            self._gather(
                Role.USER, [result or ProviderPart(step["type"], OWN.note(step, mark=True))]
            )
        # All other steps are the model's, also those of types that nobody knows.
        else:
            before = self._pieces[-1] if self._pieces and self._role is Role.MODEL else None
            pieces = load_model_step(step, self._names, before)
            self._names.update({p.id: p.name for p in pieces if isinstance(p, ToolCallPart)})
            self._gather(Role.MODEL, pieces)

    def end(self) -> list[Message]:
        """Ends the message that is open. Returns the messages of the Interactions conversation so
        far."""
        if self._role is not None:
            origin = self._origin if self._role is Role.MODEL else None
            self._messages.append(Message(self._role, tuple(self._pieces), origin=origin))
            self._role, self._pieces = None, []
        return self._messages

    def _gather(self, role: Role, pieces: list[Content]) -> None:
        """Adds pieces to the Interactions message of this role."""
        # Somebody else speaks.
        if role is not self._role:
            self.end()
            self._role = role
        self._pieces += pieces

    def _load_input(self, step: Json) -> Message:
        """Reads a `user_input`. Results may stand in its content."""
        content = step.get("content")
        if not isinstance(content, list | None) or (content and not if_objects(content)):
            raise HistoryError("the content of a user_input must be a list of objects")
        pieces: list[Content] = []
        for block in if_objects(content):
            result = load_result(block, self._names) if block.get("type") == RESULT else None
            if result is not None:
                pieces.append(replace(result, native=OWN.with_form(result.native, place="content")))
            else:
                pieces.append(load_block(block))
        form: Json = {}
        if not content:
            form["content"] = content if "content" in step else "absent"
        native = OWN.note(read_extra_fields(step, "type", "content"), form=form)
        return Message(Role.USER, tuple(pieces), native=native)


def _dump_instruction(out: Outgoing[Quirks], head: int) -> str:
    """Writes the Interactions system instruction: the texts of the first messages."""
    messages = out.messages[:head]
    if head > 1 or len(messages[0].content) > 1:
        for position in range(head):
            out.lose(position, None, Lost.texts, "the instruction is one text; they are joined")
    for position, message in enumerate(messages):
        for index, piece in enumerate(message.content):
            if not isinstance(piece, TextPart):
                out.lose(position, index, name_part_type(piece), "the instruction is a text")
    return "\n\n".join([message.text for message in messages])


def _dump_message(out: Outgoing[Quirks], position: int) -> list[Json]:
    """Writes one message as Interactions steps."""
    message = out.messages[position]
    if (text := read_sole_text(message)) is not None and message.role is not Role.SYSTEM:
        step_type = OUTPUT if message.role is Role.MODEL else INPUT
        return [{"type": step_type, "content": [{"type": "text", "text": text}]}]
    if message.role is Role.SYSTEM:
        why = "the API takes none within the conversation; sent as a marked user text"
        out.lose(position, None, Lost.system_message, why)
        text = f"<system>\n{message.text}\n</system>"
        return [{"type": INPUT, "content": [{"type": "text", "text": text}]}]
    steps = _dump_pieces(out, position)
    # Without a target an empty message is written as it was; the API would refuse it.
    form = OWN.form(message.native)
    if not steps and not message.content and "content" in form and out.target is None:
        content = {} if form["content"] == "absent" else {"content": form["content"]}
        return [merge_wire_fields({"type": INPUT, **content}, OWN.fields(message.native))]
    # Nothing of the message can be sent.
    if not steps:
        out.lose(position, None, Lost.message, _EMPTY)
    return steps


def _dump_pieces(out: Outgoing[Quirks], position: int) -> list[Json]:
    """Writes the pieces of a message as Interactions steps, in order."""
    message, unread = out.messages[position], out.unreadable[position]
    by_model = message.role is Role.MODEL
    steps = StepList(OUTPUT if by_model else INPUT, {} if by_model else OWN.fields(message.native))
    for index, original in enumerate(message.content):
        why = _explain_unsendable(original, unread, by_model=by_model)
        if why is not None:
            out.lose(position, index, name_part_type(original), why, _name_piece(original))
            continue
        # Fields that the target cannot read are not sent.
        piece = original if unread is None else _strip_native(original)
        if is_block(piece):
            block, lost = dump_block(piece)
            if lost is not None:
                out.lose(position, index, *lost)
            steps.add_block(block, read_step_start(piece.native) if by_model else None)
        else:
            _dump_other(out, position, index, piece, steps)
    return steps.steps


def _dump_other(
    out: Outgoing[Quirks], position: int, index: int, piece: Content, steps: StepList
) -> None:
    """Writes a piece that is no content of its own: an Interactions step, or a result that stood in
    the content."""
    call_id, name = "", ""
    if isinstance(piece, ToolCallPart | ToolResultPart):
        call_id, name = out.id(position, index, piece), out.name(piece.name)
    step = dump_step(piece, call_id, name) or {}
    if isinstance(piece, ToolCallPart):
        out.lose_unfinished(position, index, piece, step.get("arguments"))
    if isinstance(piece, ToolResultPart) and piece.is_content:
        for part in piece.result:
            if (lost := dump_block(part)[1]) is not None:
                out.lose(position, index, *lost)
    if OWN.form(piece.native).get("place") == "content":
        steps.add_block(step)
    else:
        steps.add_step(step)


def _explain_unsendable(piece: Content, unread: str | None, *, by_model: bool) -> str | None:
    """Returns why a piece cannot be sent as an Interactions step, or None if it can. `unread`: why
    the target does not read what was signed."""
    if isinstance(piece, ThinkingPart):
        if unread is None and not by_model:
            return "only a model's message has it here"
        if unread is None and not piece.text and not OWN.is_ours(piece.native):
            return "it is signed for another format"
        return unread
    if isinstance(piece, ProviderPart) or is_provider_tool(piece):
        return unread or (None if OWN.is_ours(piece.native) else "it is another provider's")
    if isinstance(piece, ToolCallPart) and not by_model:
        return "the API takes calls from the model alone"
    if isinstance(piece, ToolResultPart) and by_model:
        return "the API takes results from the user alone"
    return None


def _name_piece(piece: Content) -> str:
    """Returns what a loss of an Interactions conversation calls a piece of the provider's."""
    if is_provider_tool(piece):
        return piece.name
    return piece.kind if isinstance(piece, ProviderPart) else ""


def _strip_native(piece: Content) -> Content:
    """Returns a piece of an Interactions message without fields that only their own provider
    understands."""
    return replace(piece, native=OWN.without_fields(piece.native))


def _has_own_id(piece: ToolCallPart | ToolResultPart) -> bool:
    """True if a call or result keeps its id without a target: all but those without one."""
    return bool(piece.id)
