"""OpenAI's endpoint for speech. Many servers speak it."""

from __future__ import annotations

from dragoman.wires.chat.speech import Speech
from dragoman.wires.openai_chat.dialect import WIRE

__all__ = ["decoder", "dump_http", "dump_response", "encoder", "load_request"]

_WIRE = Speech(WIRE)
load_request, dump_http, decoder = _WIRE.load_request, _WIRE.dump_http, _WIRE.decoder
dump_response, encoder = _WIRE.dump_response, _WIRE.encoder
