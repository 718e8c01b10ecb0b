"""Chat Completions as a format of the Chat family."""

from __future__ import annotations

from dragoman.wires.chat import Chat
from dragoman.wires.openai_chat import content, errors, messages, settings, tools, usage
from dragoman.wires.openai_chat.decode import Candidate, Decoder
from dragoman.wires.openai_chat.encode import Encoder
from dragoman.wires.openai_chat.quirks import NAME, OWN, Quirks

__all__ = ["WIRE"]

WIRE = Chat(
    name=NAME,
    own=OWN,
    quirks=Quirks,
    thinking=("reasoning_content", "reasoning"),
    details="reasoning_details",
    files_of="openai_responses",
    roles=messages.ROLES,
    result_roles=("tool", "function"),
    inputs={"function": "arguments", "custom": "input"},
    fields=messages.FIELDS,
    single=("audio", "function_call"),
    alone=("audio", "function_call", "refusal"),
    further=("functions",),
    streaming={"stream_options": {"include_usage": True}},
    readers=content.BLOCKS,
    settings=settings.WAYS,
    counts=usage.COUNTS,
    finish=usage.FINISH,
    words=usage.WORDS,
    evidence=messages.EVIDENCE,
    layout=messages.LAYOUT,
    error_rules=errors.RULES,
    outgoing=messages.outgoing,
    sent_block=content.sent_block,
    dump_piece=messages.dump_piece,
    unsendable=messages.unsendable,
    load_tools=tools.load_tools,
    dump_tools=tools.dump_tools,
    load_usage=usage.load_usage,
    error_info=errors.error_info,
    error_of=errors.error_of,
    call_votes=messages.call_votes,
    decoder_type=Decoder,
    candidate_type=Candidate,
    encoder_type=Encoder,
)
"""The wire."""
