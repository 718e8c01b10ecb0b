"""An agent of AG-UI, asked like a model. It keeps nothing: each request has the whole conversation,
and the state that both share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.codec.agent_answer import AgentAnswer, AnswerDecoder
from dragoman.codec.agent_conversation import agent_turns
from dragoman.codec.json_values import merge_wire_fields
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, RunInfo, RunRequest, Settings, ToolSpec
from dragoman.wires.ag_ui import decode
from dragoman.wires.ag_ui.errors import load_error
from dragoman.wires.ag_ui.quirks import NAME, OWN
from dragoman.wires.ag_ui.runs import dump_run

__all__ = ["decoder", "dump_cancel", "dump_http", "dump_request", "load_error", "name"]

name = NAME
_NO_RUN = RunInfo("run")
"""The run of a request that is made outside of one."""


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,  # noqa: ARG001 there is none
    losses: list[Loss] | None = None,
) -> Json:
    """Returns the `RunAgentInput` for an AG-UI request. Its options become further fields of it."""
    turns = agent_turns(request.messages, OWN, target)
    run = request.run or _NO_RUN
    run_request = RunRequest(
        turns.messages,
        thread_id=turns.thread_id or run.thread_id or run.run_id,
        # each call is a run there; the id grows with the conversation, so that a retry has the same
        run_id=f"{run.run_id}-{len(turns.messages) + len(turns.resume)}",
        tools=tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)]),
        context=run.context,
        state={} if run.state is None else run.state,
        resume=turns.resume,
        settings=None if request.settings == Settings() else request.settings,
    )
    if losses is not None:
        losses += _find_losses(request)
    return merge_wire_fields(dump_run(run_request), request.options)


def _find_losses(request: ModelRequest) -> list[Loss]:
    """Returns a loss for each provider tool, and for an output schema."""
    reason = "an agent of AG-UI has its own tools of servers"
    losses = [
        Loss(None, None, Lost.tool, reason, tool.name)
        for tool in request.tools
        if not isinstance(tool, ToolSpec)
    ]
    if request.output_schema is not None:
        losses.append(Loss(None, None, Lost.output_schema, "AG-UI has no field for it"))
    return losses


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """Returns the HTTP request that asks an AG-UI agent."""
    body = dump_request(request, target=target, quirks=quirks, losses=losses)
    return HttpRequest("", {"accept": "text/event-stream"}, body, retries=request.retries)


def dump_cancel(run_id: str, quirks: Any = None) -> HttpRequest | None:  # noqa: ARG001 the protocol's
    """See `AgentClient.dump_cancel`."""
    return None


def decoder(
    *,
    origin: Origin | None = None,
    new_id: Callable[[], str] | None = None,
    tools: Sequence[str] = (),
) -> AnswerDecoder:
    """Implements `AgentClient.decoder` for AG-UI."""
    return AnswerDecoder(
        decode.decoder(origin=origin),
        AgentAnswer(
            OWN,
            origin=origin,
            new_id=new_id,
            tools=tools,
        ),
    )
