"""Writes parts as the items of a response, with their events, one part after the other.

A part begins with its first delta (`more`) and ends with `end`, which writes all events of a part
that had no deltas. Several texts may share a message item, and what the provider ran goes into the
item of its call. So an item stays open until a part comes that does not belong to it (`end_item`).
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields, text_or_json
from dragoman.codec.media import describe_as_text
from dragoman.fold import arguments_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    DataPart,
    MarkPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.openai_responses.citations import dump_annotations
from dragoman.wires.openai_responses.content import dump_reasoning, is_block
from dragoman.wires.openai_responses.items import read_item_start
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.tools import (
    APPROVAL,
    FUNCTION,
    IMAGE_CALL,
    choose_item_type,
    dump_call,
    is_call_item,
    write_result,
)
from dragoman.wires.openai_responses.tools_results import dump_provider_result, read_result_type

__all__ = ["Add", "ItemWriter"]

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    FUNCTION: "fc",
    "custom_tool_call": "ctc",
    "mcp_call": "mcp",
}
"""Type of an item → prefix of the ids of such items."""
_STAGES = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_call": ("in_progress", "completed"),
    "mcp_list_tools": ("in_progress", "completed"),
}
"""Type of an item that the provider works on → the events that say how far it is. The last of them
comes at its end."""


_Streamed = TextPart | ThinkingPart | ToolCallPart


class Add(Protocol):
    """Adds one event to the stream."""

    def __call__(self, kind: str, /, **fields: Any) -> None:
        """Adds an event. `kind`: its type without `response.`."""
        ...


class ItemWriter:
    """Writes parts as items. One is written at a time: `more` any number of times, then `end`."""

    def __init__(self, add: Add) -> None:
        """Creates the writer of the parts of a Responses stream. `add` receives objects that do not
        change later."""
        self.output: list[Json] = []
        """The items so far, the last of which may be open."""
        self.response_id = ""
        self._add = add
        self._item: Json | None = None
        # True while the item's latest piece is open.
        self._piece = False
        self._begun: _Streamed | None = None
        """The part that the open piece was begun for, and its deltas."""
        self._deltas: list[str] = []

    def more(self, part: Content, delta: str) -> None:
        """Writes a delta of a part of a Responses answer. `part`: the part as it began."""
        if isinstance(part, (TextPart, ThinkingPart)) or (
            isinstance(part, ToolCallPart) and _streams(part)
        ):
            self._open(part)
            self._deltas.append(delta)
            self._add(f"{_name(part)}.delta", **self._at(part), delta=delta, **_logprobs(part))

    def show_image(self, call: ToolCallPart, fields: JsonMap) -> None:
        """Writes an image that is not finished into the Responses stream. `call`: the call that
        makes it, as it began."""
        item = _call_item(call)
        if not self._holds(item):
            self._begin_item(item)
        position = {"item_id": item["id"], "output_index": len(self.output) - 1}
        # The ids are those of this stream, whatever the provider's were.
        image = read_extra_fields(fields, "type", *position)
        self._add(f"{IMAGE_CALL}.partial_image", **position, **image)

    def _holds(self, item: Json) -> bool:
        """Whether the open item is this one."""
        return self._item is not None and is_call_item(self._item, item.get("id"))

    def end(self, part: Content) -> Json | None:
        """Writes the end of a part. Returns the Responses item that holds it, or None if none
        does."""
        # What was streamed until now is another part than the one that ends here: it ends first.
        if self._piece and not _goes_on(self._begun, part):
            self._end_begun()
        if isinstance(part, (TextPart, ThinkingPart)):
            return self._end_text(part)
        if isinstance(part, ToolCallPart):
            return self._end_call(part)
        if isinstance(part, ToolResultPart):
            return self._end_result(part)
        if isinstance(part, MarkPart):
            return None
        if isinstance(part, ProviderPart):
            return self._end_provider_part(part)
        if isinstance(part, DataPart):
            return self._end_data(part)
        return self._end_text(TextPart(describe_as_text(part)))

    def _end_provider_part(self, part: ProviderPart) -> Json | None:
        """Writes a Responses block or item that only the provider understands. None if it is
        another wire's."""
        if not OWN.is_ours(part.native):
            return None
        fields = OWN.fields(part.native)
        if is_block(part):
            return self._end_block(part, fields)
        return self._whole({"type": part.kind, **fields, **OWN.response(part.native)})

    def _end_data(self, part: DataPart) -> Json:
        """Writes the end of a data part into the Responses stream: into the call that made it, as
        an image, or as a text that describes it."""
        item = self._item
        if item is not None and is_call_item(item, OWN.form(part.native).get("call")):
            write_result(item, part)
            return item
        if not part.mime_type.startswith("image/"):
            return self._end_text(TextPart(describe_as_text(part)))
        image_item: Json = {"type": "image_generation_call", "status": "completed"}
        write_result(image_item, part)
        return self._whole(image_item)

    def _end_begun(self) -> None:
        """Ends the open piece as what it began as, because its part of a Responses answer turned
        out to be of another type."""
        begun, text = self._begun, "".join(self._deltas)
        if isinstance(begun, ToolCallPart):
            self._end_call(replace(begun, arguments={}, raw=text, state="cut"))
        elif begun is not None:
            self._end_text(replace(begun, text=text))

    def end_item(self) -> None:
        """Ends the item of the Responses stream that is open."""
        item, self._item = self._item, None
        if item is not None:
            if stages := _STAGES.get(if_text(item["type"])):
                self._add(
                    f"{item['type']}.{stages[-1]}",
                    item_id=item["id"],
                    output_index=len(self.output) - 1,
                )
            self._add("output_item.done", output_index=len(self.output) - 1, item=dict(item))

    def _begin_item(self, item: Json, **unknown: Any) -> Json:
        """Begins a Responses item. `unknown`: values for fields that are still to come."""
        self.end_item()
        index = len(self.output)
        type_ = if_text(item["type"])
        prefix = _PREFIXES.get(type_, type_)
        # Ids follow from the response and the place in it, since a wire has no randomness.
        item.setdefault("id", f"{prefix}_{self.response_id.removeprefix('resp_')}_{index}")
        self.output.append(item)
        self._item = item
        status = {"status": "in_progress"} if "status" in item else {}
        self._add("output_item.added", output_index=index, item={**item, **status, **unknown})
        for stage in _STAGES.get(type_, ())[:-1]:
            self._add(f"{type_}.{stage}", item_id=item["id"], output_index=index)
        return item

    def _whole(self, item: Json) -> Json:
        """Writes a Responses item that comes in one piece."""
        self._begin_item(item)
        self.end_item()
        return item

    def _at(self, part: Content) -> Json:
        """Returns the fields that say which part an event of a Responses stream is about."""
        item = self._item or {}
        position: Json = {"item_id": item["id"], "output_index": len(self.output) - 1}
        if isinstance(part, ThinkingPart):
            position["summary_index" if _name(part) == _SUMMARY else "content_index"] = 0
        elif not isinstance(part, ToolCallPart):
            position["content_index"] = len(item["content"])
        return position

    def _open(self, part: TextPart | ThinkingPart | ToolCallPart) -> None:
        """Begins the Responses item and the piece for the deltas of a part, if they have not
        begun."""
        if self._piece:
            return
        self._piece, self._begun, self._deltas = True, part, []
        if isinstance(part, ToolCallPart):
            self._begin_item(_call_item(part), arguments="")
            return
        if isinstance(part, ThinkingPart):
            self._begin_item({**dump_reasoning(part), **OWN.response(part.native), "summary": []})
            if _name(part) == _SUMMARY:
                self._add("reasoning_summary_part.added", **self._at(part), part=_summary(""))
            return
        self._open_message(part)
        self._add("content_part.added", **self._at(part), part=_block(part, ""))

    def _open_message(self, part: TextPart | ProviderPart) -> Json:
        """Returns the open Responses message item for a text, begun if there is none."""
        begun = read_item_start(part.native)
        if self._item is None or self._item["type"] != "message" or begun is not None:
            fields: Json = {
                "status": "completed",
                **(begun or {}),
                "type": "message",
                "role": "assistant",
                "content": [],
            }
            return self._begin_item(fields, content=[])
        return self._item

    def _end_text(self, part: TextPart | ThinkingPart) -> Json:
        """Ends a text or refusal part of the Responses stream: writes its missing deltas and its
        `done` events."""
        if not self._piece:
            self._open(part)
            if part.text:
                self._add(
                    f"{_name(part)}.delta", **self._at(part), delta=part.text, **_logprobs(part)
                )
        self._piece = False
        item = self._item or {}
        field = "refusal" if _name(part) == "refusal" else "text"
        self._add(f"{_name(part)}.done", **self._at(part), **{field: part.text}, **_logprobs(part))
        if isinstance(part, ThinkingPart):
            if _name(part) == _SUMMARY:
                self._add("reasoning_summary_part.done", **self._at(part), part=_summary(part.text))
            item |= {**dump_reasoning(part), **OWN.response(part.native)}
            self.end_item()
            return item
        block = _block(part, part.text)
        for index, annotation in enumerate(if_list(block.get("annotations"))):
            self._add(
                "output_text.annotation.added",
                **self._at(part),
                annotation_index=index,
                annotation=annotation,
            )
        self._add("content_part.done", **self._at(part), part=block)
        item["content"].append(block)
        if status := (read_item_start(part.native) or {}).get("status"):
            item["status"] = status
        return item

    def _end_block(self, part: ProviderPart, block: Json) -> Json:
        item = self._open_message(part)
        item["content"].append(block)
        return item

    def _end_call(self, call: ToolCallPart) -> Json:
        """Writes the end of a call part into the Responses stream. A call of the provider's stays
        open for its result."""
        item = _call_item(call)
        if _streams(call):
            item = self._end_streamed_call(call, item)
        elif self._holds(item):
            item = self.output[-1] = self._item = {**(self._item or {}), **item}
        else:
            item = self._begin_item(item)
            if item["type"] == "custom_tool_call":
                position = {"item_id": item["id"], "output_index": len(self.output) - 1}
                text = item.get("input", "")
                self._add("custom_tool_call_input.delta", **position, delta=text)
                self._add("custom_tool_call_input.done", **position, input=text)
        if call.run_by != "provider":
            self.end_item()
        return item

    def _end_streamed_call(self, call: ToolCallPart, item: Json) -> Json:
        """Writes the end of a call whose arguments come piece by piece. Returns its Responses
        item."""
        arguments = item["arguments"]
        if not self._piece:
            self._open(call)
            if arguments:
                self._add(f"{_name(call)}.delta", **self._at(call), delta=arguments)
        self._piece = False
        self._add(f"{_name(call)}.done", **self._at(call), arguments=arguments)
        begun_item = self._item or {}
        item = begun_item | {**item, "id": begun_item["id"]}
        self._item = self.output[-1] = item
        return item

    def _end_result(self, part: ToolResultPart) -> Json | None:
        """Ends a result: writes a Responses item of its own, or adds it to the item of its call."""
        if read_result_type(part) is not None:
            return self._whole({**dump_provider_result(part), **OWN.response(part.native)})
        item = self._item
        if item is None or not is_call_item(item, part.id):
            return None
        if item["type"] == "mcp_call" and not OWN.is_ours(part.native):
            text = text_or_json(part.result)
            failed = {
                "type": "mcp_tool_execution_error",
                "content": [{"type": "text", "text": text}],
            }
            item |= {"error": failed} if part.is_error else {"output": text}
        else:
            write_result(item, part)
        return item


_SUMMARY = "reasoning_summary_text"


def _goes_on(begun: Content | None, part: Content) -> bool:
    """True if a part of a Responses answer is what its piece was begun for."""
    if isinstance(begun, ToolCallPart):
        return isinstance(part, ToolCallPart) and _streams(part)
    return isinstance(part, TextPart if isinstance(begun, TextPart) else ThinkingPart)


def _name(part: Content) -> str:
    """Returns the name of the piece of a Responses answer's part in the types of events."""
    form = OWN.form(part.native)
    if isinstance(part, ThinkingPart):
        if "content" in if_object(form.get("pieces")):
            return "reasoning_text"
        return _SUMMARY
    if isinstance(part, ToolCallPart):
        return f"{choose_item_type(part)}_arguments"
    if form.get("type") == "refusal":
        return "refusal"
    return "output_text"


def _streams(call: ToolCallPart) -> bool:
    """True if a call's arguments come piece by piece."""
    return choose_item_type(call) in (FUNCTION, "mcp_call")


def _logprobs(part: Content) -> Json:
    """Returns the field that every event of a text must have in a Responses stream."""
    is_text = isinstance(part, TextPart) and _name(part) == "output_text"
    if is_text:
        return {"logprobs": []}
    return {}


def _summary(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def _block(part: TextPart, text: str) -> Json:
    """Returns the Responses block of a text, as a response has it."""
    if _name(part) == "refusal":
        return {"type": "refusal", "refusal": text}
    fields = {**OWN.fields(part.native), **OWN.response(part.native)} if text else {}
    annotations = dump_annotations(part) if text else []
    block: Json = {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}
    return block | fields


def _call_item(call: ToolCallPart) -> Json:
    """Returns the Responses item of a call, with everything that a response has of it. What another
    provider ran becomes the call of an MCP server."""
    item = {**dump_call(call, call.id, call.name), **OWN.response(call.native)}
    if choose_item_type(call) != APPROVAL:
        item.setdefault("status", "incomplete" if call.state == "cut" else "completed")
    if _streams(call):
        item["arguments"] = arguments_text(call) if call.state == "complete" else call.raw or ""
    if choose_item_type(call) == "mcp_call":
        item = {"server_label": "provider", "output": None, "error": None, **item}
    return item
