"""What `useChat` sends, both ways.

`load_run` takes apart the body of a POST: the UI messages become the conversation, approvals in
them and the field `resume` become answers to interrupts, and fields that it does not know are
kept in `metadata["body"]`. `dump_run` writes the same body again. `trigger` and `messageId` are
noted in `native`, because only the server knows the stored message that is to be regenerated;
it asks `find_regenerated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_text,
    pick,
    read_extra_fields,
)
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import MarkPart, Message, Origin, Role, ToolResultPart
from dragoman.request import RunRequest, ToolSpec
from dragoman.wires.ai_sdk.messages import load_messages
from dragoman.wires.ai_sdk.quirks import OWN
from dragoman.wires.ai_sdk_messages.approvals import approvals
from dragoman.wires.ai_sdk_messages.conversation import dump_ui

__all__ = ["dump_run", "load_run", "find_regenerated", "routes"]

routes = (
    Route("POST", "/ai-sdk", "run"),
    Route("POST", "/ai-sdk/{model}", "run"),
    Route("POST", "/ai-sdk/{model}/object", "object"),
    Route("GET", "/ai-sdk/{id}/stream", "attach"),
    Route("POST", "/ai-sdk/{id}/cancel", "cancel_run"),
)
"""Paths of a server."""
_OF_TURN = ("trigger", "messageId")
"""Fields that say which answer is requested."""
_READ = ("id", "messages", "message", "system", "tools", "resume", "state", "context")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """Returns the run request in what the AI SDK's `useChat` sends. The chat's `id` is the thread.

    `message`, the last one alone, may replace `messages`. An application may also send:

        tools: those that it runs: a list, or an object by name.
        system: instructions.
        state, context, resume: as in other protocols.

    Anything else in the body becomes `metadata["body"]`.

    Raises:
        HistoryError: the body is not what `useChat` sends.
    """
    listed = _find_messages(body)
    # Messages that cannot be read are noted, so that one that nests too deep is no error of the
    # body.
    check_depth(body if problems is None else read_extra_fields(body, "messages"))
    messages = load_messages(listed, origin=origin, problems=problems)
    # Without the id of a message the last answer is made anew, which the client may have sent
    # along.
    if body.get("trigger") == "regenerate-message" and not if_text(body.get("messageId")):
        messages = _without_answer(messages)
    resumes = (*approvals(messages), *_load_resumes(body.get("resume")))
    unread = read_extra_fields(body, *_READ)
    system = body.get("system")
    if isinstance(system, str):
        if system:
            messages.insert(0, Message.system(system))
    elif "system" in body:
        unread["system"] = system
    return RunRequest(
        tuple(messages),
        thread_id=if_text(body.get("id")) or None,
        tools=_load_tools(body.get("tools")),
        context=_load_context(body.get("context")),
        state=body.get("state"),
        resume=resumes,
        metadata={"body": unread} if unread else {},
        native=OWN.note(pick(body, _OF_TURN)),
    )


def _find_messages(body: Any) -> list[Any]:
    """Returns the UI messages in the body of a run request by `useChat`.

    Raises:
        HistoryError: the body has another shape.
    """
    if not isinstance(body, dict):
        raise HistoryError("what useChat sends is a JSON object")
    fields = if_object(body)
    messages = fields.get("messages")
    if messages is None and isinstance(fields.get("message"), dict):
        messages = [fields["message"]]
    if not isinstance(messages, list):
        raise HistoryError("messages must be a list of UI messages, as useChat sends them")
    if fields.get("id") is not None and not isinstance(fields["id"], str):
        raise HistoryError("id must be a text, the chat's")
    return if_list(messages)


def find_regenerated(request: RunRequest) -> str | None:
    """Returns the id of the message that a `useChat` run is to make anew, or of its question.

    Empty means the last answer, and None that nothing is regenerated.
    """
    fields = OWN.fields(request.native)
    if fields.get("trigger") != "regenerate-message":
        return None
    return if_text(fields.get("messageId"))


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
    """Returns what `useChat` sends for a request. `losses` grows with what it has no field for."""
    if losses is None:
        losses = []
    fields = OWN.fields(request.native)
    body: Json = {
        "id": request.thread_id or request.run_id or "chat",
        "messages": dump_ui(request.messages, losses, None),
        "trigger": "submit-message",
        **if_object(request.metadata.get("body")),
        **pick(fields, _OF_TURN),
    }
    body |= _dump_further_fields(request)
    why = "the AI SDK's chats have no such field"
    if request.settings:
        losses.append(Loss(None, None, Lost.option, why, "settings"))
    if request.options:
        losses.append(Loss(None, None, Lost.option, why, "options"))
    return body


def _dump_further_fields(request: RunRequest) -> Json:
    """Returns the fields beside the messages that an application sends itself with `useChat` to
    start a run (see `load_run`)."""
    fields: Json = {}
    if request.tools:
        fields["tools"] = [_dump_tool(tool) for tool in request.tools]
    if request.resume:
        fields["resume"] = [_dump_resume(resume) for resume in request.resume]
    if request.state is not None:
        fields["state"] = request.state
    if request.context:
        fields["context"] = list(request.context)
    return fields


def _without_answer(messages: list[Message]) -> list[Message]:
    """Returns the AI SDK conversation up to the last question."""
    questions = [
        index
        for index, message in enumerate(messages)
        if message.role is Role.USER and _has_words(message)
    ]
    if not questions:
        return []
    return messages[: questions[-1] + 1]


def _has_words(message: Message) -> bool:
    """True if a message has more than tool results and marks."""
    return any(not isinstance(piece, ToolResultPart | MarkPart) for piece in message.content)


def _load_context(value: Any) -> tuple[Any, ...]:
    """Returns the context in a `useChat` run request: a list, or a single value."""
    if isinstance(value, list):
        return tuple(if_list(value))
    return () if value is None else (value,)


def _dump_tool(tool: ToolSpec) -> Json:
    """Returns a tool as an element of `tools` in the run request that `useChat` sends."""
    schema = dict(tool.input_schema)
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
    }


def _load_tools(value: Any) -> tuple[ToolSpec, ...]:
    """Reads the tools that an application sends with a run request of `useChat`.

    Raises:
        HistoryError: they are neither a list nor an object by name.
    """
    if value is None:
        return ()
    if isinstance(value, dict):
        value = [{**if_object(fields), "name": name} for name, fields in if_object(value).items()]
    if not isinstance(value, list):
        raise HistoryError(
            "tools must be a list of objects with a name and an inputSchema, or an object of them by name"
        )
    return tuple([_load_tool(if_object(entry)) for entry in if_list(value)])


def _load_tool(fields: Json) -> ToolSpec:
    """Reads one tool of a run request that `useChat` sends.

    Raises:
        HistoryError: it has no name, or its schema is no object.
    """
    name, schema = fields.get("name"), fields.get("inputSchema", fields.get("parameters", {}))
    if not isinstance(name, str) or not name or not isinstance(schema, dict):
        raise HistoryError("a tool must have a name, and its inputSchema must be a JSON Schema")
    return ToolSpec(name, if_text(fields.get("description")), if_object(schema))


def _dump_resume(resume: Resume) -> Json:
    """Returns an AI SDK answer to an interrupt as an element of `resume`."""
    fields: Json = {
        "interruptId": resume.interrupt_id,
        "status": resume.status,
        "payload": resume.payload,
    }
    if resume.signature:
        fields["signature"] = resume.signature
    if resume.metadata:
        fields["metadata"] = dict(resume.metadata)
    return fields


def _load_resumes(value: Any) -> list[Resume]:
    """Reads the AI SDK answers to interrupts in `resume`."""
    if value is None:
        return []
    entries = if_list(value) if isinstance(value, list) else [None]
    return [_load_resume(if_object(entry)) for entry in entries]


def _load_resume(fields: Json) -> Resume:
    """Reads one AI SDK answer to an interrupt in `resume`.

    Raises:
        HistoryError: it names no interrupt, or its status is unknown.
    """
    id_, status = fields.get("interruptId"), fields.get("status", "resolved")
    if not isinstance(id_, str) or status not in ("resolved", "cancelled"):
        raise HistoryError(
            "resume must be a list of objects with an interruptId, a status and a payload"
        )
    signature = if_text(fields.get("signature")) or None
    return Resume(id_, status, fields.get("payload"), signature, if_object(fields.get("metadata")))
