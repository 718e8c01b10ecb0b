"""How a run begins and ends, as AG-UI says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.event import RunFinished
from dragoman.wires.ag_ui.errors import code_of
from dragoman.wires.ag_ui.interrupts import dump_interrupt
from dragoman.wires.ag_ui.quirks import OWN, VERSION
from dragoman.wires.ag_ui.usage import dump_usage

__all__ = ["dump_failed", "dump_finished", "dump_started"]


def dump_started(thread_id: str, run_id: str, parent: str | None = None) -> dict[str, Any]:
    """The start of a run. `parent`: the run that it goes on from."""
    fields = {
        "type": "RUN_STARTED",
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": VERSION,
    }
    return {**fields, "parentRunId": parent} if parent else fields


def dump_failed(error: DragomanError) -> dict[str, Any]:
    """The end of a run that failed."""
    return {"type": "RUN_ERROR", "message": error.message or "error", "code": code_of(error)}


def dump_finished(
    event: RunFinished, thread_id: str, run_id: str, call_ids: Mapping[str, str], *, current: bool
) -> dict[str, Any]:
    """The end of a run. `call_ids`: of calls that wait → under which the protocol knows them. `current`: the peer reads what came with 1.0.

    What the client must run is no interrupt: it answers such calls with tool messages.
    """
    fields: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}
    interrupts = [each for each in event.pending if each.reason != "tool"]
    client_calls = [each.call.id for each in event.pending if each.reason == "tool" and each.call]
    if interrupts:
        dumped = [
            dump_interrupt(each, call_ids.get(each.call.id) if each.call else None)
            for each in interrupts
        ]
        fields["outcome"] = {"type": "interrupt", "interrupts": dumped}
    elif event.outcome == "cancelled" and current:
        fields["outcome"] = {"type": "cancelled"}
    else:
        waits = (
            {"pendingToolCallIds": [call_ids.get(id_, id_) for id_ in client_calls]}
            if client_calls and current
            else {}
        )
        fields["outcome"] = {"type": "success", **waits}
    if event.result is not None:
        fields["result"] = event.result
    return {**OWN.fields(event.native), **fields, **dump_usage(event.usage)}
