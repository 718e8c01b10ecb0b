"""A2A 1.0 (Agent2Agent), both ways: a message to an agent, answered by a task that is streamed or
read whole.

wire = wires.protocol("a2a")
request = wire.load_run(params)                          # of SendMessage, or the request of JSON-RPC that holds them
encoder = wire.encoder(**wire.envelope(request, id=task_id, now=now))
objects = encoder.objects(event)                         # StreamResponse objects; `feed` frames them

Messages and runs come back as they were where a peer keeps our extension (`EXTENSION`); without it
texts, files, calls, results, states and questions do. Messages and events of 0.2, 0.3 and of older
agents are read too; what is written is 1.0.
"""

from importlib import import_module
from typing import Any

from dragoman.wires.a2a.decode import decoder, load_response, split_member
from dragoman.wires.a2a.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.a2a.errors import (
    FAULTS,
    dump_error,
    dump_refusal,
    error_of,
    load_error,
    rest_error,
    rpc_error,
)
from dragoman.wires.a2a.interrupts import answer_from_words
from dragoman.wires.a2a.messages import dump_messages, load_messages, votes
from dragoman.wires.a2a.quirks import EXTENSION, NAME, REPLY, Quirks
from dragoman.wires.a2a.runs import (
    OLD_METHODS,
    assign_task,
    dump_run,
    frame_object,
    load_run,
    routes,
    rpc_failure,
    rpc_request,
    rpc_result,
    task_id_of,
)
from dragoman.wires.a2a.serving import CARD_PATH, MEDIA_TYPES, bodies, dump_card
from dragoman.wires.a2a.tasks import (
    NO_STATE,
    STAGES,
    aggregate_task,
    cancel_task,
    dump_task,
    find_reply,
    load_task,
)
from dragoman.wires.a2a.tools import TOOL_CALLS_KEY, TOOL_RESULTS_KEY
from dragoman.wires.a2a.version03 import OLD_REST, OLD_RPC, OldBinding, new_params, old_card

name = NAME
_SEED = frozenset(
    [
        "add_canonical_type_to_message",
        "compact_events",
        "convert_a2a_message_to_agui_event",
        "convert_a2a_message_to_openai",
        "convert_agui_event_to_openai_chat",
        "convert_agui_event_to_responses_api",
        "convert_mcp_tool_to_openai",
        "convert_openai_tool_call_to_mcp",
        "convert_task_status_update_to_agui_event",
        "convert_tool_result_to_openai",
        "extract_event_data",
        "extract_task_from_event",
        "extract_task_from_tuple",
        "extract_user_text_and_tool_results",
        "get_agui_event_type_from_a2a_message",
        "get_agui_event_type_from_task_status_update",
    ]
)
"""Names of the conversions that documents of the year 2025 define."""


# They stand in a format, and formats stand above wires: an import at the top would turn that round,
# so that a wire could not be read without the formats. Programs of that time import them from here,
# and get them when they ask.
def __getattr__(name: str) -> Any:
    if name in _SEED:
        return getattr(import_module("dragoman.formats.seed_a2a"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["EXTENSION", "REPLY", "Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes"]
__all__ += ["load_run", "dump_run", "routes", "answer_from_words"]
__all__ += [
    "decoder",
    "load_response",
    "encoder",
    "envelope",
    "dump_response",
    "stream_type",
    "ping",
    "split_member",
]
__all__ += [
    "NO_STATE",
    "STAGES",
    "dump_task",
    "load_task",
    "aggregate_task",
    "cancel_task",
    "find_reply",
]
__all__ += [
    "FAULTS",
    "load_error",
    "dump_error",
    "dump_refusal",
    "error_of",
    "rest_error",
    "rpc_error",
]
__all__ += ["OLD_METHODS", "rpc_request", "rpc_result", "rpc_failure", "frame_object"]
__all__ += [
    "OLD_REST",
    "OLD_RPC",
    "OldBinding",
    "new_params",
    "old_card",
    "assign_task",
    "task_id_of",
]
__all__ += ["CARD_PATH", "MEDIA_TYPES", "bodies", "dump_card"]
__all__ += ["TOOL_CALLS_KEY", "TOOL_RESULTS_KEY"]
