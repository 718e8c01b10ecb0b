"""The conversation: a list of LangChain's messages ↔ messages, exactly and in order.

Results that follow each other are one message of the user's; how one is written stands in `messages_dump.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from dragoman.codec.json_values import bounded, if_object, if_text, rest
from dragoman.codec.serving import Problem, noted
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
from dragoman.formats.langchain.calls import load_calls, load_function_call
from dragoman.formats.langchain.carriage import (
    OURS,
    Extra,
    dump_extra,
    dump_response,
    load_extra,
    load_response,
    load_usage,
    provider,
)
from dragoman.formats.langchain.content import load_content
from dragoman.formats.langchain.envelope import (
    OWN,
    REMOVE,
    ROLES,
    THINKING,
    Opened,
    base_type,
    closed,
    defaults,
    opened,
)
from dragoman.formats.langchain.exact import exactly, is_usual, is_usual_result
from dragoman.formats.langchain.messages_dump import dump_message, dump_result
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
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of LangChain's messages as JSON → messages. `origin` is given to the model's where they do not say whose they are. With
    `problems`, a message that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "LangChain's messages are a list of objects, as messages_to_dict or dumpd write them"
        )
    reader = _Reader(origin)
    entries = cast("list[Any]", payload)
    for index, entry in enumerate(bounded(entries) if problems is None else entries):
        try:
            reader.read(entry if problems is None else bounded(entry), f"[{index}]")
        except HistoryError as error:
            noted(error, problems, index, _fault(error))
    return reader.end()


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
    version: Literal["dict", "constructor", "plain"] | None = None,
) -> list[dict[str, Any]]:
    """Messages → a list of LangChain's messages as JSON. `version`: as `messages_to_dict` (`dict`), `dumpd` (`constructor`) or
    `model_dump` (`plain`) has them; `None`: as each was read, else as `messages_to_dict`. What the format cannot hold is added to
    `losses`."""
    losses = [] if losses is None else losses
    out: list[dict[str, Any]] = []
    for position, message in enumerate(messages):
        lost: list[Loss] = []
        out += dump_message(message, lost, version)
        losses += [msgspec.structs.replace(loss, message=position) for loss in lost]
    return out


class _Reader:
    """Reads a list, message by message."""

    def __init__(self, origin: Origin | None) -> None:
        self._origin = origin
        self._out: list[Message] = []
        self._results: list[ToolResultPart] = []
        self._about: Extra | None = None  # of the message of results that is open
        self._names: dict[str, str] = {}  # id of each call so far → its tool
        self._functions: dict[
            str, str
        ] = {}  # name of a call without an id → the id that it was given

    def read(self, entry: Any, where: str) -> None:
        """A message."""
        it = opened(entry, where)
        if base_type(it.type) in ("tool", "function"):
            part, extra = self._result(it, where)
            about = (
                None if extra is None else msgspec.structs.replace(extra, denied=False, native={})
            )
            if about is not None and dump_extra(about):
                self._end_results()
                self._about = about
            self._results.append(part)
            return
        if base_type(it.type) == REMOVE:
            self._remove(it)
            return
        message = _load(it, where, self._origin)
        self._end_results()
        self._out.append(message)
        for piece in message.content:
            if isinstance(piece, ToolCallPart):
                self._names[piece.id] = piece.name
                if OWN.form(piece.native).get("as") == "function_call":
                    self._functions[piece.name] = piece.id

    def end(self) -> list[Message]:
        """All messages."""
        self._end_results()
        return self._out

    def _remove(self, it: Opened) -> None:
        """A message that says which one to remove: a mark behind the message before it."""
        self._end_results()
        form, own = _own(it)
        fields = {**own, "content": it.data.get("content", "")}
        if self._out:
            mark = MarkPart(REMOVE, OWN.note(fields, form))
            self._out[-1] = self._out[-1].replace(content=(*self._out[-1].content, mark))
        else:
            mark = MarkPart(REMOVE, OWN.note(fields, {**form, "alone": True}))
            self._out.append(Message(Role.USER, (mark,)))

    def _result(self, it: Opened, where: str) -> tuple[ToolResultPart, Extra | None]:
        form, own = _own(it)
        name = own.pop("name", None)
        if base_type(it.type) == "function":
            id_ = self._functions.get(if_text(name), "")
        else:
            id_ = own.pop("tool_call_id", None)
        if not isinstance(id_, str):
            raise _NoCall(
                f"{where}.tool_call_id must be a string, the id of the call that was answered"
            )
        if not isinstance(name, str) or not name:
            if name is not None:
                own["name"] = name
            name, form["name"] = self._names.get(id_, ""), "absent"
        if is_error := own.get("status") == "error":
            del own["status"]
        extra = _pop_extra(own)
        content = it.data.get("content", "")
        result: Any = content
        if isinstance(content, list):
            parts = load_content(cast("Any", content), Role.USER, None, form, where)
            result = (
                parts if parts and all(_is_result(part) for part in parts) else cast("Any", content)
            )
            form.pop("content", None)
        elif not isinstance(content, str):
            raise HistoryError(
                f"{where}.content must be a string or a list of strings and content blocks"
            )
        if isinstance(result, list):
            form["content"] = "raw"
        native = OWN.note(own, form)
        native = {**({} if extra is None else extra.native), **(native or {})} or None
        part = ToolResultPart(
            id_, name, result, is_error, native=native, denied=extra is not None and extra.denied
        )
        if is_usual_result(it):
            return part, extra
        again = dump_result(part, extra or Extra(), [], None)
        entry = _entry(it, form)
        if again != entry:
            part = msgspec.structs.replace(part, native=exactly(part, native, again, it.data))
        return part, extra

    def _end_results(self) -> None:
        if self._results:
            about = {} if self._about is None else msgspec.structs.asdict(self._about)
            about = {key: about[key] for key in about if key not in ("denied", "native")}
            self._out.append(Message(Role.USER, tuple(self._results), **about))
        self._results, self._about = [], None


class _NoCall(HistoryError):
    """A result that does not say which call it answers."""


def _fault(error: HistoryError) -> str | None:
    """The field for which a message cannot be read, where it is one."""
    _, dot, field = error.message.partition(" ")[0].partition(".")
    return field.partition("[")[0] if dot else None


def _own(it: Opened) -> tuple[dict[str, Any], dict[str, Any]]:
    """The form of a message, and its fields that say something, without its content."""
    form, usual = dict(it.form), defaults(it.type, it.form.get("wrap", "dict"))
    if it.type not in ROLES and it.type != "tool":
        form["type"] = it.type
    if absent := [key for key in usual if key not in it.data]:
        form["absent"] = absent
    own = {
        key: value
        for key, value in it.data.items()
        if usual.get(key, _MISSING) != value and key != "content"
    }
    return form, own


def _entry(it: Opened, form: Mapping[str, Any]) -> dict[str, Any]:
    """The message as it came."""
    fields = closed(
        it.type, {}, {**form, "absent": list(defaults(it.type, form.get("wrap", "dict")))}, None
    )
    if form.get("wrap") == "plain":
        return {**fields, **it.data}
    return {**fields, "kwargs" if form.get("wrap") == "constructor" else "data": it.data}


def _load(it: Opened, where: str, origin: Origin | None) -> Message:
    """A message that is no result."""
    type_ = base_type(it.type)
    form, own = _own(it)
    id_ = own.pop("id") if if_text(own.get("id")) else None
    role = ROLES.get(type_) or _CHAT_ROLES.get(if_text(own.get("role")).lower(), Role.USER)
    extra = _pop_extra(own)
    about: dict[str, Any] = {} if extra is None else msgspec.structs.asdict(extra)
    held = about.pop("native", {})
    about = rest(about, "id", "denied")
    usual = is_usual(it, role)
    signer = provider(it.data) if role is Role.MODEL else None
    content = load_content(it.data.get("content", ""), role, signer, form, where)
    if role is Role.MODEL:
        content = _load_kwargs(own, load_calls(it.data, content, where), where)
        own = rest(own, "tool_calls", "invalid_tool_calls")
        found, reason = load_response(it.data, origin, signer)
        about |= {"origin": found, "finish_reason": reason}
        usage, more = load_usage(own.get("usage_metadata"))
        if usage is not None:
            about["usage"] = usage
            own = rest(own, "usage_metadata")
            if more:
                form["usage"] = more
        response = dump_response(found, reason)
        if response == own.get("response_metadata", {}):
            own.pop("response_metadata", None)
        elif "response_metadata" not in own:
            usual = False
    native = {**held, **(OWN.note(own, form) or {})} or None
    message = Message(role, _named(content), id_, native=native, **about)
    if usual:
        return message
    again, entry = dump_message(message, [], None), _entry(it, form)
    if again == [entry]:
        return message
    return message.replace(native=exactly(message, native, again[0] if again else {}, it.data))


def _named(content: Sequence[Content]) -> tuple[Content, ...]:
    """The content, in which results of tools that the provider ran have the names of their calls; their blocks have none."""
    names = {piece.id: piece.name for piece in content if isinstance(piece, ToolCallPart)}
    return tuple(
        [
            msgspec.structs.replace(piece, name=names[piece.id])
            if isinstance(piece, ToolResultPart) and not piece.name and piece.id in names
            else piece
            for piece in content
        ]
    )


def _load_kwargs(own: dict[str, Any], content: list[Content], where: str) -> list[Content]:
    """The content with what `additional_kwargs` has of it, which is taken out of `own`."""
    extra = if_object(own.get("additional_kwargs"))
    thinking = extra.get(THINKING)
    if (
        isinstance(thinking, str)
        and thinking
        and not any(isinstance(piece, ThinkingPart) for piece in content)
    ):
        content = [ThinkingPart(thinking, OWN.note(form={"as": THINKING})), *content]
        extra = rest(extra, THINKING)
    if (call := load_function_call(extra.get("function_call"), where)) is not None:
        content = [*content, call]
        extra = rest(extra, "function_call")
    _set_kwargs(own, extra)
    return content


def _pop_extra(own: dict[str, Any]) -> Extra | None:
    extra = if_object(own.get("additional_kwargs"))
    found = load_extra(extra.get(OURS)) if OURS in extra else None
    if found is not None:
        _set_kwargs(own, rest(extra, OURS))
    return found


def _set_kwargs(own: dict[str, Any], extra: dict[str, Any]) -> None:
    if extra:
        own["additional_kwargs"] = extra
    elif isinstance(own.get("additional_kwargs"), dict):
        del own["additional_kwargs"]


def _is_result(part: Content) -> bool:
    return isinstance(part, (TextPart, DataPart, LinkPart, FilePart))
