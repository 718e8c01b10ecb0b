"""The conversation: `messages` of the Chat API ⇄ our messages. Consecutive tool messages are one user message of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeGuard, cast

import msgspec
from msgspec.structs import replace

from dragoman.codec.ids import call_ids, fitted
from dragoman.codec.json_values import bounded, if_list, if_text, merged, rest
from dragoman.codec.media import as_text
from dragoman.codec.replay import kind_of, readable
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.cohere.calls import Lose, dump_call, dump_result, is_call, load_call, load_result
from dragoman.wires.cohere.content import dump_block, dump_content, load_content, unsaid
from dragoman.wires.cohere.quirks import OWN, Quirks

__all__ = ["PLAN", "dump_messages", "load_messages", "read_messages", "sent_names"]

PLAN = "tool_plan"
"""The field for thinking about which tools to call; a part that came in it is so spelled."""
_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.MODEL}
_SENT = {role: name for name, role in _ROLES.items()}
_EMPTY = {Role.SYSTEM: "", Role.USER: "", Role.MODEL: "absent"}


class _Outgoing(msgspec.Struct, frozen=True):
    """What the dump of a message needs to know beside it."""

    ids: Mapping[tuple[int, int], str]
    names: Mapping[str, str]
    target: Origin | None
    losses: list[Loss]

    def lose(self, position: int) -> Lose:
        """What notes the losses of a message."""
        return lambda place, what, why: self.losses.append(Loss(position, place, what, why))


def load_messages(payload: Any, *, origin: Origin | None = None) -> list[Message]:
    """The list of messages → ours. `origin` is given to the model's.

    Raises:
        HistoryError: it is no such list.
    """
    return read_messages(bounded(payload), origin)


def read_messages(payload: Any, origin: Origin | None) -> list[Message]:
    """The same of a payload whose depth is known to be bounded."""
    if not isinstance(payload, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", payload)):
        raise HistoryError("the messages of a Cohere chat are a list of objects")
    names: dict[str, str] = {}
    messages: list[Message] = []
    for of_results, group in groupby(cast("list[dict[str, Any]]", payload), lambda entry: entry.get("role") == "tool"):
        if of_results:
            messages.append(Message(Role.USER, tuple([load_result(entry, names) for entry in group])))
            continue
        for entry in group:
            messages.append(_load(entry, origin))
            names.update({call.id: call.name for call in messages[-1].tool_calls})
    return messages


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
    names: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Messages → the list of messages. `names`: name of each tool → the one that it is sent under, where a request knows."""
    messages, quirks = list(messages), quirks or Quirks()
    names = sent_names(messages, quirks, target=target) if names is None else names
    as_is = None if target else _as_it_is
    out = _Outgoing(call_ids(messages, quirks.ids, as_is=as_is), names, target, [] if losses is None else losses)
    dumped: list[dict[str, Any]] = []
    for position, reason in enumerate(readable(messages, target, quirks.reads)):
        message, lose = messages[position], out.lose(position)
        if message.role is Role.MODEL:
            said = _dump_model(position, message, reason, out)
        else:
            results = [
                dump_result(piece, out.ids.get((position, place), ""), place, lose)
                for place, piece in enumerate(message.content)
                if _is_answer(piece)
            ]
            dumped += [result for result, _ in results]
            later = [block for _, media in results for block in media]
            alone = results and len(results) == len(message.content) and not later
            said = None if alone else _dump_said(message, later, out, lose)
        if said is not None:
            dumped.append(said)
    return dumped


def sent_names(
    messages: Sequence[Message], quirks: Quirks, tools: Sequence[str] = (), *, target: Origin | None
) -> dict[str, str]:
    """Name of each tool of the request and of the calls in its history → the name to send: its own without a target."""
    called = [call.name for message in messages for call in message.tool_calls]
    names = list(dict.fromkeys([*tools, *called]))
    return fitted(names, quirks.names) if target else {name: name for name in names}


def _load(entry: Mapping[str, Any], origin: Origin | None) -> Message:
    role = _ROLES.get(if_text(entry.get("role")))
    if role is None:
        raise HistoryError(f"a Cohere chat has no role {entry.get('role')!r}; it has system, user, assistant and tool")
    content: list[Content] = []
    read = ["role", "content"]
    if role is Role.MODEL and (plan := if_text(entry.get(PLAN))):
        content.append(ThinkingPart(plan, OWN.with_form(None, field=PLAN)))
        read.append(PLAN)
    spelled: dict[str, Any] = {}
    content += load_content(entry, _EMPTY[role], spelled)
    calls = if_list(entry.get("tool_calls"))
    if role is Role.MODEL and calls and all(map(is_call, calls)):
        content += [load_call(call) for call in calls]
        read.append("tool_calls")
    native = OWN.note(rest(entry, *read), form=spelled)
    return Message(role, tuple(content), origin=origin if role is Role.MODEL else None, native=native)


def _dump_said(message: Message, blocks: list[dict[str, Any]], out: _Outgoing, lose: Lose) -> dict[str, Any] | None:
    """A system message, or what a user's says beside results, behind these blocks. `None`: it says nothing to a target."""
    said = False
    for place, piece in enumerate(message.content):
        if _is_answer(piece):
            if said:
                lose(place, "order", "this format has the results of tools before all else")
            continue
        block = "only a model's message has it here" if isinstance(piece, ThinkingPart) else dump_block(piece)
        if isinstance(block, str):
            lose(place, kind_of(piece), block)
            continue
        said = True
        if out.target and message.role is Role.SYSTEM and isinstance(piece, (DataPart, LinkPart)):
            block = {"type": "text", "text": as_text(piece)}
        if (lost := unsaid(piece, block)) is not None:
            lose(place, *lost)
        blocks.append(block)
    if out.target is not None and not blocks:
        lose(None, "message", "it says nothing, and the API takes no empty message")
        return None
    content = dump_content(blocks, "", OWN.form(message.native))
    return merged({"role": _SENT[message.role], **content}, OWN.fields(message.native))


def _dump_model(position: int, message: Message, reason: str | None, out: _Outgoing) -> dict[str, Any] | None:
    """A model's message; `None`: it says nothing to a target. `reason`: why what only its provider understands may not go
    along; `None`: it may."""
    lose = out.lose(position)
    plan, blocks, calls = "", list[dict[str, Any]](), list[dict[str, Any]]()
    for place, piece in enumerate(message.content):
        why = _refused(piece, reason, out.target)
        if why is not None:
            lose(place, kind_of(piece), why)
            continue
        if isinstance(piece, ToolCallPart):
            call_id, name = out.ids.get((position, place), piece.id), out.names.get(piece.name, piece.name)
            calls.append(dump_call(piece, call_id, name, exact=reason is None))
            continue
        planned = isinstance(piece, ThinkingPart) and OWN.form(piece.native).get("field") == PLAN
        if calls or (planned and blocks):
            lose(place, "order", "this format has a message's plan before its content, and both before its calls")
        block = {} if planned else dump_block(piece if reason is None else replace(piece, native=None))
        if planned:
            plan += cast("ThinkingPart", piece).text
        elif isinstance(block, str):
            lose(place, kind_of(piece), block)
        else:
            if (lost := unsaid(piece, block)) is not None:
                lose(place, *lost)
            blocks.append(block)
    own = OWN.fields(message.native)
    if own and reason is not None:
        lose(None, ", ".join(own), reason)
        own = {}
    content = dump_content(blocks, "absent", OWN.form(message.native))
    told = {PLAN: plan} if plan else {}
    if out.target is not None and not (calls or blocks or plan):
        lose(None, "message", "it says nothing, and the API takes no empty message")
        return None
    if not calls and not content and not plan and not own and "content" not in OWN.form(message.native):
        content = {"content": ""}
    return merged({"role": "assistant", **told, **content, **({"tool_calls": calls} if calls else {})}, own)


def _refused(piece: Content, reason: str | None, target: Origin | None) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
    if isinstance(piece, ThinkingPart):
        return reason or (None if piece.text else "it is signed for another format")
    if isinstance(piece, ProviderPart):
        return reason
    if isinstance(piece, ToolResultPart) or (isinstance(piece, ToolCallPart) and piece.run_by == "provider"):
        return "this format has no tools that the provider runs"
    if isinstance(piece, (DataPart, LinkPart)) and target is not None:
        return "a model's message holds no media in this format"
    return None


def _is_answer(piece: Content) -> TypeGuard[ToolResultPart]:
    return isinstance(piece, ToolResultPart) and piece.run_by != "provider"


def _as_it_is(_: ToolCallPart | ToolResultPart) -> bool:
    """Ids stay as they are, however odd, where nothing is sent anywhere."""
    return True
