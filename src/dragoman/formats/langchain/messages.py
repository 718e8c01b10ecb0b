"""The conversation: a list of LangChain's messages ↔ messages, exactly and in order.

A reader gathers the results that follow each other into one user message; a dump makes
each result a message of its own again. A message whose fields are not the usual ones is written
once while it is read, and where that is not what came the difference is noted (`carriage.exactly`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

import msgspec

from dragoman.codec.json_values import check_depth, if_object, if_text, read_extra_fields
from dragoman.codec.memos import is_memo, load_from_client
from dragoman.codec.serving import Problem, note_problem
from dragoman.content import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.errors import HistoryError
from dragoman.formats.langchain.calls import load_calls, load_function_call, name_results
from dragoman.formats.langchain.content import load_content
from dragoman.formats.langchain.envelope import (
    OWN,
    REMOVE,
    ROLES,
    THINKING,
    OpenedMessage,
    base_type,
    close_message,
    defaults,
    open_message,
)
from dragoman.formats.langchain.message_dump import dump_message, dump_result
from dragoman.formats.langchain.message_metadata import (
    Extra,
    dump_extra,
    dump_response,
    exactly,
    is_usual,
    is_usual_result,
    load_response,
    load_usage,
    pop_extra,
    provider,
    set_kwargs,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role

__all__ = ["dump_messages", "load_messages"]

_CHAT_ROLES = {
    "assistant": Role.MODEL,
    "ai": Role.MODEL,
    "model": Role.MODEL,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
}
"""Role of a chat message → whose it is; that of any other is the user's."""
_MISSING = object()


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a list of LangChain's messages. `origin` is given to the model's where they do not say
    whose they are. With `problems`, a message that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "LangChain's messages are a list of objects, as messages_to_dict or dumpd write them"
        )
    reader = _Reader(origin)
    entries = cast("list[Any]", payload)
    for index, entry in enumerate(check_depth(entries) if problems is None else entries):
        try:
            reader.read(entry if problems is None else check_depth(entry), f"[{index}]")
        except HistoryError as error:
            note_problem(error, problems, index, _find_faulty_field(error))
    return load_from_client(reader.end())


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
    version: Literal["dict", "constructor", "plain"] | None = None,
) -> list[Json]:
    """Writes messages as a list of LangChain's messages. `version`: as `messages_to_dict` (`dict`),
    `dumpd` (`constructor`) or `model_dump` (`plain`) has them; `None`: as each was read, else as
    `messages_to_dict`. What the format cannot hold is added to `losses`."""
    losses = [] if losses is None else losses
    out: list[Json] = []
    for position, message in enumerate(messages):
        if is_memo(message):
            continue
        lost: list[Loss] = []
        out += dump_message(message, lost, version)
        losses += [msgspec.structs.replace(loss, message=position) for loss in lost]
    return out


class _Reader:
    """Reads a list, message by message."""

    def __init__(self, origin: Origin | None) -> None:
        """Creates the reader of a list of LangChain messages."""
        self._origin = origin
        self._out: list[Message] = []
        self._results: list[ToolResultPart] = []
        self._about: Extra | None = None  # of the message of results that is open
        self._names: dict[str, str] = {}  # id of each call so far → its tool
        self._functions: dict[
            str, str
        ] = {}  # name of a call without an id → the id that it was given

    def read(self, entry: object, where: str) -> None:
        """Reads one LangChain message, and adds it to the conversation."""
        opened_message = open_message(entry, where)
        type_ = base_type(opened_message.type)
        if type_ in ("tool", "function"):
            part, extra = self._load_tool_message(opened_message, where)
            if extra is None:
                about = None
            else:
                about = msgspec.structs.replace(extra, denied=False, native={})
            if about is not None and dump_extra(about):
                self._end_results()
                self._about = about
            self._results.append(part)
            return
        if type_ == REMOVE:
            self._load_removal(opened_message)
            return
        message = _load_langchain_message(opened_message, where, self._origin)
        self._end_results()
        self._out.append(message)
        for piece in message.content:
            if isinstance(piece, ToolCallPart):
                self._names[piece.id] = piece.name
                if OWN.form(piece.native).get("as") == "function_call":
                    self._functions[piece.name] = piece.id

    def end(self) -> list[Message]:
        """Returns all messages."""
        self._end_results()
        return self._out

    def _load_removal(self, opened_message: OpenedMessage) -> None:
        """Reads a LangChain message that removes another, as a mark in the message before it."""
        self._end_results()
        form, extra_fields = _own(opened_message)
        fields = {**extra_fields, "content": opened_message.data.get("content", "")}
        if self._out:
            mark = MarkPart(REMOVE, OWN.note(fields, form))
            self._out[-1] = self._out[-1].replace(content=(*self._out[-1].content, mark))
        else:
            mark = MarkPart(REMOVE, OWN.note(fields, {**form, "alone": True}))
            self._out.append(Message(Role.USER, (mark,)))

    def _load_tool_message(
        self, opened_message: OpenedMessage, where: str
    ) -> tuple[ToolResultPart, Extra | None]:
        """Returns the result that a message of a tool is, and what this library noted on it.
        `where`: the message, for errors.

        Raises:
            HistoryError: it does not say which call it answers, or its content is of no form.
        """
        form, extra_fields = _own(opened_message)
        name = extra_fields.pop("name", None)
        id_ = self._pop_call_id(opened_message.type, name, extra_fields, where)
        if not isinstance(name, str) or not name:
            if name is not None:
                extra_fields["name"] = name
            # A result of LangChain's may leave the name out: its call has it.
            name, form["name"] = self._names.get(id_, ""), "absent"
        if is_error := extra_fields.get("status") == "error":
            del extra_fields["status"]
        noted = pop_extra(extra_fields)
        extra = noted or Extra()
        result = _load_result_content(opened_message.data.get("content", ""), form, where)
        native = {**extra.native, **(OWN.note(extra_fields, form) or {})} or None
        part = ToolResultPart(id_, name, result, is_error, native=native, denied=extra.denied)
        if is_usual_result(opened_message):
            return part, noted
        return _note_result(part, extra, opened_message, form), noted

    def _pop_call_id(self, type_: str, name: object, extra_fields: Json, where: str) -> str:
        """Takes the id of the call that a LangChain tool message answers out of its fields. A
        message of a function has none, so that it answers the last call of its name.

        Raises:
            HistoryError: there is none.
        """
        if base_type(type_) == "function":
            return self._functions.get(if_text(name), "")
        id_ = extra_fields.pop("tool_call_id", None)
        if isinstance(id_, str):
            return id_
        raise _NoCall(
            f"{where}.tool_call_id must be a string, the id of the call that was answered"
        )

    def _end_results(self) -> None:
        """Ends a group of LangChain tool messages, which become one user message."""
        if self._results:
            if self._about is None:
                about = {}
            else:
                about = msgspec.structs.asdict(self._about)
            about = {key: about[key] for key in about if key not in ("denied", "native")}
            self._out.append(Message(Role.USER, tuple(self._results), **about))
        self._results, self._about = [], None


def _note_result(
    part: ToolResultPart, extra: Extra, opened_message: OpenedMessage, form: JsonMap
) -> ToolResultPart:
    """Returns the result in a LangChain tool message with a note of the fields that it would not be
    written with as they came."""
    again = dump_result(part, extra, [], None)
    if again == _entry_fields(opened_message, form):
        return part
    native = exactly(part, part.native, again, opened_message.data)
    return msgspec.structs.replace(part, native=native)


def _load_result_content(content: object, form: Json, where: str) -> Any:
    """Returns the value of the result in a LangChain tool message: a text, parts, or the list as it
    is, which `form` notes.

    Raises:
        HistoryError: it is neither a text nor a list.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise HistoryError(
            f"{where}.content must be a string or a list of strings and content blocks"
        )
    parts = load_content(cast("Any", content), Role.USER, None, form, where)
    form.pop("content", None)
    if parts and all(_is_result(part) for part in parts):
        return parts
    form["content"] = "raw"
    return cast("Any", content)


class _NoCall(HistoryError):
    """A result that does not say which call it answers."""


def _find_faulty_field(error: HistoryError) -> str | None:
    """Returns the field for which a LangChain message cannot be read, where it is one."""
    _, dot, field = error.message.partition(" ")[0].partition(".")
    if dot:
        return field.partition("[")[0]
    return None


def _own(opened_message: OpenedMessage) -> tuple[Json, Json]:
    """Returns the form of a LangChain message, and its fields that say something, without its
    content."""
    form = dict(opened_message.form)
    usual = defaults(opened_message.type, form.get("wrap", "dict"))
    if opened_message.type not in ROLES and opened_message.type != "tool":
        form["type"] = opened_message.type
    if not usual.keys() <= opened_message.data.keys():
        form["absent"] = [key for key in usual if key not in opened_message.data]
    extra_fields = {
        key: value
        for key, value in opened_message.data.items()
        if usual.get(key, _MISSING) != value and key != "content"
    }
    return form, extra_fields


def _entry_fields(opened_message: OpenedMessage, form: JsonMap) -> Json:
    """Returns the fields that are needed to write a LangChain message again as it was."""
    fields = close_message(
        opened_message.type,
        {},
        {**form, "absent": list(defaults(opened_message.type, form.get("wrap", "dict")))},
        None,
    )
    if form.get("wrap") == "plain":
        return {**fields, **opened_message.data}
    return {
        **fields,
        "kwargs" if form.get("wrap") == "constructor" else "data": opened_message.data,
    }


def _load_langchain_message(
    opened_message: OpenedMessage, where: str, origin: Origin | None
) -> Message:
    """Returns a LangChain message that is no result."""
    type_ = base_type(opened_message.type)
    form, extra_fields = _own(opened_message)
    id_ = _pop_id(extra_fields)
    role = ROLES.get(type_) or _CHAT_ROLES.get(if_text(extra_fields.get("role")).lower(), Role.USER)
    extra = pop_extra(extra_fields)
    about: Json = {}
    if extra is not None:
        about = read_extra_fields(msgspec.structs.asdict(extra), "id", "denied")
    foreign = about.pop("native", {})
    usual = is_usual(opened_message, role)
    if role is Role.MODEL:
        signer = provider(opened_message.data)
    else:
        signer = None
    content = load_content(opened_message.data.get("content", ""), role, signer, form, where)
    if role is Role.MODEL:
        content = _load_kwargs(extra_fields, load_calls(opened_message.data, content, where), where)
        for name in ("tool_calls", "invalid_tool_calls"):
            extra_fields.pop(name, None)
        answered_by, reason = load_response(opened_message.data, origin, signer)
        about |= {"origin": answered_by, "finish_reason": reason}
        about |= _pop_usage(extra_fields, form)
        response = dump_response(answered_by, reason)
        if response == extra_fields.get("response_metadata", {}):
            extra_fields.pop("response_metadata", None)
        elif "response_metadata" not in extra_fields:
            usual = False
    native = OWN.note(extra_fields, form)
    if foreign:
        native = {**foreign, **(native or {})}
    message = Message(role, name_results(content), id_, native=native, **about)
    if usual:
        return message
    return _note_message(message, opened_message, form)


def _pop_id(extra_fields: Json) -> str | None:
    """Takes the id out of the fields of a LangChain message, unless it is empty or no text."""
    if if_text(extra_fields.get("id")):
        return extra_fields.pop("id")
    return None


def _pop_usage(extra_fields: Json, form: Json) -> Json:
    """Takes the token counts out of the fields of a LangChain message, if they can be read. Returns
    them as a field of `Message`; `form` gets a note of what else they say."""
    if "usage_metadata" not in extra_fields:
        return {}
    usage, more = load_usage(extra_fields["usage_metadata"])
    if usage is None:
        return {}
    del extra_fields["usage_metadata"]
    if more:
        form["usage"] = more
    return {"usage": usage}


def _note_message(message: Message, opened_message: OpenedMessage, form: JsonMap) -> Message:
    """Returns a LangChain message with a note of the fields that it would not be written with as
    they came."""
    again = dump_message(message, [], None)
    if again == [_entry_fields(opened_message, form)]:
        return message
    written = again[0] if again else {}
    return message.replace(native=exactly(message, message.native, written, opened_message.data))


def _load_kwargs(extra_fields: Json, content: list[Content], where: str) -> list[Content]:
    """Returns the content of a LangChain message with what `additional_kwargs` has of it, which is
    taken out of `extra_fields`."""
    extra = if_object(extra_fields.get("additional_kwargs"))
    if not extra:
        set_kwargs(extra_fields, extra)
        return content
    thinking = extra.get(THINKING)
    if (
        isinstance(thinking, str)
        and thinking
        and not any(isinstance(piece, ThinkingPart) for piece in content)
    ):
        content = [ThinkingPart(thinking, OWN.note(form={"as": THINKING})), *content]
        extra = read_extra_fields(extra, THINKING)
    if (call := load_function_call(extra.get("function_call"), where)) is not None:
        content = [*content, call]
        extra = read_extra_fields(extra, "function_call")
    set_kwargs(extra_fields, extra)
    return content


def _is_result(part: Content) -> bool:
    return isinstance(part, (TextPart, DataPart, LinkPart, FilePart))
