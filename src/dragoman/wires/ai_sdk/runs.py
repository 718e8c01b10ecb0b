"""What `useChat` sends, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import check_depth, if_list, if_object, if_text, read_extra_fields
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

__all__ = ["dump_run", "load_run", "regenerated", "routes"]

routes = (
    Route("POST", "/ai-sdk", "run"),
    Route("POST", "/ai-sdk/{model}", "run"),
    Route("GET", "/ai-sdk/{id}/stream", "attach"),
    Route("POST", "/ai-sdk/{id}/cancel", "cancel_run"),
)
"""Where a server has what."""
_OF_TURN = ("trigger", "messageId")
"""Fields that say which answer is asked for."""
_READ = ("id", "messages", "message", "system", "tools", "resume", "state", "context")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """What a client asks. The chat's `id` is the thread. `message` may stand in the place of
    `messages`: the last one alone. An application may send `tools` that it runs, a list or an
    object by name, `system`, `state`, `context` and `resume` beside them, as assistant-ui does with
    the former two; all else of the body is `metadata["body"]`.

    Raises:
        HistoryError: the body is not what `useChat` sends.
    """
    listed = _listed_messages(body)
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
        messages = [*([Message.system(system)] if system else []), *messages]
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
        native=OWN.note({name: body[name] for name in _OF_TURN if name in body}),
    )


def _listed_messages(body: Any) -> list[Any]:
    """Returns the UI messages in a body. A body of another shape is a `HistoryError`."""
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


def regenerated(request: RunRequest) -> str | None:
    """The id of the message that is to be made anew, or of its question; empty: the last answer;
    `None`: none is."""
    fields = OWN.fields(request.native)
    if fields.get("trigger") != "regenerate-message":
        return None
    return if_text(fields.get("messageId"))


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
    """A request → what `useChat` sends. What that has no field for is added to `losses`."""
    if losses is None:
        losses = []
    fields = OWN.fields(request.native)
    body: Json = {
        "id": request.thread_id or request.run_id or "chat",
        "messages": dump_ui(request.messages, losses, None),
        "trigger": "submit-message",
        **if_object(request.metadata.get("body")),
        **{name: fields[name] for name in _OF_TURN if name in fields},
    }
    if request.tools:
        body["tools"] = [_dump_tool(tool) for tool in request.tools]
    if request.resume:
        body["resume"] = [_dump_resume(resume) for resume in request.resume]
    if request.state is not None:
        body["state"] = request.state
    if request.context:
        body["context"] = list(request.context)
    why = "the AI SDK's chats have no such field"
    unsent = [name for name in ("settings", "options") if getattr(request, name)]
    losses += [Loss(None, None, Lost.option, why, name) for name in unsent]
    return body


def _without_answer(messages: list[Message]) -> list[Message]:
    """Returns the conversation up to the last question, whose answer is to be made anew."""
    questions = [
        index
        for index, message in enumerate(messages)
        if message.role is Role.USER and _speaks(message)
    ]
    return messages[: questions[-1] + 1 if questions else 0]


def _speaks(message: Message) -> bool:
    return any(not isinstance(piece, ToolResultPart | MarkPart) for piece in message.content)


def _load_context(value: Any) -> tuple[Any, ...]:
    """Returns the context, which is a list, or one thing alone."""
    if isinstance(value, list):
        return tuple(if_list(value))
    return () if value is None else (value,)


def _dump_tool(tool: ToolSpec) -> Json:
    schema = dict(tool.input_schema)
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


def _load_tools(value: Any) -> tuple[ToolSpec, ...]:
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
    name, schema = fields.get("name"), fields.get("inputSchema", fields.get("parameters", {}))
    if not isinstance(name, str) or not name or not isinstance(schema, dict):
        raise HistoryError("a tool must have a name, and its inputSchema must be a JSON Schema")
    return ToolSpec(name, if_text(fields.get("description")), if_object(schema))


def _dump_resume(resume: Resume) -> Json:
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
    if value is None:
        return []
    entries = if_list(value) if isinstance(value, list) else [None]
    return [_load_resume(if_object(entry)) for entry in entries]


def _load_resume(fields: Json) -> Resume:
    id_, status = fields.get("interruptId"), fields.get("status", "resolved")
    if not isinstance(id_, str) or status not in ("resolved", "cancelled"):
        raise HistoryError(
            "resume must be a list of objects with an interruptId, a status and a payload"
        )
    signature = if_text(fields.get("signature")) or None
    return Resume(id_, status, fields.get("payload"), signature, if_object(fields.get("metadata")))
