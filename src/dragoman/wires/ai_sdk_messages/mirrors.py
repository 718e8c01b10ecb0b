"""What ai 4's messages and Mastra's rows say twice: the text, calls, thinking and files of the parts again, in fields of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text
from dragoman.message import MarkPart, Native, TextPart, ThinkingPart
from dragoman.wires.ai_sdk_messages.dialect import ATTACHMENT
from dragoman.wires.ai_sdk_messages.file_data import load_attachment
from dragoman.wires.ai_sdk_messages.invocations import INVOCATION, load_inner
from dragoman.wires.ai_sdk_messages.own import OWN
from dragoman.wires.ai_sdk_messages.reading import STEP, Fields, Reading

__all__ = [
    "ALONE",
    "MIRRORS",
    "USUAL",
    "Contents",
    "alone_in",
    "is_usual",
    "load_before",
    "load_behind",
    "mirrored",
    "contents_of",
    "same_as",
]

Parts = Sequence[Mapping[str, Any]]
ALONE = "alone"
"""Stands as the type of a part for what is to stand in a field beside the parts."""
_AS = "as"


class Contents(NamedTuple):
    """What the parts of a message say, by the fields that say it again."""

    texts: list[str]
    """Of its texts."""
    thoughts: list[str]
    """Of its thinking."""
    calls: list[dict[str, Any]]
    """Its invocations."""
    files: list[Mapping[str, Any]]
    """Its files."""


def contents_of(parts: Parts) -> Contents:
    """What parts say."""
    contents = Contents([], [], [], [])
    for part in parts:
        type_ = part["type"]
        if type_ == "text":
            contents.texts.append(if_text(part.get("text")))
        elif type_ == INVOCATION:
            contents.calls.append(if_object(part.get("toolInvocation")))
        elif type_ == "reasoning":
            contents.thoughts.append(if_text(part.get("reasoning")))
        elif type_ == "file":
            contents.files.append(part)
    return contents


def _plain(call: Fields, state: str) -> dict[str, Any]:
    keys = (
        ("args", "result", "toolCallId", "toolName")
        if state == "result"
        else ("args", "toolCallId", "toolName")
    )
    return {**{key: call[key] for key in keys if key in call}, "state": state}


def _usual_calls(contents: Contents) -> list[dict[str, Any]]:
    return [_plain(call, call["state"]) for call in contents.calls if call.get("state") in _KNOWN]


_KNOWN = ("result", "call", "partial-call")
MIRRORS: Mapping[str, Mapping[str, Callable[[Contents], Any]]] = {
    "content": {"joined": lambda contents: "".join(contents.texts), "last": lambda contents: contents.texts[-1] if contents.texts else ""},
    "toolInvocations": {
        "usual": _usual_calls,
        "same": lambda contents: contents.calls,
        "open": lambda contents: [_plain(call, "result" if call.get("state") == "result" else "call") for call in contents.calls],
        "results": lambda contents: [call for call in contents.calls if call.get("state") == "result"],
    },
    "reasoning": {"lines": lambda contents: "\n".join(contents.thoughts), "joined": lambda contents: "".join(contents.thoughts)},
    "experimental_attachments": {
        "files": lambda contents: [{"url": file.get("data"), "contentType": file.get("mimeType")} for file in contents.files]
    },
}  # fmt: skip
"""Field → the ways in which it repeats the parts."""
USUAL: Mapping[str, str] = {"content": "joined", "toolInvocations": "usual", "reasoning": "lines"}
"""Those that are written for what came from elsewhere, where they say something."""


def alone_in(native: Native) -> str | None:
    """The field beside the parts in which a piece stands; `None`: in none."""
    field = OWN.form(native).get(_AS) if native else None
    return (
        "experimental_attachments"
        if field == ATTACHMENT
        else field
        if isinstance(field, str)
        else None
    )


def same_as(key: str, value: Any, contents: Contents) -> str | None:
    """The way in which a field repeats the parts; `None`: it does not."""
    for way, made in MIRRORS[key].items():
        if made(contents) == value:
            return way
    return None


def mirrored(parts: Parts, ways: Any) -> dict[str, Any]:
    """The fields that repeat the parts. `ways`: field → how; `None`: as is usual, where they say something."""
    contents = contents_of(parts)
    if not isinstance(ways, dict):
        return {key: value for key, way in USUAL.items() if (value := MIRRORS[key][way](contents))}
    out: dict[str, Any] = {}
    for key, way in cast("dict[str, Any]", ways).items():
        made = MIRRORS.get(key, {}).get(way) if isinstance(way, str) else None
        if made is not None:
            out[key] = made(contents)
    return out


def is_usual(ways: Mapping[str, str], contents: Contents) -> bool:
    """Whether these are the fields that are usual for parts."""
    says = {
        "content": any(contents.texts),
        "toolInvocations": any(call.get("state") in _KNOWN for call in contents.calls),
        "reasoning": len(contents.thoughts) > 1 or any(contents.thoughts),
    }
    return len(ways) == sum(says.values()) and all(
        ways.get(key) == USUAL[key] for key in says if says[key]
    )


def load_before(fields: Fields, contents: Contents, it: Reading, where: str) -> set[str]:
    """What the fields say and no part repeats, and stands before the parts → the names of the fields that were read."""
    read: set[str] = set()
    reasoning = fields.get("reasoning")
    if reasoning and not contents.thoughts and isinstance(reasoning, str):
        it.add(ThinkingPart(reasoning, OWN.note(None, {_AS: "reasoning"})))
        read.add("reasoning")
    calls = [] if contents.calls else if_objects(fields.get("toolInvocations"))
    if calls and len(calls) == len(if_list(fields["toolInvocations"])):
        for at, call in enumerate(calls):
            load_inner(
                call,
                {"type": INVOCATION},
                it,
                f"{where}.toolInvocations[{at}]",
                {_AS: "toolInvocations"},
            )
        read.add("toolInvocations")
    return read


def load_behind(
    fields: Fields, contents: Contents, parts: Parts, it: Reading, where: str
) -> set[str]:
    """As `load_before`, of what stands behind the parts."""
    read: set[str] = set()
    text = fields.get("content")
    if text and not contents.texts and isinstance(text, str):
        step = bool(it.answers) and not (parts and parts[-1].get("type") == STEP)
        if step:
            it.step(MarkPart(STEP))
        it.add(TextPart(text, OWN.note(None, {_AS: "content", "step": step})))
        read.add("content")
    files = [] if contents.files else if_objects(fields.get("experimental_attachments"))
    listed = len(files) == len(if_list(fields.get("experimental_attachments"))) if files else False
    if listed and all(isinstance(file.get("url"), str) for file in files):
        for at, file in enumerate(files):
            load_attachment(file, it, f"{where}.experimental_attachments[{at}]")
        read.add("experimental_attachments")
    return read
