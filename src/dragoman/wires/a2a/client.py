"""An agent of A2A, asked like a model. It keeps the conversation: each request has what is new to
it, in the task that waits for it.

What was said before the agent was first asked, or since by others, goes before that as one text
(`_describe_unsent`): the protocol takes one message of the user's, and no history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any

from dragoman.codec.agent_answer import AgentAnswer, AnswerDecoder
from dragoman.codec.agent_conversation import AgentTurns, agent_turns
from dragoman.codec.json_values import if_list, if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.media import media_label
from dragoman.fold import arguments_text
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import HttpRequest, ModelRequest, RunRequest, Settings, ToolSpec
from dragoman.wires.a2a import decode
from dragoman.wires.a2a.errors import load_error
from dragoman.wires.a2a.quirks import EXTENSION, NAME, OWN, Quirks
from dragoman.wires.a2a.runs import OLD_NAMES, dump_run, last_index, rpc_request
from dragoman.wires.a2a.tools import RESULT, TOOL_RESULTS_KEY, result_text
from dragoman.wires.a2a.version03 import OLD_RPC

__all__ = ["decoder", "dump_cancel", "dump_http", "dump_request", "load_error", "name"]

name = NAME
_OUTPUT = ("text/plain", "application/json", "image/*", "audio/*", "application/pdf")
"""Media types that the client reads in an answer."""
_SPEAKERS: Mapping[Role, str] = {
    Role.SYSTEM: "Instructions",
    Role.USER: "User",
    Role.MODEL: "Assistant",
}
_FILES = (DataPart, FilePart, LinkPart)
_LOST: Mapping[type, Lost] = {
    DataPart: Lost.data,
    LinkPart: Lost.link,
    FilePart: Lost.file,
    ToolCallPart: Lost.tool_call,
    ToolResultPart: Lost.tool_result,
    ThinkingPart: Lost.thinking,
    ProviderPart: Lost.provider,
}
"""Type of a piece → the loss, if it is only described in words or left out."""


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> Json:
    """Returns the parameters of `SendMessage` for an A2A request. Its options become further fields
    of them."""
    peer = _quirks_of(quirks)
    if losses is None:
        losses = []
    turns = agent_turns(request.messages, OWN, target)
    run_request = RunRequest(
        tuple(_unheard_messages(turns, losses)),
        thread_id=turns.thread_id,
        run_id=None if request.run is None else request.run.run_id,
        resume=turns.resume,
        native=OWN.note({"taskId": turns.waits} if turns.waits else None),
    )
    if peer.extras:
        run_request = _add_carried(run_request, request)
    losses += _find_losses(request, run_request.tools)
    params = dump_run(run_request)
    message = if_object(params["message"])
    message["messageId"] = f"{run_request.run_id or 'message'}-{len(request.messages)}"
    # Without the extension an agent takes plain parts alone.
    if not peer.extras:
        message["parts"] = _plain_parts(run_request, if_list(message["parts"]))
        params["message"] = read_extra_fields(message, "metadata", "extensions")
    params["configuration"] = {"acceptedOutputModes": list(_OUTPUT)}
    return merge_wire_fields(params, request.options)


def _quirks_of(quirks: Any) -> Quirks:
    """Returns the quirks of the A2A peer, or the defaults if the caller passed none."""
    if isinstance(quirks, Quirks):
        return quirks
    return Quirks()


def _add_carried(run_request: RunRequest, request: ModelRequest) -> RunRequest:
    """Returns the run request with the tools, context, state and settings that the A2A extension
    carries."""
    tools = tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)])
    run_request = run_request.replace(tools=tools)
    if request.run is not None:
        run_request = run_request.replace(context=request.run.context, state=request.run.state)
    if request.settings != Settings():
        run_request = run_request.replace(settings=request.settings)
    return run_request


def _find_losses(request: ModelRequest, sent_tools: Sequence[ToolSpec]) -> list[Loss]:
    """Returns a loss for each tool that is not sent, and for an output schema."""
    losses = [
        Loss(None, None, Lost.tool, "the agent takes no tools of its clients", tool.name)
        for tool in request.tools
        if tool not in sent_tools
    ]
    if request.output_schema is not None:
        losses.append(Loss(None, None, Lost.output_schema, "A2A has no field for it"))
    return losses


def _unheard_messages(turns: AgentTurns, losses: list[Loss]) -> list[Message]:
    """Returns the A2A messages that the agent does not know yet, as the user's.

    What the user says now is sent as it is. Messages from elsewhere since the agent's last answer
    are joined to one text that goes before it.
    """
    messages = turns.messages[turns.known_messages :]
    start = last_index(messages, lambda message: message.role is not Role.USER) + 1
    calls = {
        call.id for message in turns.messages[: turns.known_messages] for call in message.tool_calls
    }
    texts: list[str] = []
    new_messages: list[Message] = []
    for index, message in enumerate(messages):
        # What its user says now is sent as it is, but for results of calls that others made.
        as_is = [
            index >= start and not (isinstance(piece, ToolResultPart) and piece.id not in calls)
            for piece in message.content
        ]
        if text := _describe_unsent(message, as_is, turns.known_messages + index, losses):
            texts.append(f"{_SPEAKERS[message.role]}: {text}")
        # A message of which nothing is left was told in words as a whole.
        pieces = tuple(compress(message.content, as_is))
        if pieces or not message.content:
            new_messages.append(message.replace(content=pieces))
    if texts:
        new_messages = [
            Message.user("What was said before:\n\n" + "\n\n".join(texts)),
            *new_messages,
        ]
    return new_messages


def _describe_unsent(
    message: Message,
    as_is: Sequence[bool],
    number: int,
    losses: list[Loss],
) -> str:
    """Returns the text that stands for the pieces of a message that are not sent as they are.

    Args:
        message: the message.
        as_is: for each piece, True if it is sent unchanged.
        number: index of the message in the conversation, for losses.
        losses: grows with each piece that becomes words.
    """
    why = "an A2A agent gets what was said to others as words"
    texts: list[str] = []
    for index, (piece, is_sent) in enumerate(zip(message.content, as_is, strict=True)):
        if is_sent:
            continue
        texts.append(_describe_piece(piece))
        if (lost := _LOST.get(type(piece))) is not None:
            losses.append(Loss(number, index, lost, why))
    if message.role is Role.SYSTEM:
        losses.append(Loss(number, None, Lost.system_message, "A2A has none; its text is sent"))
    return "\n".join(filter(None, texts))


def _describe_piece(piece: Content) -> str:
    """Returns for an A2A client a piece of content in words, or an empty text if words cannot hold
    it."""
    if isinstance(piece, TextPart):
        return piece.text
    if isinstance(piece, ToolCallPart):
        if piece.state == "complete":
            arguments = arguments_text(piece)
        else:
            arguments = piece.raw
        return f"[calls {piece.name} with {arguments}]"
    if isinstance(piece, ToolResultPart):
        return f"[{piece.name or piece.id} gave {result_text(piece)}]"
    if isinstance(piece, _FILES):
        return f"[{media_label(piece)}]"
    return ""


def _plain_parts(run_request: RunRequest, parts: list[Any]) -> list[Any]:
    """Returns the parts for an agent that does not know the A2A extension.

    Answers to questions become words, and tool results the `tool_results` list of older agents.
    """
    answers: list[Any] = [_plain_answer(resume) for resume in run_request.resume]
    results = [
        {"call_id": result.id, "name": result.name, "output": result_text(result)}
        for message in run_request.messages
        for result in message.tool_results
    ]
    if results:
        answers.append({"data": {TOOL_RESULTS_KEY: results}})
    other_parts = [part for part in parts[len(run_request.resume) :] if not _is_result(part)]
    return [*answers, *other_parts] or [{"text": ""}]


def _plain_answer(resume: Resume) -> Json:
    """Returns the A2A part that answers a question in words: "yes", "no", "cancelled", or the value
    itself."""
    payload = if_object(resume.payload)
    if resume.status == "cancelled":
        return {"text": "cancelled"}
    if "approved" not in payload:
        value = payload.get("value")
        if isinstance(value, str):
            return {"text": value}
        return {"data": value}
    if payload["approved"] is True:
        return {"text": "yes"}
    reason = payload.get("reason")
    return {"text": f"no: {reason}" if reason else "no"}


def _is_result(part: Any) -> bool:
    """True if a part is a data part with a tool result."""
    return if_object(if_object(part).get("data")).get("type") == RESULT


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """Returns the HTTP request that asks the agent, by the A2A binding and version that it
    speaks."""
    peer = _quirks_of(quirks)
    params = dump_request(request, target=target, quirks=peer, losses=losses)
    method = "SendMessage"
    if peer.streams:
        method = "SendStreamingMessage"
    path = f"/message:{'stream' if peer.streams else 'send'}"
    http = _http_request(method, path, params, peer)
    return HttpRequest(http.path, http.headers, http.body, retries=request.retries)


def dump_cancel(task_id: str, quirks: Any = None) -> HttpRequest:
    """Returns the HTTP request that cancels a task."""
    peer = _quirks_of(quirks)
    return _http_request("CancelTask", f"/tasks/{task_id}:cancel", {"id": task_id}, peer)


def _http_request(
    method: str,
    path: str,
    params: Json,
    peer: Quirks,
) -> HttpRequest:
    """Returns the HTTP request for a method, with the protocol's version and extension in its
    headers."""
    headers = {"accept": "application/json"}
    if method == "SendStreamingMessage":
        headers["accept"] = "text/event-stream"
    # 0.3 has no header for the version, and the older name of the one for extensions.
    is_old = peer.version == "0.3"
    if not is_old:
        headers["a2a-version"] = peer.version
    if peer.extras:
        headers["x-a2a-extensions" if is_old else "a2a-extensions"] = EXTENSION
    if peer.binding == "rest":
        return HttpRequest(path, headers, params)
    if is_old:
        return HttpRequest("", headers, rpc_request(OLD_NAMES[method], OLD_RPC.dump_params(params)))
    return HttpRequest("", headers, rpc_request(method, params))


def decoder(
    *,
    origin: Origin | None = None,
    new_id: Callable[[], str] | None = None,
    tools: Sequence[str] = (),
) -> AnswerDecoder:
    """Implements `AgentClient.decoder` for A2A."""
    run = decode.decoder(origin=origin)
    answer = AgentAnswer(
        OWN,
        origin=origin,
        new_id=new_id,
        tools=tools,
        task=lambda: run.task_id,
    )
    return AnswerDecoder(run, answer)
