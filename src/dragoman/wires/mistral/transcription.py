"""Mistral's endpoint for transcripts. It has one form of answer, and takes the URL of a recording."""

from __future__ import annotations

from dragoman.wires.chat.transcription import Transcription
from dragoman.wires.chat.transcription_answer import TranscriptEvents
from dragoman.wires.mistral.dialect import WIRE

__all__ = ["decoder", "dump_http", "dump_response", "encoder", "load_request"]

_WIRE = Transcription(
    WIRE,
    events=TranscriptEvents(
        delta="transcription.text.delta",
        text="text",
        done="transcription.done",
        segment="transcription.segment",
        language="transcription.language",
        counts=("prompt_tokens", "completion_tokens", "total_tokens"),
    ),
    formats=False,
    link="file_url",
)
load_request, dump_http, decoder = _WIRE.load_request, _WIRE.dump_http, _WIRE.decoder
dump_response, encoder = _WIRE.dump_response, _WIRE.encoder
