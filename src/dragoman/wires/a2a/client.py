"""An agent of A2A, asked like a model. It keeps the conversation: each request has what is new to it, in the task that waits for it.

What was said before the agent was first asked, or since by others, is told as a text before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.codec.agent_answer import AgentAnswer, AnswerDecoder
from dragoman.codec.agent_turns import AgentTurns, agent_turns
from dragoman.codec.json_values import if_list, if_object, merged
from dragoman.codec.media import label
from dragoman.fold import arguments_text
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
from dragoman.wires.a2a.runs import OLD_NAMES, dump_run, rpc_request
from dragoman.wires.a2a.tools import TOOL_RESULTS_KEY, result_text

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
) -> dict[str, Any]:
    """A request → the parameters of `SendMessage`. Options are further fields of them."""
    peer = quirks if isinstance(quirks, Quirks) else Quirks()
    lost = [] if losses is None else losses
    turns = agent_turns(request.messages, OWN, target)
    run, specs = request.run, tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)])
    lost += _unsent(request, specs if peer.extras else ())
    run_request = RunRequest(
        tuple(_new(turns, lost)),
        thread_id=turns.thread_id,
        run_id=run.run_id if run is not None else None,
        tools=specs if peer.extras else (),
        context=run.context if run is not None and peer.extras else (),
        state=run.state if run is not None and peer.extras else None,
        resume=turns.resume,
        settings=request.settings if peer.extras and request.settings != Settings() else None,
        native=OWN.note({"taskId": turns.waits} if turns.waits else None),
    )
    params = dump_run(run_request)
    message = if_object(params["message"])
    message["messageId"] = f"{run_request.run_id or 'message'}-{len(request.messages)}"
    if not peer.extras:
        message["parts"] = _plain(run_request, if_list(message["parts"]))
        message = {
            key: value for key, value in message.items() if key not in ("metadata", "extensions")
        }
    params = {**params, "message": message, "configuration": {"acceptedOutputModes": list(_OUTPUT)}}
    return merged(params, request.options)


def _unsent(request: ModelRequest, sent: Sequence[ToolSpec]) -> list[Loss]:
    """What the protocol, or the agent, has no field for."""
    lost = [
        Loss(None, None, Lost.tool, "the agent takes no tools of its clients", tool.name)
        for tool in request.tools
        if tool not in sent
    ]
    if request.output_schema is not None:
        lost.append(Loss(None, None, Lost.output_schema, "A2A has no field for it"))
    return lost


def _new(turns: AgentTurns, losses: list[Loss]) -> list[Message]:
    """What the agent has not heard: what its user says now, and before it, in words, what was said by others and to them."""
    new = turns.messages[turns.known :]
    last = next((at for at in range(len(new), 0, -1) if new[at - 1].role is not Role.USER), 0)
    calls = {call.id for message in turns.messages[: turns.known] for call in message.tool_calls}
    texts: list[str] = []
    sent: list[Message] = []
    for at, message in enumerate(new):
        own = [
            at >= last and not (isinstance(piece, ToolResultPart) and piece.id not in calls)
            for piece in message.content
        ]
        lines = [
            _words(piece) for piece, is_own in zip(message.content, own, strict=True) if not is_own
        ]
        losses += [
            Loss(
                turns.known + at,
                place,
                what,
                "what was said to others is told an agent of A2A in words",
            )
            for place, piece in enumerate(message.content)
            if not own[place] and (what := _LOST.get(type(piece))) is not None
        ]
        if message.role is Role.SYSTEM:
            losses.append(
                Loss(turns.known + at, None, Lost.system_message, "A2A has none; its text is sent")
            )
        if text := "\n".join(filter(None, lines)):
            texts.append(f"{_SPEAKERS[message.role]}: {text}")
        if all(own):
            sent.append(message)
        elif any(own):
            sent.append(
                message.replace(
                    content=tuple(
                        [p for p, is_own in zip(message.content, own, strict=True) if is_own]
                    )
                )
            )
    return (
        [Message.user("What was said before:\n\n" + "\n\n".join(texts)), *sent] if texts else sent
    )


def _words(piece: Content) -> str:
    if isinstance(piece, TextPart):
        return piece.text
    if isinstance(piece, ToolCallPart):
        return f"[calls {piece.name} with {arguments_text(piece) if piece.state == 'complete' else piece.raw}]"
    if isinstance(piece, ToolResultPart):
        return f"[{piece.name or piece.id} gave {result_text(piece)}]"
    return f"[{label(piece)}]" if isinstance(piece, _FILES) else ""


def _plain(run_request: RunRequest, parts: list[Any]) -> list[Any]:
    """The parts for an agent that does not know our extension. It is answered in words; results are told as older agents have them."""
    made: list[Any] = []
    for resume in run_request.resume:
        payload = if_object(resume.payload)
        if resume.status == "cancelled":
            made.append({"text": "cancelled"})
        elif "approved" in payload:
            reason = payload.get("reason")
            made.append(
                {
                    "text": "yes"
                    if payload["approved"] is True
                    else f"no: {reason}"
                    if reason
                    else "no"
                }
            )
        else:
            value = payload.get("value")
            made.append({"text": value} if isinstance(value, str) else {"data": value})
    results = [piece for message in run_request.messages for piece in message.tool_results]
    if results:
        listed = [
            {"call_id": each.id, "name": each.name, "output": result_text(each)} for each in results
        ]
        made.append({"data": {TOOL_RESULTS_KEY: listed}})
    return [
        *made,
        *[part for part in parts[len(run_request.resume) :] if not _is_result(part)],
    ] or [{"text": ""}]


def _is_result(part: Any) -> bool:
    return if_object(if_object(part).get("data")).get("type") == "tool-result"


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """A request as it is sent to the agent's URL."""
    peer = quirks if isinstance(quirks, Quirks) else Quirks()
    params = dump_request(request, target=target, quirks=peer, losses=losses)
    method = "SendStreamingMessage" if peer.streams else "SendMessage"
    path = f"/message:{'stream' if peer.streams else 'send'}"
    http = _sent(method, path, params, peer)
    return HttpRequest(http.path, http.headers, http.body, retries=request.retries)


def dump_cancel(task_id: str, quirks: Any = None) -> HttpRequest:
    """The request that ends a task."""
    peer = quirks if isinstance(quirks, Quirks) else Quirks()
    return _sent("CancelTask", f"/tasks/{task_id}:cancel", {"id": task_id}, peer)


def _sent(method: str, path: str, params: dict[str, Any], peer: Quirks) -> HttpRequest:
    headers = {
        "accept": "text/event-stream" if method == "SendStreamingMessage" else "application/json"
    }
    if peer.version != "0.3":
        headers["a2a-version"] = peer.version
    if peer.extras:
        headers["a2a-extensions" if peer.version != "0.3" else "x-a2a-extensions"] = EXTENSION
    if peer.binding == "rest":
        return HttpRequest(path, headers, params)
    if peer.version == "0.3":
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
