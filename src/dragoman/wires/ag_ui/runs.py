"""What a client asks an agent (`RunAgentInput`), both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.carried import difference, with_carried
from dragoman.codec.json_values import bounded, if_list, if_object, if_text, rest
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.interrupts import dump_resume, load_resume
from dragoman.wires.ag_ui.messages import dump_conversation, load_conversation
from dragoman.wires.ag_ui.quirks import OURS, OWN, VERSION, packed, renamed, unpacked
from dragoman.wires.ag_ui.tools import dump_tools, load_tools

__all__ = ["dump_run", "load_run", "routes"]

routes = (
    Route("POST", "/ag-ui", "run"),
    Route("POST", "/ag-ui/{model}", "run"),
    Route("GET", "/ag-ui/{id}/stream", "attach"),
    Route("POST", "/ag-ui/{id}/cancel", "cancel_run"),
    Route("GET", "/ag-ui", "capabilities"),
    Route("GET", "/ag-ui/{model}", "capabilities"),
)
"""Where a server has what."""
_CARRIED = ("thread_id", "run_id", "context", "state", "settings", "metadata")
"""What is carried of a request. Whose conversation it is, and what goes to a provider unread, is not for a client to say."""
_READ = ("threadId", "runId", "messages", "state", "tools", "context", "forwardedProps", "resume")


def load_run(
    body: Mapping[str, Any],
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """What a client asks. `forwardedProps` is `metadata["forwarded_props"]`; `parentRunId` and `protocolVersion` stand in `native`.

    Raises:
        HistoryError: the body is no `RunAgentInput`.
    """
    given: Any = body
    if not isinstance(given, dict):
        raise HistoryError("a RunAgentInput of AG-UI is a JSON object")
    bounded(body if problems is None else rest(body, "messages"))
    fields = {name: value for name, value in renamed(body).items() if value is not None}
    for name in ("threadId", "runId", "parentRunId", "protocolVersion"):
        if name in fields and not isinstance(fields[name], str):
            raise HistoryError(f"{name} of a RunAgentInput is a text; send it as one")
    for name in ("messages", "tools", "context", "resume"):
        if name in fields and not isinstance(fields[name], list):
            raise HistoryError(f"{name} of a RunAgentInput is a list; send it as one")
    forwarded = fields.get("forwardedProps")
    held = unpacked(forwarded)
    left = rest(if_object(forwarded), OURS) if OURS in if_object(forwarded) else forwarded
    request = RunRequest(
        tuple(load_conversation(fields.get("messages", []), origin, problems)),
        thread_id=if_text(fields.get("threadId")) or None,
        run_id=if_text(fields.get("runId")) or None,
        tools=load_tools(fields.get("tools")),
        context=tuple(if_list(fields.get("context"))),
        state=fields.get("state"),
        resume=load_resume(fields.get("resume")),
        metadata={} if left in (None, {}) else {"forwarded_props": left},
        native=OWN.note(rest(fields, *_READ)),
    )
    return with_carried(request, held, _CARRIED)


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> dict[str, Any]:  # noqa: ARG001 nothing is lost
    """The inverse. What the protocol has no field for stands in `forwardedProps`, under the key `dragoman`."""
    metadata = request.metadata
    forwarded = metadata.get("forwarded_props")
    body: dict[str, Any] = {
        "threadId": request.thread_id or request.run_id or "thread",
        "runId": request.run_id or "run",
        "messages": dump_conversation(request.messages),
        "tools": dump_tools(request.tools),
        "context": list(request.context),
        "state": {} if request.state is None else request.state,
        "forwardedProps": {} if forwarded is None else forwarded,
        **({"resume": dump_resume(request.resume)} if request.resume else {}),
    }
    own = OWN.fields(request.native)
    body = {**own, **body, "protocolVersion": own.get("protocolVersion", VERSION)}
    read = load_run({**body, "messages": []})
    more = {name: value for name, value in difference(request, read).items() if name in _CARRIED}
    if more and isinstance(body["forwardedProps"], dict):
        body["forwardedProps"] = {**body["forwardedProps"], **packed(more)}
    return body
