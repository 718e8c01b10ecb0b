"""A2A → AG-UI → OpenAI as documents of the year 2025 have it: map, reduce, map. `a2a.load_messages`
is the direct way to the same messages.

events = compact_events([convert_a2a_message_to_agui_event(message) for message in history])
messages = [convert_agui_event_to_openai_chat(event) for event in events]

The names of events are those of the time (`text-message-content`); today's AG-UI is the wire
`ag_ui`. Programs of that time find these functions in `dragoman.wires.a2a`, and three of them in
`dragoman.wires.ag_ui`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text, text_or_json
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.a2a.compact import (
    ARGS,
    CHUNK,
    CONTENT,
    END,
    RESULT,
    START,
    Entry,
    find_text,
    get_agui_event_type_from_a2a_message,
    merge_arguments,
    read_field,
    reduce_entries,
    role_name,
    tool_calls_of,
    tool_results_of,
)
from dragoman.wires.a2a.tools import load_call, load_result

__all__ = [
    "STATE_TYPES",
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

_TYPES: Mapping[str, str] = {
    CONTENT: "text-message-content",
    CHUNK: "text-message-chunk",
    END: "text-message-end",
    START: "tool-call-start",
    ARGS: "tool-call-args",
    RESULT: "tool-call-result",
}
"""Canonical type → the `type` of its event."""
_KINDS = {type_: kind for kind, type_ in _TYPES.items()}
_RUN = "RunStartedEvent"
STATE_TYPES: Mapping[str, str] = {
    "created": _RUN,
    "submitted": _RUN,
    "working": "StepStartedEvent",
    "input-required": "StepFinishedEvent",
    "completed": "RunFinishedEvent",
    "failed": "RunErrorEvent",
    "canceled": "RunErrorEvent",
    "rejected": "RunErrorEvent",
}
"""State of a task → canonical type of its update; all others start a run."""
_RESPONSES: Mapping[str, str] = {
    "run-started": "run.started",
    "step-started": "run.step.started",
    "step-finished": "run.step.done",
    "run-finished": "run.done",
    "run-error": "run.error",
}


def get_agui_event_type_from_task_status_update(update: object) -> str:
    """Returns the canonical type of a task's update, by its state, which is a text, an enum or an
    object with a `value`. A task as its stream begins with it (`kind: "task"`, at work) is the
    beginning of a run."""
    value = read_field(read_field(update, "status"), "state")
    state = if_text(value) or if_text(read_field(value, "value"))
    if state.startswith("TASK_STATE_"):
        state = state.removeprefix("TASK_STATE_").lower().replace("_", "-")
    if state == "working" and read_field(update, "kind") == "task":
        return _RUN
    return STATE_TYPES.get(state, _RUN)


def add_canonical_type_to_message(message: Any) -> Any:
    """Notes in a message which event it is, and returns it. An update of a task, whose state says
    it, is left as it is."""
    if read_field(message, "status") is not None or read_field(message, "role") is None:
        return message
    kind = get_agui_event_type_from_a2a_message(message)
    metadata = {**if_object(read_field(message, "metadata")), "canonical_type": kind}
    if isinstance(message, dict):
        message["metadata"] = metadata
    else:
        message.metadata = metadata
    return cast("Any", message)


def convert_a2a_message_to_agui_event(message: object) -> Json:
    """Converts an A2A message to its AG-UI event. One call is `toolCall` and one result
    `toolCallId` and `result`; several are lists. Text beside calls or results is their event's
    `content`."""
    kind = get_agui_event_type_from_a2a_message(message)
    text = find_text(message) or ""
    event: Json = {"type": _TYPES.get(kind, _TYPES[CONTENT])}
    if kind in (START, ARGS):
        event |= _dump_calls(message)
    elif kind == RESULT:
        event |= _dump_results(message)
    else:
        if role_name(message) == "user":
            role = "user"
        else:
            role = "assistant"
        return {**event, "message": {"role": role, "content": text}}
    if text:
        return {**event, "content": text}
    return event


def _dump_calls(message: object) -> Json:
    """Returns the calls of a message as fields of its event."""
    calls = [_load_a2a_call(call) for call in tool_calls_of(message) or []]
    if len(calls) == 1:
        return {"toolCall": calls[0]}
    return {"toolCalls": calls}


def _dump_results(message: object) -> Json:
    """Returns the results of a message as fields of its event."""
    results = [_load_a2a_result(result) for result in tool_results_of(message) or []]
    if len(results) == 1:
        return results[0]
    return {"results": results}


def convert_task_status_update_to_agui_event(update: object, task: object = None) -> Json:
    """Converts a task's update, or the task itself, to its AG-UI event. `task`: whose id is the
    run's; without it, the update's own. The beginning of a run has the task's context as its
    `threadId`."""
    kind = get_agui_event_type_from_task_status_update(update)
    run_id = read_field(task, "id") or read_field(update, "taskId", "task_id", "id")
    event = {"type": _kebab(kind), "runId": if_text(run_id)}
    contexts = [if_text(read_field(value, "contextId", "context_id")) for value in (task, update)]
    thread_id = contexts[0] or contexts[1]
    if kind == _RUN and thread_id:
        return {**event, "threadId": thread_id}
    return event


def compact_events(events: Sequence[JsonMap]) -> list[Json]:
    """Returns the A2A seed's events that stay once their stream is over. Chunks, each of which
    holds the text so far, go where a later event of the answer holds their text; where none does,
    the last stays, as an end. Arguments in pieces are merged into those of their call. The events
    given are left as they are.

    Raises:
        HistoryError: it is no list of objects.
    """
    _check_agui_events(events)
    out: list[Json] = []
    for entry in reduce_entries([_compaction_entry(event) for event in events]):
        event = dict(events[entry.index])
        if entry.is_text:
            event = {"type": _TYPES[END], "message": _message_of(event)}
        out.append(_with_arguments(event, entry.arguments) if entry.arguments else event)
    return out


def convert_agui_event_to_openai_chat(
    event: JsonMap | None,
) -> tuple[Json | None, list[Json]]:
    """Converts an AG-UI event to its message of Chat Completions (or None), and the messages of
    tools, which go before it.

    Raises:
        HistoryError: it is no object.
    """
    event = event or {}
    _check_agui_events([event])
    type_ = if_text(event.get("type"))
    # A chunk and pieces of arguments are not yet a message.
    if type_ not in _KINDS or type_ in (_TYPES[CHUNK], _TYPES[ARGS]):
        return None, []
    text = if_text(event.get("content"))
    if type_ == _TYPES[START]:
        calls = [_openai_call(call) for call in _list_event_calls(event)]
        return {"role": "assistant", "content": text, "tool_calls": calls}, []
    if type_ == _TYPES[RESULT]:
        if text:
            message = {"role": "user", "content": text}
        else:
            message = None
        return message, [_tool_message(result) for result in _list_event_results(event)]
    message = if_object(event.get("message"))
    if not message:  # T-34
        return None, []
    return {"role": message.get("role", "assistant"), "content": message.get("content", "")}, []


def convert_agui_event_to_responses_api(event: JsonMap | None) -> Json | list[Json]:
    """Converts an AG-UI event to the `event` and `data` of the Responses API; several results to a
    list; an unknown event, or one without its message, to `{}`.

    Raises:
        HistoryError: it is no object.
    """
    event = event or {}
    _check_agui_events([event])
    type_ = if_text(event.get("type"))
    if type_ in _RESPONSES:
        return {"event": _RESPONSES[type_], "data": {"runId": event.get("runId", "")}}
    text = if_text(event.get("content"))
    beside = {"content": text} if text else {}
    if type_ in (_TYPES[START], _TYPES[ARGS]):
        calls = [_openai_call(call) for call in _list_event_calls(event)]
        return _delta({"role": "assistant", **beside, "tool_calls": calls})
    if type_ == _TYPES[RESULT]:
        return _dump_result_deltas(event, beside)
    message = if_object(event.get("message"))
    if type_ not in _KINDS or not message:
        return {}
    data = {"role": message.get("role", "assistant"), "content": message.get("content", "")}
    if type_ == _TYPES[END]:
        return {"event": "message.done", "data": data}
    return _delta(data)


def _dump_result_deltas(event: JsonMap, beside: Json) -> Json | list[Json]:
    """Returns a delta for each result of an event of the A2A seed, and one for the text `beside`
    them; a list if they are not exactly one."""
    deltas = [_delta(_tool_message(result)) for result in _list_event_results(event)]
    if beside:
        deltas.append(_delta({"role": "user", **beside}))
    if len(deltas) == 1:
        return deltas[0]
    return deltas


def _delta(data: Json) -> Json:
    return {"event": "message.delta", "data": data}


def convert_a2a_message_to_openai(message: object) -> tuple[Json | None, list[Json]]:
    """Converts an A2A message to the messages of Chat Completions that its event becomes."""
    return convert_agui_event_to_openai_chat(convert_a2a_message_to_agui_event(message))


def _check_agui_events(events: object) -> None:
    """Raises `HistoryError` unless all entries are AG-UI events.

    Raises:
        HistoryError: it is no list of objects.
    """
    if not isinstance(events, list | tuple):
        raise HistoryError(f"events are given as a list of objects, not as {type(events).__name__}")
    for index, event in enumerate(cast("Sequence[Any]", events)):
        if not isinstance(event, Mapping):
            raise HistoryError(
                f"event [{index}] is an object with a type, as convert_a2a_message_to_agui_event makes it, not {event!r:.100}"
            )


def _kebab(kind: str) -> str:
    words = re.findall(r"[A-Z][a-z]*", kind.removesuffix("Event"))
    return "-".join(words).lower()


def _load_a2a_call(call: object) -> Json:
    """Returns a tool call of an A2A part with id, name and arguments."""
    fields = if_object(call)
    if "toolCallId" in fields:
        read = load_call(fields)
        return {"id": read.id, "name": read.name, "arguments": read.arguments}
    arguments = fields.get("arguments")
    return {
        "id": if_text(fields.get("call_id")),
        "name": if_text(fields.get("name")),
        "arguments": {} if arguments is None else arguments,
    }


def _load_a2a_result(result: object) -> Json:
    """Returns a tool result of an A2A part with its call's id."""
    fields = if_object(result)
    if "toolCallId" in fields:
        read = load_result(fields)
        return {"toolCallId": read.id, "result": read.result}
    return {"toolCallId": if_text(fields.get("call_id")), "result": fields.get("output")}


def _list_event_calls(event: JsonMap) -> list[Json]:
    """Returns the calls of an event of the A2A seed, which are a list, or one alone."""
    if "toolCalls" in event:
        return [if_object(call) for call in if_list(event["toolCalls"])]
    if "toolCall" in event:
        return [if_object(event["toolCall"])]
    return []


def _list_event_results(event: JsonMap) -> list[Json]:
    """Returns the results of an event of the A2A seed, which are a list, or one alone."""
    if "results" in event:
        return [if_object(result) for result in if_list(event["results"])]
    if "toolCallId" not in event:
        return []
    return [{"toolCallId": event["toolCallId"], "result": event.get("result")}]


def _compaction_entry(event: JsonMap) -> Entry:
    """Returns an event of the A2A seed as compaction reads it."""
    kind = _KINDS.get(if_text(event.get("type")), "")
    calls = [(if_text(call.get("id")), call.get("arguments")) for call in _list_event_calls(event)]
    return Entry(kind, if_text(_message_of(event).get("content")), calls)


def _message_of(event: JsonMap) -> Json:
    """Returns the message of an event of the A2A seed; of calls their text."""
    return if_object(event.get("message")) or {
        "role": "assistant",
        "content": if_text(event.get("content")),
    }


def _with_arguments(event: Json, arguments: Mapping[str, Json]) -> Json:
    """Returns an event of the A2A seed whose calls have the arguments that earlier events began."""
    calls: list[Json] = []
    for call in _list_event_calls(event):
        merged = merge_arguments(call.get("arguments"), arguments.get(if_text(call.get("id"))))
        calls.append({**call, "arguments": merged})
    if "toolCall" in event:
        return {**event, "toolCall": calls[0]}
    return {**event, "toolCalls": calls}


def _openai_call(call: JsonMap) -> Json:
    """Returns a tool call of the A2A seed in the shape of Chat Completions."""
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        text = arguments
    else:
        text = _json(arguments)
    function = {"name": call.get("name", ""), "arguments": text}
    return {"id": call.get("id", ""), "type": "function", "function": function}


def _tool_message(result: JsonMap) -> Json:
    """Returns a tool result of the A2A seed as a `tool` message of Chat Completions."""
    value = result.get("result")
    content = value if isinstance(value, str) else _json(value)
    return {"role": "tool", "tool_call_id": result.get("toolCallId", ""), "content": content}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def extract_user_text_and_tool_results(message: object) -> tuple[str, list[Any]]:
    """Returns all text of a message, joined, and the results of all its parts."""
    return find_text(message) or "", tool_results_of(message) or []


def convert_mcp_tool_to_openai(tool: object) -> Json:
    """Converts a tool as MCP lists it to one of Chat Completions."""
    schema = read_field(tool, "inputSchema", "input_schema")
    function: Json = {
        "name": read_field(tool, "name"),
        "description": read_field(tool, "description") or "",
        "parameters": {} if schema is None else schema,
    }
    return {"type": "function", "function": function}


def convert_openai_tool_call_to_mcp(call: object) -> Json:
    """Converts a call of Chat Completions, a dictionary or an object, to its id, name and
    arguments. Text that is no JSON is no arguments."""
    function = read_field(call, "function")
    arguments = read_field(function, "arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {}
    return {
        "call_id": read_field(call, "id"),
        "name": read_field(function, "name"),
        "arguments": {} if arguments is None else arguments,
    }


def convert_tool_result_to_openai(result: object) -> Json:
    """Converts a result of an A2A message to a `tool` message of Chat Completions.

    Raises:
        ValueError: it does not say which call it answers, or has no output.
    """
    call_id, output = (
        read_field(result, "call_id", "toolCallId"),
        read_field(result, "output", "content"),
    )
    if not if_text(call_id):
        raise ValueError("a tool result names the call that it answers; send its call_id")
    if output is None:
        raise ValueError(f"the tool result of call {call_id!r:.100} has no output; send one")
    return {"role": "tool", "tool_call_id": call_id, "content": text_or_json(output)}


def extract_event_data(event: object) -> Any:
    """Returns what an event of an A2A client holds: of a pair the second, of a tuple of one that
    one, of anything else itself."""
    if not isinstance(event, tuple):
        return event
    values = cast("tuple[Any, ...]", event)
    if len(values) == 2:
        return values[1]
    if len(values) == 1:
        return values[0]
    return values


def extract_task_from_tuple(event: Any) -> Any:
    """Returns the task that stands first in a tuple; `None`: there is none."""
    if isinstance(event, tuple):
        values = cast("tuple[Any, ...]", event)
    else:
        values = ()
    if values and _is_task(values[0]):
        return values[0]
    return None


def extract_task_from_event(event: Any) -> Any:
    """Returns the task in an event: a tuple's, a member's (`task`, `result`), or the event itself;
    `None`: there is none."""
    if isinstance(event, tuple):
        return extract_task_from_tuple(event)
    if _is_task(event):
        return event
    for name in ("task", "result", "root"):
        inner = read_field(event, name)
        if inner is None:
            task = None
        else:
            task = extract_task_from_event(inner)
        if task is not None:
            return task
    return None


def _is_task(value: object) -> bool:
    return read_field(value, "status") is not None and isinstance(read_field(value, "id"), str)
