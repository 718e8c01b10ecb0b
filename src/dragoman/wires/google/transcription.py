"""Transcripts of Gemini, which has no endpoint for them: a chat hears the recording and is asked for
its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.errors import InvalidRequestError
from dragoman.media_request import TranscriptionRequest
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.google.decode import Decoder
from dragoman.wires.google.decode import decoder as chat_decoder
from dragoman.wires.google.request import dump_http as dump_chat

__all__ = ["decoder", "dump_http"]

_TASK = "Transcribe this recording word for word. Answer with the transcript and nothing else."


def dump_http(request: TranscriptionRequest, *, quirks: Any = None) -> HttpRequest:
    """Writes path, headers and body of a request.

    Raises:
        InvalidRequestError: it asks for times, which a chat does not tell reliably.
    """
    if request.timestamps:
        raise InvalidRequestError(
            "Gemini tells no times of a transcript; ask for the text alone"
        ).at(field="timestamps")
    lines = [_TASK]
    if request.language:
        lines.append(f"The language that is spoken is {request.language}.")
    if request.prompt:
        lines.append(f"These words may help: {request.prompt}")
    chat = ModelRequest(
        request.model,
        (Message.user(request.audio, "\n".join(lines)),),
        stream=request.stream,
        options=request.options,
    )
    return dump_chat(chat, quirks=quirks)


def decoder(
    request: TranscriptionRequest,
    *,
    media_type: str = "",
    origin: Origin | None = None,
    new_id: Callable[[], str] | None = None,
) -> Decoder:
    """Returns a decoder of the answer, which is that of a chat."""
    del request, media_type
    return chat_decoder(origin=origin, new_id=new_id)
