"""Mistral's chat API as a format of the Chat family."""

from __future__ import annotations

from dragoman.wires.chat import Chat
from dragoman.wires.mistral import content, encode, errors, messages, settings, tools, usage
from dragoman.wires.mistral.decode import Candidate, Decoder
from dragoman.wires.mistral.quirks import NAME, OWN, Quirks

__all__ = ["WIRE"]

WIRE = Chat(
    name=NAME,
    own=OWN,
    title="Mistral chat",
    id_prefix="",
    quirks=Quirks,
    thinking=(),
    empty="",
    no_ids=("null",),  # what the official clients write
    no_text={"content": ""},
    further=("model",),
    readers=content.BLOCKS,
    settings=settings.WAYS,
    counts=usage.COUNTS,
    finish=usage.FINISH,
    words=usage.WORDS,
    errors=errors.ERRORS,
    evidence=messages.EVIDENCE,
    layout=messages.LAYOUT,
    error_rules=errors.RULES,
    takes_empty=False,
    signed=False,
    bare_results=True,
    keeps_form=True,
    calls_have_names=True,
    usage_apart=False,
    outgoing=messages.outgoing,
    loaded=messages.loaded,
    usual_type=content.usual_type,
    write_block=content.write_block,
    sent_block=content.sent_block,
    dump_other=messages.dump_other,
    unsendable=messages.unsendable,
    load_tool=tools.load_tool,
    error_of=errors.error_of,
    error_body=errors.error_body,
    whole_response=encode.dump_response,
    call_votes=messages.call_votes,
    decoder_type=Decoder,
    candidate_type=Candidate,
    encoder_type=encode.Encoder,
)
"""The wire."""
