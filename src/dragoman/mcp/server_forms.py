"""Questions to a client's user (elicitation): interrupts → forms or pages, and the user's answers →
`Resume`.

A form of MCP is a flat object of texts, numbers, choices and booleans. An interrupt whose schema
fits becomes such a form. Any other answer is one field, `answer`, as text or as JSON in a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec
from mcp_types import (
    ClientCapabilities,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
)

from dragoman.errors import ResumeError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.json_bytes import Json, JsonMap

__all__ = ["read_answer", "make_question", "summarize"]

_ANSWER = "answer"
"""Name of the only field of a form for an answer that is not a flat object."""
_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "string": (
            "title",
            "description",
            "default",
            "minLength",
            "maxLength",
            "enum",
            "enumNames",
        ),
        "number": ("title", "description", "default", "minimum", "maximum"),
        "integer": ("title", "description", "default", "minimum", "maximum"),
        "boolean": ("title", "description", "default"),
    }
)
"""Type of a form field → keywords that its schema may have."""
_FORMATS = ("date", "date-time", "email", "uri")
_VERDICTS = ("approval", "doubt")
"""What a yes or a no answers."""
_WAITS: Mapping[Reason, str] = MappingProxyType(
    {
        "approval": "approval of",
        "input": "an answer for",
        "auth": "a sign-in for",
        "tool": "the result of",
        "doubt": "a decision about",
    }
)


def summarize(interrupt: Interrupt) -> str:
    """Returns the line of a form that says what an interrupt waits for."""
    url = interrupt.metadata.get("url")
    pieces = (
        f"{_WAITS[interrupt.reason]} {_describe_call(interrupt)}",
        interrupt.message or "",
        url or "",
    )
    return ": ".join(piece for piece in pieces if piece)


def make_question(
    interrupt: Interrupt, capabilities: ClientCapabilities | None, problem: str | None = None
) -> ElicitRequestFormParams | ElicitRequestURLParams | None:
    """Returns the question (a form) for the MCP client's user, or None if the client cannot ask it.
    `problem`: what was wrong with the last answer."""
    # Before version 2025-11-25 there were only forms, and clients declare neither kind.
    can = capabilities.elicitation if capabilities is not None else None
    if can is None:
        return None
    message = "\n".join(piece for piece in (problem, _make_message(interrupt)) if piece)
    if interrupt.reason == "auth":
        url = interrupt.metadata.get("url")
        if can.url is None or not isinstance(url, str):
            return None
        return ElicitRequestURLParams(message=message, url=url, elicitation_id=interrupt.id)
    if can.form is None and can.url is not None:
        return None
    return ElicitRequestFormParams(message=message, requested_schema=_make_form(interrupt))


def read_answer(interrupt: Interrupt, result: ElicitResult) -> Resume:
    """Returns the user's answer in a form of MCP. Declining denies an approval and cancels
    everything else.

    Raises:
        ResumeError: the answer cannot be read.
    """
    if result.action == "decline" and interrupt.reason in _VERDICTS:
        return interrupt.deny()
    if result.action != "accept":
        return interrupt.cancel()
    content: JsonMap = result.content or {}
    if interrupt.reason in _VERDICTS:
        return _read_verdict(interrupt, content)
    if interrupt.reason == "auth":
        return interrupt.answer(True)
    if interrupt.schema is not None and _flatten_schema(interrupt.schema) is not None:
        return interrupt.answer(dict(content))
    value = content.get(_ANSWER)
    if isinstance(value, str) and interrupt.reason == "tool":
        return interrupt.answer(_decode_json(value, lenient=True))
    if (
        isinstance(value, str)
        and interrupt.schema is not None
        and _make_field(interrupt.schema) is None
    ):
        return interrupt.answer(_decode_json(value))
    return interrupt.answer(value)


def _read_verdict(interrupt: Interrupt, content: JsonMap) -> Resume:
    """Reads a form's verdict: returns an approval, also with edited arguments, or a denial."""
    if content.get("approved") is not True:
        return interrupt.deny(content.get("reason") or None)
    text = content.get("arguments")
    if not interrupt.editable or not isinstance(text, str) or not text.strip():
        return interrupt.approve()
    arguments = _decode_json(text)
    if not isinstance(arguments, dict):
        raise ResumeError("the arguments are not a JSON object")
    return interrupt.approve(cast("Json", arguments))


def _decode_json(text: str, *, lenient: bool = False) -> Any:
    """Returns the JSON in a text field of a form; with `lenient`, the text itself if it is not
    JSON.

    Raises:
        ResumeError: the text is not JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if lenient:
            return text
        raise ResumeError(f"that is not JSON: {error}") from error


def _make_message(interrupt: Interrupt) -> str:
    """Returns an interrupt as the words of a question to the MCP client's user."""
    if interrupt.reason in _VERDICTS:
        question = f"May this be run? {_describe_call(interrupt)}"
        return f"{question}\n{interrupt.message}" if interrupt.message else question
    if interrupt.reason == "tool":
        return interrupt.message or f"Run this, and give its result: {_describe_call(interrupt)}"
    return interrupt.message or _describe_call(interrupt)


def _describe_call(interrupt: Interrupt) -> str:
    if interrupt.call is None:
        return "the run"
    return f"{interrupt.call.name} {_visible_json(interrupt.call.arguments)}"


def _visible_json(value: Any) -> str:
    """Returns the JSON in an MCP form with every invisible character escaped: what is approved must
    be what is read."""
    text = msgspec.json.encode(value).decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _make_form(interrupt: Interrupt) -> Json:
    """Returns the schema of an MCP form for an interrupt."""
    if interrupt.reason in _VERDICTS:
        fields: Json = {
            "approved": {"type": "boolean", "title": "Run it"},
            "reason": {
                "type": "string",
                "title": "Why not",
                "description": "What the model is told of a refusal",
            },
        }
        if interrupt.editable and interrupt.call is not None:
            text = _visible_json(interrupt.call.arguments)
            fields["arguments"] = {
                "type": "string",
                "title": "Arguments",
                "description": "As JSON",
                "default": text,
            }
        return {"type": "object", "properties": fields, "required": ["approved"]}
    schema = interrupt.schema
    if schema is not None and (flat := _flatten_schema(schema)) is not None:
        return flat
    if schema is None:
        field: JsonMap = {"type": "string"}
    else:
        field = _make_field(schema) or {
            "type": "string",
            "description": f"JSON by this JSON Schema: {_visible_json(schema)}",
        }
    return {"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]}


def _flatten_schema(schema: JsonMap) -> Json | None:
    """Returns a schema as an MCP form's, or None if it is not a flat object."""
    properties: Any = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        return None
    fields: Json = {}
    for name, inner in cast("JsonMap", properties).items():
        field = _make_field(cast("JsonMap", inner)) if isinstance(inner, Mapping) else None
        if field is None:
            return None
        fields[name] = field
    form: Json = {"type": "object", "properties": fields}
    if required := list(schema.get("required", ())):
        form["required"] = required
    return form


def _make_field(schema: JsonMap) -> JsonMap | None:
    """Returns a schema as an MCP form field's, or None if forms have no such field."""
    type_name: Any = schema.get("type")
    if not isinstance(type_name, str) or type_name not in _FIELDS:
        return None
    field = {"type": type_name} | {
        name: schema[name] for name in _FIELDS[type_name] if name in schema
    }
    if "enum" in field and not all(isinstance(choice, str) for choice in field["enum"]):
        return None
    if schema.get("format") in _FORMATS:
        field["format"] = schema["format"]
    return field
