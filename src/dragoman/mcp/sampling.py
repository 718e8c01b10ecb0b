"""A server asks for a model: `sampling/createMessage`, answered by what the caller has chosen for it."""

from __future__ import annotations

import inspect
from base64 import b64encode
from typing import Any, cast

from mcp import types

from dragoman.mcp.content import parts_of
from dragoman.mcp.options import Options
from dragoman.message import DataPart, FinishReason, Message, Role
from dragoman.request import ModelRequest, Settings
from dragoman.tools import ToolContext

__all__ = ["sample"]

_STOPS = {FinishReason.length: "maxTokens", FinishReason.stop: "endTurn"}


async def sample(
    options: Options, params: types.CreateMessageRequestParams, context: ToolContext[Any]
) -> types.CreateMessageResult | types.ErrorData:
    """The model's answer, as the server wants it.

    Raises:
        AskUser: an agent that answers waits for somebody.
        ToolError: it asks for what cannot be sent to a model.
    """
    policy = options.sampling
    if policy is None:
        return types.ErrorData(code=types.INVALID_REQUEST, message="no model is to be had here")
    if params.tools or params.tool_choice:
        return types.ErrorData(code=types.INVALID_PARAMS, message="the model here takes no tools")
    request = _request(params)
    if callable(policy):
        given: Any = policy(request)
        given = await given if inspect.isawaitable(given) else given
        message = Message.model(given) if isinstance(given, str) else cast("Message", given)
    else:
        message = await _from_agent(policy, request, context)
    return _result(message)


async def _from_agent(policy: Any, request: ModelRequest, context: ToolContext[Any]) -> Message:
    """A run of the agent's, as a part of the run that called the tool."""
    from dragoman.agent import Agent

    how: dict[str, Any] = {"history": request.messages, "settings": request.settings}
    if isinstance(policy, str):
        async with Agent(policy) as agent:
            result = await context.send(agent, None, **how)
    else:
        result = await context.send(policy, None, **how)
    return next(
        (one for one in reversed(result.messages) if one.role is Role.MODEL), Message.model()
    )


def _request(params: types.CreateMessageRequestParams) -> ModelRequest:
    messages = [Message.system(params.system_prompt)] if params.system_prompt else []
    for message in params.messages:
        parts = parts_of(message.content_as_list)
        messages.append(Message.user(*parts) if message.role == "user" else Message.model(*parts))
    hints = params.model_preferences.hints if params.model_preferences else None
    wished = next((hint.name for hint in hints or () if hint.name), "")
    settings = Settings(
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        stop=tuple(params.stop_sequences or ()) or None,
    )
    return ModelRequest(wished, tuple(messages), settings=settings)


def _result(message: Message) -> types.CreateMessageResult:
    image = next(
        (p for p in message.parts if isinstance(p, DataPart) and p.mime_type.startswith("image/")),
        None,
    )
    if message.text or image is None:
        content: types.SamplingContent = types.TextContent(text=message.text)
    else:
        content = types.ImageContent(data=b64encode(image.data).decode(), mime_type=image.mime_type)
    origin = message.origin
    model = (origin.served_model or origin.model) if origin is not None else None
    stop = _STOPS.get(message.finish_reason) if message.finish_reason is not None else "endTurn"
    return types.CreateMessageResult(
        role="assistant", content=content, model=model or "unknown", stop_reason=stop
    )
