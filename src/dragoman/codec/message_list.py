"""A conversation that is a list of messages with a role and a content, as most APIs have it →
messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import check_depth, if_objects
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Origin, Role, TextPart, ToolResultPart

__all__ = [
    "ABSENT",
    "SPEAKER_ROLES",
    "dump_content",
    "is_plain_text",
    "load_content",
    "load_list",
    "load_plain_message",
    "plain_text",
]


SPEAKER_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
}
"""The roles that such a list has with most APIs, beside that of results."""


def load_list(
    payload: Any,
    load: Callable[[Json], Message | ToolResultPart],
    origin: Origin | None,
    problems: list[Problem] | None,
    *,
    what: str,
    roles: Collection[str],
    lists: bool = True,
) -> list[Message]:
    """Converts a format's list of messages to dragoman's; without `problems` its depth is bounded.
    Results that follow each other are one message of the user's.

    `load`: a message that is more than a role and a text → ours, or the result that it is. `what`:
    the list's owner, `roles`: all that it has, `lists`: a content may be a list; for what is told
    of a message that cannot be read.

    Raises:
        HistoryError: it is no list of objects, or one of them cannot be read and no problems are noted.
    """
    no_list = f"the messages of {what} are a list of objects"
    if not isinstance(payload, list):
        raise HistoryError(no_list).at(field="messages")
    messages: list[Message] = []
    results: list[ToolResultPart] = []
    for index, entry in enumerate(cast("list[Any]", payload)):
        try:
            loaded = load_plain_message(entry, SPEAKER_ROLES, origin)
            if loaded is None:
                fields = _object(entry, no_list)
                # Without problems the whole list was checked already.
                if problems is not None:
                    check_depth(fields)
                loaded = load(fields)
        except HistoryError as error:
            note_problem(error, problems, index, _field_at_fault(entry, roles, lists=lists))
            continue
        if isinstance(loaded, ToolResultPart):
            results.append(loaded)
            continue
        if results:
            messages.append(Message(Role.USER, tuple(results)))
            results = []
        messages.append(loaded)
    if results:
        return [*messages, Message(Role.USER, tuple(results))]
    return messages


def load_plain_message(
    entry: Any, speakers: Mapping[str, Role], origin: Origin | None
) -> Message | None:
    """Returns a listed message of a role and a text, as nearly all are; `None`: any other. `origin`
    is given to the model's."""
    if not isinstance(entry, dict) or len(fields := cast("Json", entry)) != 2:
        return None
    text, name = fields.get("content"), fields.get("role")
    if (
        not isinstance(text, str)
        or not isinstance(name, str)
        or name not in speakers
        or not text.strip()
    ):
        return None
    role = speakers[name]
    return Message(role, (TextPart(text),), origin=origin if role is Role.MODEL else None)


def _object(entry: Any, no_list: str) -> Json:
    if not isinstance(entry, dict):
        raise HistoryError(no_list)
    return cast("Json", entry)


def _field_at_fault(entry: Any, roles: Collection[str], *, lists: bool) -> str | None:
    """Returns the field for which a listed message cannot be read, where it is one."""
    if not isinstance(entry, dict):
        return None
    fields = cast("Json", entry)
    if fields.get("role") not in roles:
        return "role"
    content = fields.get("content")
    listed = lists and (content == [] or if_objects(content))
    if listed or isinstance(content, str | None):
        return None
    return "content"


ABSENT = "absent"
"""Wire form: the field was not there at all."""


def load_content(
    message: JsonMap,
    empty: object,
    form: Json,
    load: Callable[[JsonMap], Content],
) -> list[Content]:
    """Converts the `content` of a message in a list to its pieces. `empty`: how no content is
    usually written; another way goes to `form`. `load` reads a block.

    Raises:
        HistoryError: it is neither a text nor a list of blocks.
    """
    content = message.get("content")
    if not content:
        written_form = content if "content" in message else ABSENT
        if written_form != empty:
            form["content"] = written_form
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not (blocks := if_objects(content)):
        raise HistoryError(
            f"the content of a {message.get('role')} message is neither a text nor a list of blocks"
        )
    if is_plain_text(blocks):
        form["content"] = "list"
    return [load(block) for block in blocks]


def dump_content(
    blocks: Sequence[Json],
    empty: object,
    form: JsonMap,
    *,
    string_only: bool = False,
) -> Json:
    """Converts blocks to the field `content` of a message in a list: a string for one plain text
    (and for several where the vendor takes nothing else), else a list."""
    written_form = form.get("content", empty)
    if not blocks:
        # Noted for a list of one text; that text is gone by now.
        if written_form == "list":
            written_form = empty
        if written_form == ABSENT:
            return {}
        return {"content": written_form}
    texts = [plain_text(block) for block in blocks]
    if None not in texts and (string_only or (len(texts) == 1 and written_form != "list")):
        return {"content": "".join(map(str, texts))}
    return {"content": list(blocks)}


def plain_text(block: JsonMap) -> str | None:
    """Returns the text of a message's content block that has no further field. None if it has, or
    if the text is empty."""
    text = block.get("text")
    if len(block) == 2 and block.get("type") == "text" and isinstance(text, str) and text:
        return text
    return None


def is_plain_text(blocks: Sequence[JsonMap]) -> bool:
    """Returns True if it is one text and nothing else."""
    return len(blocks) == 1 and plain_text(blocks[0]) is not None
