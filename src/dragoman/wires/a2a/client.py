"""An agent of A2A, asked like a model. It keeps the conversation: each request has what is new to
it, in the task that waits for it.

What was said before the agent was first asked, or since by others, goes before that as one text
(`_retell`): the protocol takes one message of the user's, and no history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any

from dragoman.codec.agent_answer import AgentAnswer, AnswerDecoder
from dragoman.codec.agent_turns import AgentTurns, agent_turns
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
from dragoman.wires.a2a.old import OLD_RPC
from dragoman.wires.a2a.quirks import EXTENSION, NAME, OWN, Quirks
from dragoman.wires.a2a.runs import OLD_NAMES, dump_run, last_index, rpc_request
from dragoman.wires.a2a.tools import RESULT, TOOL_RESULTS_KEY, result_text

__all__ = ["decoder", "dump_cancel", "dump_http", "dump_request", "load_error", "name"]

name = NAME
_OUTPUT = ("text/plain", "application/json", "image/*", "audio/*", "application/pdf")
"""What is read of an answer."""
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
"""What is not told, or in words alone, of what others said."""


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> Json:
    """A request → the parameters of `SendMessage`. Options are further fields of them."""
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
        run_request = _with_carried(run_request, request)
    losses += _unsent(request, run_request.tools)
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
    return quirks if isinstance(quirks, Quirks) else Quirks()


def _with_carried(run_request: RunRequest, request: ModelRequest) -> RunRequest:
    """Returns the request with what our extension carries to agents that know it."""
    tools = tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)])
    run_request = run_request.replace(tools=tools)
    if request.run is not None:
        run_request = run_request.replace(context=request.run.context, state=request.run.state)
    if request.settings != Settings():
        run_request = run_request.replace(settings=request.settings)
    return run_request


def _unsent(request: ModelRequest, sent: Sequence[ToolSpec]) -> list[Loss]:
    """Returns what the protocol, or the agent, has no field for."""
    losses = [
        Loss(None, None, Lost.tool, "the agent takes no tools of its clients", tool.name)
        for tool in request.tools
        if tool not in sent
    ]
    if request.output_schema is not None:
        losses.append(Loss(None, None, Lost.output_schema, "A2A has no field for it"))
    return losses


def _unheard_messages(turns: AgentTurns, losses: list[Loss]) -> list[Message]:
    """Returns what the agent has not heard: what its user says now, and before it, in words, what
    was said by others and to them."""
    messages = turns.messages[turns.known :]
    start = last_index(messages, lambda message: message.role is not Role.USER) + 1
    calls = {call.id for message in turns.messages[: turns.known] for call in message.tool_calls}
    texts: list[str] = []
    sent: list[Message] = []
    for index, message in enumerate(messages):
        # What its user says now is sent as it is, but for results of calls that others made.
        as_is = [
            index >= start and not (isinstance(piece, ToolResultPart) and piece.id not in calls)
            for piece in message.content
        ]
        if text := _retell(message, as_is, turns.known + index, losses):
            texts.append(f"{_SPEAKERS[message.role]}: {text}")
        # A message of which nothing is left was told in words as a whole.
        pieces = tuple(compress(message.content, as_is))
        if pieces or not message.content:
            sent.append(message.replace(content=pieces))
    if texts:
        sent = [Message.user("What was said before:\n\n" + "\n\n".join(texts)), *sent]
    return sent


def _retell(message: Message, as_is: Sequence[bool], number: int, losses: list[Loss]) -> str:
    """Returns in words what is not sent `as_is` of a message. `number`: its index in the
    conversation."""
    why = "what was said to others is told an agent of A2A in words"
    texts: list[str] = []
    for index, (piece, is_sent) in enumerate(zip(message.content, as_is, strict=True)):
        if is_sent:
            continue
        texts.append(_words_of(piece))
        if (lost := _LOST.get(type(piece))) is not None:
            losses.append(Loss(number, index, lost, why))
    if message.role is Role.SYSTEM:
        losses.append(Loss(number, None, Lost.system_message, "A2A has none; its text is sent"))
    return "\n".join(filter(None, texts))


def _words_of(piece: Content) -> str:
    if isinstance(piece, TextPart):
        return piece.text
    if isinstance(piece, ToolCallPart):
        arguments = arguments_text(piece) if piece.state == "complete" else piece.raw
        return f"[calls {piece.name} with {arguments}]"
    if isinstance(piece, ToolResultPart):
        return f"[{piece.name or piece.id} gave {result_text(piece)}]"
    return f"[{media_label(piece)}]" if isinstance(piece, _FILES) else ""


def _plain_parts(run_request: RunRequest, parts: list[Any]) -> list[Any]:
    """Returns the parts for an agent that does not know our extension. It is answered in words;
    results are told as older agents have them."""
    answers: list[Any] = [_plain_answer(resume) for resume in run_request.resume]
    results = [
        {"call_id": result.id, "name": result.name, "output": result_text(result)}
        for message in run_request.messages
        for result in message.tool_results
    ]
    if results:
        answers.append({"data": {TOOL_RESULTS_KEY: results}})
    others = [part for part in parts[len(run_request.resume) :] if not _is_result(part)]
    return [*answers, *others] or [{"text": ""}]


def _plain_answer(resume: Resume) -> Json:
    payload = if_object(resume.payload)
    if resume.status == "cancelled":
        return {"text": "cancelled"}
    if "approved" not in payload:
        value = payload.get("value")
        return {"text": value} if isinstance(value, str) else {"data": value}
    if payload["approved"] is True:
        return {"text": "yes"}
    reason = payload.get("reason")
    return {"text": f"no: {reason}" if reason else "no"}


def _is_result(part: Any) -> bool:
    return if_object(if_object(part).get("data")).get("type") == RESULT


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """A request as it is sent to the agent's URL."""
    peer = _quirks_of(quirks)
    params = dump_request(request, target=target, quirks=peer, losses=losses)
    method = "SendStreamingMessage" if peer.streams else "SendMessage"
    path = f"/message:{'stream' if peer.streams else 'send'}"
    http = _request(method, path, params, peer)
    return HttpRequest(http.path, http.headers, http.body, retries=request.retries)


def dump_cancel(task_id: str, quirks: Any = None) -> HttpRequest:
    """The request that ends a task."""
    peer = _quirks_of(quirks)
    return _request("CancelTask", f"/tasks/{task_id}:cancel", {"id": task_id}, peer)


def _request(method: str, path: str, params: Json, peer: Quirks) -> HttpRequest:
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
    """See `AgentClient.decoder`."""
    run = decode.decoder(origin=origin)
    answer = AgentAnswer(OWN, origin=origin, new_id=new_id, tools=tools, task=lambda: run.task_id)
    return AnswerDecoder(run, answer)
