"""What `useChat` sends, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import Json, JsonMap, bounded, if_list, if_object, if_text, rest
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.interrupt import Resume
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, Role
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
_READ = ("id", "messages", "message", "system", "tools", "resume", "state", "context")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """What a client asks. The chat's `id` is the thread. `message` may stand in the place of `messages`: the last one alone. An application
    may send `tools` that it runs, a list or an object by name, `system`, `state`, `context` and `resume` beside them, as assistant-ui does with the
    former two; all else of the body is `metadata["body"]`.

    Raises:
        HistoryError: the body is not what `useChat` sends.
    """
    whole: Any = body
    if not isinstance(whole, dict):
        raise HistoryError("what useChat sends is a JSON object")
    bounded(body if problems is None else rest(body, "messages"))
    given: Any = body.get("messages")
    if given is None and isinstance(body.get("message"), dict):
        given = [body["message"]]
    if not isinstance(given, list):
        raise HistoryError("messages must be a list of UI messages, as useChat sends them")
    if body.get("id") is not None and not isinstance(body["id"], str):
        raise HistoryError("id must be a text, the chat's")
    messages = load_messages(given, origin=origin, problems=problems)
    if body.get("trigger") == "regenerate-message" and not if_text(body.get("messageId")):
        messages = _without_answer(messages)
    resumes = (*approvals(messages), *_resumes(body.get("resume")))
    system = body.get("system")
    left = rest(body, *(name for name in _READ if name != "system" or isinstance(system, str)))
    return RunRequest(
        (*([Message.system(system)] if isinstance(system, str) and system else []), *messages),
        thread_id=if_text(body.get("id")) or None,
        tools=_tools(body.get("tools")),
        context=_context(body.get("context")),
        state=body.get("state"),
        resume=resumes,
        metadata={"body": left} if left else {},
        native=OWN.note({name: body[name] for name in ("trigger", "messageId") if name in body}),
    )


def regenerated(request: RunRequest) -> str | None:
    """The id of the message that is to be made anew, or of its question; empty: the last answer; `None`: none is."""
    own = OWN.fields(request.native)
    return if_text(own.get("messageId")) if own.get("trigger") == "regenerate-message" else None


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
    """The inverse."""
    found = [] if losses is None else losses
    metadata = if_object(request.metadata.get("body"))
    body: Json = {
        "id": request.thread_id or request.run_id or "chat",
        "messages": dump_ui(request.messages, found, None),
        "trigger": "submit-message",
        **metadata,
        **{
            name: value
            for name, value in OWN.fields(request.native).items()
            if name in ("trigger", "messageId")
        },
    }
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": dict(tool.input_schema),
            }
            for tool in request.tools
        ]
    if request.resume:
        body["resume"] = [
            {"interruptId": each.interrupt_id, "status": each.status, "payload": each.payload}
            | ({"signature": each.signature} if each.signature else {})
            | ({"metadata": dict(each.metadata)} if each.metadata else {})
            for each in request.resume
        ]
    if request.state is not None:
        body["state"] = request.state
    if request.context:
        body["context"] = list(request.context)
    for name in ("settings", "options"):
        if getattr(request, name):
            found.append(
                Loss(None, None, Lost.option, "the AI SDK's chats have no such field", name)
            )
    return body


def _without_answer(messages: list[Message]) -> list[Message]:
    """The conversation up to the last question, where its answer is to be made anew."""
    end = len(messages)
    while end and (messages[end - 1].role is not Role.USER or not _speaks(messages[end - 1])):
        end -= 1
    return messages[:end]


def _speaks(message: Message) -> bool:
    return any(
        type(piece).__name__ not in ("ToolResultPart", "MarkPart") for piece in message.content
    )


def _context(given: Any) -> tuple[Any, ...]:
    """A list, or one thing alone."""
    return () if given is None else tuple(if_list(given)) if isinstance(given, list) else (given,)


def _tools(given: Any) -> tuple[ToolSpec, ...]:
    if given is None:
        return ()
    if isinstance(given, dict):
        given = [{**if_object(fields), "name": name} for name, fields in if_object(given).items()]
    if not isinstance(given, list):
        raise HistoryError(
            "tools must be a list of objects with a name and an inputSchema, or an object of them by name"
        )
    found: list[ToolSpec] = []
    for each in if_list(given):
        fields = if_object(each)
        name, schema = fields.get("name"), fields.get("inputSchema", fields.get("parameters", {}))
        if not isinstance(name, str) or not name or not isinstance(schema, dict):
            raise HistoryError("a tool must have a name, and its inputSchema must be a JSON Schema")
        found.append(ToolSpec(name, if_text(fields.get("description")), if_object(schema)))
    return tuple(found)


def _resumes(given: Any) -> list[Resume]:
    if given is None:
        return []
    found: list[Resume] = []
    for each in if_list(given) if isinstance(given, list) else [None]:
        fields = if_object(each)
        id_, status = fields.get("interruptId"), fields.get("status", "resolved")
        if not isinstance(id_, str) or status not in ("resolved", "cancelled"):
            raise HistoryError(
                "resume must be a list of objects with an interruptId, a status and a payload"
            )
        signature = if_text(fields.get("signature")) or None
        found.append(
            Resume(id_, status, fields.get("payload"), signature, if_object(fields.get("metadata")))
        )
    return found
