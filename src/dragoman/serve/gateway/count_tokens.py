"""Counts the tokens of a client's request as the model that would answer it does."""

from __future__ import annotations

from dragoman.errors import DragomanError
from dragoman.logs import logger
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.model.tokens import TokenCount, request_tokens
from dragoman.request import ModelRequest
from dragoman.serve.core.call import Call
from dragoman.serve.gateway.fit_request import ClientCopy, Fitting

__all__ = ["count_tokens"]

_LOG = logger("serve.gateway")


async def count_tokens(
    model: ChatModel, call: Call, request: ModelRequest, recalled: tuple[Message, ...]
) -> TokenCount:
    """Returns how many tokens a client's request has for a model: as its provider counts them, else
    an estimate. Coding agents shorten their conversations by this number, so a provider that fails
    is no reason to give none.

    Args:
        model: the one that would answer.
        call: the client's call.
        request: what it asks.
        recalled: its conversation, with the seals opened.
    """
    asked = request.replace(
        model=model.string, messages=recalled, wire=call.wire.name, stream=False, retries=0
    )
    copy = ClientCopy(asked, call.body, is_exact=recalled is request.messages)
    destination = model.target(asked)
    try:
        if destination is not None:
            asked = Fitting(asked, request.model, copy, recalled).fit(asked, destination, [])
        tokens = await model.count_tokens(asked)
    except DragomanError as error:
        _LOG.warning("the tokens for %s are estimated: %s", model.string, error)
        tokens = None
    if tokens is None:
        return TokenCount(request_tokens(request), is_estimate=True)
    return TokenCount(tokens)
