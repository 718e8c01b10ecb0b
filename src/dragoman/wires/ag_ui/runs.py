"""What a client asks an agent (`RunAgentInput`), both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_difference import find_difference, restore_fields
from dragoman.codec.json_values import (
    check_depth,
    drop_none,
    if_list,
    if_object,
    if_text,
    pick,
    read_extra_fields,
)
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.interrupts import dump_resume, load_resume
from dragoman.wires.ag_ui.messages import dump_conversation, load_conversation
from dragoman.wires.ag_ui.quirks import OURS, OWN, VERSION, dump_extras, load_extras, rename_fields
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
"""Paths of a server."""
_CARRIED = ("thread_id", "run_id", "context", "state", "settings", "metadata")
"""Fields of a request that are carried. A client must not choose the conversation's owner or a
provider's options."""
_TYPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(["threadId", "runId", "parentRunId", "protocolVersion"], (str, "text")),
    **dict.fromkeys(["messages", "tools", "context", "resume"], (list, "list")),
}
"""Field → its type, and the word for that in an error."""
_READ = ("threadId", "runId", "messages", "state", "tools", "context", "forwardedProps", "resume")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """Reads the run request in AG-UI's `RunAgentInput`.

    `forwardedProps` becomes `metadata["forwarded_props"]`. `parentRunId` and `protocolVersion` are
    kept in `native`.

    Raises:
        HistoryError: the body is no `RunAgentInput`.
    """
    fields = _load_fields(body, problems)
    forwarded = fields.get("forwardedProps")
    carried = load_extras(forwarded)
    if isinstance(forwarded, dict):
        forwarded = read_extra_fields(if_object(forwarded), OURS) or None
    request = RunRequest(
        tuple(load_conversation(fields.get("messages", []), origin, problems)),
        thread_id=if_text(fields.get("threadId")) or None,
        run_id=if_text(fields.get("runId")) or None,
        tools=load_tools(fields.get("tools")),
        context=tuple(if_list(fields.get("context"))),
        state=fields.get("state"),
        resume=load_resume(fields.get("resume")),
        metadata={} if forwarded is None else {"forwarded_props": forwarded},
        native=OWN.note(read_extra_fields(fields, *_READ)),
    )
    return restore_fields(request, carried, _CARRIED)


def _load_fields(body: Any, problems: list[Problem] | None) -> Json:
    """Returns the fields of a run's body that are not null, under the names of AG-UI 1.0; older
    clients have others. `problems`: as in `load_run`.

    Raises:
        HistoryError: the body is no object, or a field has the wrong type.
    """
    if not isinstance(body, dict):
        raise HistoryError("a RunAgentInput of AG-UI is a JSON object")
    raw_fields = if_object(body)
    # Where problems are collected, each message is checked by itself later, so that one which is
    # nested too deeply does not cost the others.
    check_depth(raw_fields if problems is None else read_extra_fields(raw_fields, "messages"))
    fields = drop_none(rename_fields(raw_fields))
    for name, (field_type, noun) in _TYPES.items():
        if name in fields and not isinstance(fields[name], field_type):
            raise HistoryError(f"{name} of a RunAgentInput is a {noun}; send it as one")
    return fields


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:  # noqa: ARG001 nothing is lost
    """Returns the `RunAgentInput` for an AG-UI request. `forwardedProps` carries what the protocol
    has no field for."""
    forwarded = request.metadata.get("forwarded_props")
    body: Json = {
        "threadId": request.thread_id or request.run_id or "thread",
        "runId": request.run_id or "run",
        "messages": dump_conversation(request.messages),
        "tools": dump_tools(request.tools),
        "context": list(request.context),
        "state": {} if request.state is None else request.state,
        "forwardedProps": {} if forwarded is None else forwarded,
    }
    if request.resume:
        body["resume"] = dump_resume(request.resume)
    native_fields = OWN.fields(request.native)
    body = {
        **native_fields,
        **body,
        "protocolVersion": native_fields.get("protocolVersion", VERSION),
    }
    # messages carry their own extras; reading them again would cost as much as writing them
    read = load_run({**body, "messages": []})
    difference = find_difference(request.replace(messages=()), read)
    carried = pick(difference, _CARRIED)
    # an application may forward another value than an object, which cannot carry anything
    if carried and isinstance(body["forwardedProps"], dict):
        body["forwardedProps"] = {**body["forwardedProps"], **dump_extras(carried)}
    return body
