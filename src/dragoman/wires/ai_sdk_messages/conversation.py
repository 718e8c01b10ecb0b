"""A list of messages of the family ↔ a conversation: which dialect each message is read and written
in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from dragoman.codec.json_values import check_depth, if_list, if_object
from dragoman.codec.memos import dump_for_client, load_from_client
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role
from dragoman.wires.ai_sdk_messages.ai4_ui_messages import V4_DIALECT, load_v4
from dragoman.wires.ai_sdk_messages.approvals import approval_parts, dump_moved, has_parts
from dragoman.wires.ai_sdk_messages.detection import dialect_in
from dragoman.wires.ai_sdk_messages.mastra_v1_rows import is_split_row, load_split_row
from dragoman.wires.ai_sdk_messages.mastra_v2_rows import ROW_DIALECT, is_row, load_row
from dragoman.wires.ai_sdk_messages.message_groups import MessageGroup, group_messages
from dragoman.wires.ai_sdk_messages.model_messages import dump_message, load_message
from dragoman.wires.ai_sdk_messages.notes import (
    CORE,
    MODEL,
    OWN,
    ROW,
    UI,
    V4,
    Part,
    Parts,
    dialect_of,
    join_native,
)
from dragoman.wires.ai_sdk_messages.plain_turns import dump_plain_turn, load_plain_turn
from dragoman.wires.ai_sdk_messages.read_turn import Loading, id_of_turn, load_ui
from dragoman.wires.ai_sdk_messages.text_only_messages import dump_plain_row
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT
from dragoman.wires.ai_sdk_messages.write_turn import dump_group, lose_orphans

__all__ = ["dump_model", "dump_ui", "load_conversation"]


_DIALECTS = {
    V4: V4_DIALECT,
    ROW: ROW_DIALECT,
    **dict.fromkeys((UI, "v5", "v6", "v7"), UI_DIALECT),
}
"""Version, or name of a dialect → its table."""
_LOADERS: Mapping[str, Callable[[Any, str, Loading], None]] = {
    ROW: load_row,
    V4: load_v4,
    UI: load_ui,
}
"""Dialect of UI messages or rows → the function that reads one."""
_SPLIT_ROW = "mastra_v1"
"""Name for the dialect of rows of Mastra's first versions."""
_OLDER = {UI: V4, MODEL: CORE}
"""Newest dialect → the older one. The newest is noted only in lists that have both."""


def load_conversation(
    payload: Any,
    origin: Origin | None,
    problems: list[Problem] | None,
    *,
    rows: bool = False,
    is_model: bool = False,
) -> list[Message]:
    """Returns the messages in a list of the family.

    Args:
        payload: the list.
        origin: for model messages that name none.
        problems: takes what cannot be read; None to raise.
        rows: True to read a message without parts as a Mastra row.
        is_model: True to read a message that may be either as a model message.

    Raises:
        HistoryError: it is no list, or a message cannot be read and `problems` is None.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "messages of the AI SDK are a list of objects with a role and parts, or a role and a content"
        )
    entries = cast("list[Any]", payload)
    if problems is None:
        check_depth(entries)
    loading = Loading(origin, _ids_in(entries))
    messages = loading.messages
    starts: list[tuple[int, str]] = []
    for index, entry in enumerate(entries):
        start, before = len(messages), messages[-1] if messages else None
        try:
            if problems is None:
                checked = entry
            else:
                checked = check_depth(entry)
            # Most messages are plain. An origin from the caller has to be noted, which only the
            # long way does.
            if loading.origin is None and (turn := load_plain_turn(checked, before, loading.taken)):
                messages += turn
                starts.append((start, UI))
                continue
            dialect = _dialect_of(checked, rows=rows, is_model=is_model)
            starts.append((start, dialect))
            _load_entry(checked, dialect, f"[{index}]", loading)
        except HistoryError as error:
            note_problem(error, problems, index, _field_of(error))
    _tell_apart(starts, messages)
    return load_from_client(messages)


def _dialect_of(entry: Any, *, rows: bool, is_model: bool) -> str:
    """Returns the dialect in which to read an AI SDK message."""
    if is_row(entry):
        return ROW
    fields = if_object(entry)
    if is_split_row(entry) or (rows and "parts" not in fields):
        return _SPLIT_ROW
    return dialect_in(fields, is_model=is_model)


def _load_entry(
    entry: Any,
    dialect: str,
    where: str,
    loading: Loading,
) -> None:
    """Reads one AI SDK entry of a list, in its dialect, and adds it to the conversation."""
    if dialect in (MODEL, CORE):
        load_message(entry, where, dialect, loading.origin, loading.messages)
    elif dialect == _SPLIT_ROW:
        load_split_row(entry, where, loading.origin, loading.messages)
    else:
        _LOADERS[dialect](entry, where, loading)


def _tell_apart(starts: list[tuple[int, str]], messages: list[Message]) -> None:
    """Notes the AI SDK dialect of newer messages in a list that also has older ones.

    Args:
        starts: index and dialect of each message that was read.
        messages: the messages.
    """
    dialects = {dialect for _, dialect in starts}
    # Where both stand in one list, writing it again needs to know which message was of which.
    newer = {dialect for dialect, older in _OLDER.items() if older in dialects}
    for start, dialect in starts if newer else ():
        if dialect not in newer or start >= len(messages):
            continue
        native = messages[start].native
        if dialect_of(native) is None:
            native = join_native(native, OWN.with_form(native, **{"in": dialect}))
            messages[start] = messages[start].replace(native=native)


def _ids_in(entries: list[Any]) -> set[str]:
    """Returns the ids of all messages in a list."""
    ids = [if_object(entry).get("id") for entry in entries]
    return {id_ for id_ in ids if type(id_) is str}


def _field_of(error: HistoryError) -> str | None:
    """Returns the field that an error names, or None."""
    _, dot, field = error.message.partition(" ")[0].partition(".")
    return field.partition("[")[0] if dot else None


def dump_ui(
    messages: Iterable[Message],
    losses: list[Loss] | None,
    version: str | None,
    *,
    carries: bool = True,
) -> Parts:
    """Returns a conversation as UI messages, or as Mastra rows.

    Args:
        messages: the conversation.
        losses: grows with what is left out.
        version: release of the library, or the dialect of rows. None: as each message was read,
            else the newest.
        carries: True to carry what a message has no field for; the older dialects always do.
    """
    return dump_for_client(
        tuple(messages),
        [] if losses is None else losses,
        lambda visible, lost: _dump_ui(tuple(visible), lost, version, carries=carries),
    )


def _dump_ui(
    conversation: tuple[Message, ...], losses: list[Loss], version: str | None, *, carries: bool
) -> Parts:
    """Returns an AI SDK conversation without memos as `dump_ui` does."""
    if has_parts(conversation):
        return dump_moved(
            conversation,
            losses,
            lambda moved, lost: _dump_ui(tuple(moved), lost, version, carries=carries),
        )
    usual = _usual_dialect(conversation, UI)
    groups = _select_groups(conversation, losses, usual == UI and version in (None, "v7"))
    ids = _assign_ids(groups)
    taken = {id_ for id_ in ids if id_ is not None}
    written: Parts = []
    for number, (group, id_) in enumerate(zip(groups, ids, strict=True)):
        # Most messages are texts alone, and need no table.
        entry = None
        if usual == UI:
            entry = _dump_plain(group, id_, taken, version, carries=carries)
        if entry is None:
            dialect = _DIALECTS[version or _dialect_read(group, usual)]
            if id_ is None:
                id_ = _mint_id(number, taken)
            entry = dump_group(group, id_, dialect, taken, losses, version, carries=carries)
        written.append(entry)
    return written


def _usual_dialect(messages: tuple[Message, ...], newest: str) -> str:
    """Returns the dialect for AI SDK messages that note none: the older one if another message was
    read in it."""
    older = _OLDER[newest]
    natives = [message.native for message in messages if message.native]
    if any(dialect_of(native) == older for native in natives):
        return older
    return newest


def _select_groups(
    messages: tuple[Message, ...], losses: list[Loss], steering: bool
) -> list[MessageGroup]:
    """Returns the groups of AI SDK messages to write. Results without their call are losses."""
    groups: list[MessageGroup] = []
    for group in group_messages(messages, steering=steering):
        if group.is_orphaned:
            lose_orphans(group, losses)
        else:
            groups.append(group)
    return groups


def _dialect_read(group: MessageGroup, usual: str) -> str:
    """Returns the dialect of UI messages in which a group was read, or `usual`."""
    dialect = dialect_of(group.messages[0].native)
    return dialect if dialect in (V4, UI) else usual


def _assign_ids(groups: list[MessageGroup]) -> list[str | None]:
    """Returns the id of each UI message, or None for one that needs a new id."""
    ids: list[str | None] = []
    seen: set[str | None] = set()
    for group in groups:
        first = group.messages[0]
        id_ = id_of_turn(first)
        if id_ is not None and id_ in seen and id_ == first.turn:
            id_ = first.id  # the turn goes on behind what cut it
        ids.append(id_)
        seen.add(id_)
    return ids


def _dump_plain(
    group: MessageGroup, id_: str | None, taken: set[str], version: str | None, *, carries: bool
) -> Part | None:
    """Returns an AI SDK message of a plain turn, or None if it has anything else."""
    if id_ is None or group.behind or group.joined or group.moved or version == V4:
        return None
    if version != ROW:
        return dump_plain_turn(group.messages, id_, taken, carries=carries)
    if len(group.messages) == 1:
        return dump_plain_row(group.messages[0], id_)
    return None


def _mint_id(number: int, taken: set[str]) -> str:
    """Returns a new id for an AI SDK message."""
    id_ = f"msg-{number}"
    while id_ in taken:
        id_ += "'"
    taken.add(id_)
    return id_


def dump_model(
    messages: Iterable[Message], losses: list[Loss] | None, version: str | None
) -> Parts:
    """Returns an AI SDK conversation as model messages. See `dump_ui` for `losses` and
    `version`."""
    return dump_for_client(
        tuple(messages),
        [] if losses is None else losses,
        lambda visible, lost: _dump_model(tuple(visible), lost, version),
    )


def _dump_model(
    conversation: tuple[Message, ...], losses: list[Loss], version: str | None
) -> Parts:
    """Returns an AI SDK conversation without memos as `dump_model` does."""
    usual = _usual_dialect(conversation, MODEL)
    waiting: Parts = []
    written: Parts = []
    for position, message in enumerate(conversation):
        dialect = _model_dialect(message, version, usual)
        entries = dump_message(message, position, dialect, losses, version)
        if waiting:
            _put_approval_responses(entries, waiting)
            waiting = []
        if dialect == MODEL and message.role is Role.MODEL and version != "v5":
            waiting = _put_approval_requests(entries, message)
        written += entries
    if waiting:
        return [*written, {"role": "tool", "content": waiting}]
    return written


def _model_dialect(message: Message, version: str | None, usual: str) -> str:
    """Returns the dialect of an AI SDK model message: the release's, else the one in which it was
    read."""
    if version is not None:
        return CORE if version == V4 else MODEL
    dialect = dialect_of(message.native)
    if dialect in (CORE, MODEL):
        return dialect
    return usual


def _put_approval_requests(entries: Parts, message: Message) -> Parts:
    """Puts requests for approval behind their calls. Returns the AI SDK responses."""
    requests, responses = approval_parts(message)
    if requests:
        parts = if_list(entries[0]["content"])
        entries[0]["content"] = list(_with_requests(parts, requests))
    return responses


def _with_requests(parts: Parts, requests: dict[str, Part]) -> Iterator[Part]:
    """Yields the parts, and each AI SDK request behind its call."""
    for part in parts:
        yield part
        if part["type"] == "tool-call" and part["toolCallId"] in requests:
            yield requests[part["toolCallId"]]


def _put_approval_responses(entries: Parts, responses: Parts) -> None:
    """Puts responses before the tool results, or into an AI SDK message of their own."""
    if entries and entries[0]["role"] == "tool":
        entries[0]["content"] = [*responses, *entries[0]["content"]]
    else:
        entries.insert(0, {"role": "tool", "content": responses})
