"""What stands around a message's fields: `{"type", "data"}` of `messages_to_dict`, `{"lc", "type",
"id", "kwargs"}` of `dumpd`, or nothing, as `model_dump` writes them. Which fields are there without
anything to say differs by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, cast

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Role

__all__ = [
    "CLASSES",
    "NAME",
    "OWN",
    "REMOVE",
    "ROLES",
    "THINKING",
    "TYPES",
    "OpenedMessage",
    "base_type",
    "close_message",
    "defaults",
    "open_message",
    "votes",
]

NAME = "langchain"
OWN = WireNative(NAME)
"""Its part of `native`."""
ROLES = {"human": Role.USER, "ai": Role.MODEL, "system": Role.SYSTEM}
"""Type of a message → whose it is."""
TYPES = {role: type_ for type_, role in ROLES.items()}
"""The inverse."""
REMOVE = "remove"
"""Type of a message that says which one to remove, and kind of its mark."""
THINKING = "reasoning_content"
"""Field of `additional_kwargs` that has the thinking of models that speak OpenAI's Chat
Completions."""
_TYPES = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
    "function": "FunctionMessage",
    "chat": "ChatMessage",
    "remove": "RemoveMessage",
}
CLASSES: Mapping[str, str] = {
    **_TYPES,
    **{f"{of}Chunk": f"{of}Chunk" for name, of in _TYPES.items() if name != "remove"},
}
"""Type of a message → its class."""
_OF_CLASS = {of: type_ for type_, of in CLASSES.items()}
_BASE = {f"{of}Chunk": type_ for type_, of in _TYPES.items()}
_SPACE = ("langchain", "schema", "messages")
_ALL: Json = {
    "content": "",
    "additional_kwargs": {},
    "response_metadata": {},
    "type": "",
    "name": None,
    "id": None,
}
_OF_TYPE: Mapping[str, Json] = {
    "ai": {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None},
    "tool": {"artifact": None, "status": "success"},
}
_OF_CHUNK: Json = {"tool_call_chunks": [], "chunk_position": None}
_CONTAINERS = frozenset(
    (
        "additional_kwargs",
        "response_metadata",
        "tool_calls",
        "invalid_tool_calls",
        "tool_call_chunks",
    )
)
"""Fields whose default is a container, of which each message has its own."""
_KEPT = ("content", "type", "tool_calls", "invalid_tool_calls", "status")
"""Fields that `dumpd` writes also where they say nothing."""


class OpenedMessage(NamedTuple):
    """A message of the format."""

    type: str
    """Such as `human` or `AIMessageChunk`."""
    data: Json
    """Its fields."""
    form: Json
    """What stood around them, where that is not the usual."""


def base_type(type_: str) -> str:
    """Returns the type of the whole message that a chunk is of; that of any other is its own."""
    return _BASE.get(type_, type_)


def open_message(entry: object, where: str) -> OpenedMessage:
    """Returns the type and the fields of a LangChain message, without what stands around them.

    Raises:
        HistoryError: it is no message of the format.
    """
    if not isinstance(entry, dict):
        raise HistoryError(f"{where} must be an object, as messages_to_dict or dumpd write it")
    fields = cast("Json", entry)
    form: Json = {}
    envelope: Json = {}
    if _is_constructor(fields):
        type_ = _OF_CLASS.get(_class_name(fields), "")
        data, form = fields.get("kwargs"), {"wrap": "constructor"}
        envelope = {
            key: value
            for key, value in read_extra_fields(fields, "kwargs").items()
            if _constructor(type_).get(key) != value
        }
    elif "data" in fields and "content" not in fields:
        type_, data = if_text(fields.get("type")), fields["data"]
        if len(fields) > 2:
            envelope = read_extra_fields(fields, "type", "data")
    else:
        type_, data, form = if_text(fields.get("type")), fields, {"wrap": "plain"}
    if type_ not in CLASSES:
        raise HistoryError(
            f"{where}.type must be that of a message of LangChain's: {', '.join(CLASSES)}"
        )
    if not isinstance(data, dict):
        raise HistoryError(
            f"{where} must have its fields in an object, as messages_to_dict or dumpd write them"
        )
    if envelope:
        form["envelope"] = envelope
    return OpenedMessage(type_, cast("Json", data), form)


def _is_constructor(fields: JsonMap) -> bool:
    """True if `dumpd` wrote an object: its class and the arguments that it is made with."""
    return isinstance(fields.get("lc"), int) and fields.get("type") == "constructor"


def _class_name(fields: JsonMap) -> str:
    """Returns the name of the class in the envelope that LangChain's `dumpd` wrote, which ends its
    path; empty if it has none."""
    path = if_list(fields.get("id"))
    if path:
        return if_text(path[-1])
    return ""


def _has_type(fields: JsonMap) -> bool:
    """True if a message has a type of LangChain's. One with a role, too, is of another format
    unless it is a chat message."""
    type_ = if_text(fields.get("type"))
    if "role" in fields:
        return type_ in ("chat", "ChatMessageChunk")
    return type_ in CLASSES


def close_message(type_: str, fields: JsonMap, form: JsonMap, version: str | None) -> Json:
    """Returns a LangChain message of a type with these fields. `version`: the form around them;
    `None`: the form that the message had."""
    wrap = version or form.get("wrap", "dict")
    if wrap == form.get("wrap", "dict"):
        absent = if_list(form.get("absent"))
    else:
        absent = ()
    usual = defaults(type_, wrap)
    data = {**usual, **fields}
    for name in _CONTAINERS & usual.keys() - fields.keys():
        data[name] = usual[name].copy()
    if absent:
        data = read_extra_fields(data, *absent)
    if version is None:
        envelope = if_object(form.get("envelope"))
    else:
        envelope = {}
    if wrap == "plain":
        return data
    if wrap == "constructor":
        return {**_constructor(type_), **envelope, "kwargs": data}
    return {**envelope, "type": type_, "data": data}


@cache
def defaults(type_: str, wrap: str) -> JsonMap:
    """Returns the fields of a LangChain message that are written also where they say nothing; not
    to be changed."""
    chunk = _OF_CHUNK if type_ == "AIMessageChunk" else {}
    fields = {**_ALL, **_OF_TYPE.get(base_type(type_), {}), **chunk, "type": type_}
    return {key: value for key, value in fields.items() if wrap != "constructor" or key in _KEPT}


def _constructor(type_: str) -> Json:
    return {"lc": 1, "type": "constructor", "id": [*_SPACE, CLASSES.get(type_, "")]}


def votes(message: object) -> int:
    """Returns how surely a message is of the LangChain format: 0 = cannot be, 1 = could be, 2 =
    likely, 3 = hardly anything else."""
    fields = if_object(message)
    if _is_constructor(fields):
        if _class_name(fields) in _OF_CLASS and isinstance(fields.get("kwargs"), dict):
            return 3
        return 0
    if not _has_type(fields):
        return 0
    if isinstance(fields.get("data"), dict) and "content" not in fields:
        if "content" in fields["data"]:
            return 3
        return 2
    if not isinstance(fields.get("content"), (str, list)):
        return 0
    if {"additional_kwargs", "response_metadata", "tool_calls", "tool_call_id"} & fields.keys():
        return 3
    return 2
