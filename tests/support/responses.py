"""What the tests of the openai_responses wire share: items, events and responses as the API sends
them."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from dragoman import wires
from dragoman.event import RunError
from dragoman.fold import fold, unfold
from dragoman.message import DataPart, Message, Origin, Role, TextPart, ThinkingPart, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.wires import openai_responses as wire

NAME = "openai_responses"
HEAD = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-x"}
CREATED = {"type": "response.created", "response": {**HEAD, "status": "in_progress", "output": []}}
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 17,
}


def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def of(kind, index=0, **fields):
    return {"type": f"response.{kind}", "output_index": index, **fields}


def message_item(text, id_="msg_1", **fields):
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {
        "type": "message",
        "id": id_,
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def call_item(arguments="{}", id_="fc_1", **fields):
    fields = {"status": "completed", "call_id": "call_1", **fields}
    return {"type": "function_call", "id": id_, "name": "f", "arguments": arguments, **fields}


def reasoning_item(*summary, id_="rs_1", **fields):
    pieces = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id_, "summary": pieces, **fields}


def end_event(*output, kind="completed", **fields):
    status = {"completed": "completed", "incomplete": "incomplete", "failed": "failed"}[kind]
    return {
        "type": f"response.{kind}",
        "response": {**HEAD, "status": status, "output": list(output), "usage": USAGE, **fields},
    }


def decode(*data, origin=None, new_id=None):
    decoder = wire.decoder(origin=origin, new_id=new_id)
    return [event for chunk in data for event in decoder.feed(chunk)] + decoder.close()


def message(*events):
    decoded = decode(sse(CREATED, *events))
    assert not [event for event in decoded if isinstance(event, RunError)]
    (folded,) = fold(decoded)
    return folded


def text(index, *deltas, place=0):
    return [
        of(
            "output_item.added",
            index,
            item={**message_item(""), "content": [], "status": "in_progress"},
        ),
        of(
            "content_part.added",
            index,
            content_index=place,
            part={"type": "output_text", "text": ""},
        ),
        *[
            of("output_text.delta", index, content_index=place, delta=delta, logprobs=[])
            for delta in deltas
        ],
    ]


def events_in(data):
    return [
        json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")
    ]


neutral = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5), lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=4), x, max_size=2), max_leaves=4)  # fmt: skip
pieces = st.one_of(
    st.builds(TextPart, st.text(min_size=1)),
    st.builds(ThinkingPart, st.text()),
    st.builds(ToolCallPart, st.text("abc_", min_size=1, max_size=8), st.sampled_from(["f", "g"]), st.dictionaries(st.text(max_size=3), neutral, max_size=3)),
)  # fmt: skip
OPENAI = Origin("openai-responses", "https://api.openai.com/v1", "gpt-5")
XAI = Origin("xai", "https://api.x.ai/v1", "grok")
PNG = b"\x89PNG"


def items(*messages, **options):
    return wire.dump_messages(messages, **options)["input"]


def load(*given):
    return wire.load_messages({"input": list(given)})


def there_and_back(*given):
    messages = load(*given)
    assert items(*messages) == list(given)
    return messages


def answered(*output, **fields):
    """A model's message as it came in a response."""
    body = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5-x",
        "status": "completed",
        "output": output,
        **fields,
    }
    (message,) = fold(wire.load_response(body, origin=OPENAI))
    return message


MESSAGE_ITEM = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
}
REASONING_ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
}
ENCRYPTED = {**REASONING_ITEM, "encrypted_content": "gAAA", "status": "completed"}
CALL_ITEM = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
HI = Message.user("Hi")
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def dump(*messages, losses=None, target=None, quirks=None, **fields):
    request = ModelRequest("gpt-5", messages or (HI,), **fields)
    return wire.dump_request(request, losses=losses, target=target, quirks=quirks)


def reads_back(**body):
    """A body that survives, and what it says."""
    body = {"model": "m", "input": "x", **body}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    return request


FULL_HEAD = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "error": None, "incomplete_details": None, "model": "m",
    "output": [], "usage": None, "background": False, "instructions": None, "max_output_tokens": None, "metadata": {},
    "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": True,
    "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
    "truncation": "disabled", "user": None,
}  # fmt: skip


def again(events):
    """Read, stored, and written again."""
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    encoder = wire.encoder()
    read = [*decoder.feed(data), *decoder.close()]
    noted = b"".join(map(encoder.feed, unfold(fold(read)))) + encoder.close()
    return [
        json.loads(line[6:]) for line in noted.decode().splitlines() if line.startswith("data: ")
    ]


def message_block(*blocks, **fields):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(blocks),
        **fields,
    }


def text_block(words, **fields):
    return {"type": "output_text", "text": words, "annotations": [], "logprobs": [], **fields}


def message_events(item, index=0):
    """The events of a message, each block in one delta."""
    at = {"item_id": item["id"], "output_index": index}
    out = [
        (
            "output_item.added",
            {"output_index": index, "item": {**item, "status": "in_progress", "content": []}},
        )
    ]
    for place, block in enumerate(item["content"]):
        here = {**at, "content_index": place}
        if block["type"] == "refusal":
            out += [
                ("content_part.added", {**here, "part": {**block, "refusal": ""}}),
                ("refusal.delta", {**here, "delta": block["refusal"]}),
                ("refusal.done", {**here, "refusal": block["refusal"]}),
                ("content_part.done", {**here, "part": block}),
            ]
            continue
        out += [
            ("content_part.added", {**here, "part": text_block("")}),
            ("output_text.delta", {**here, "delta": block["text"], "logprobs": []}),
            ("output_text.done", {**here, "text": block["text"], "logprobs": []}),
            *[("output_text.annotation.added", {**here, "annotation_index": number, "annotation": each}) for number, each in enumerate(block["annotations"])],
            ("content_part.done", {**here, "part": block}),
        ]  # fmt: skip
    return [*out, ("output_item.done", {"output_index": index, "item": item})]


DONE = {"status": "completed"}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
CUSTOM = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "call_id": "c",
    "name": "sh",
    "input": "ls",
    "status": "completed",
}
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "g",
    "status": "completed",
}
PDF_PART = DataPart(b"%PDF", "application/pdf", "a.pdf")
PNG_PART = DataPart(b"\x89PNG", "image/png")
WHOLE = {
    "id": "r",
    "object": "response",
    "model": "m",
    "status": "completed",
    "output": [message_block(text_block("a"))],
    "error": None,
}
COMPLETED_HEAD = {"id": "resp_1", "object": "response", "model": "m", "status": "completed"}


def odd_message(text, **fields):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **fields}


def everywhere(messages):
    """Every wire writes them, with a target and without, as a conversation and as an answer."""
    for name in wires.names("model"):
        for target in (None, Origin("openai"), Origin("other")):
            wires.get(name).dump_messages(messages, target=target)
    return write_all(unfold([message.replace(role=Role.MODEL) for message in messages]))


def write_all(events):
    wire.dump_response(events)
    encoder = wire.encoder()
    return b"".join(map(encoder.feed, events)) + encoder.close()
