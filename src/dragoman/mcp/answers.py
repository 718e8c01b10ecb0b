"""What a server asks while it works on a call: a person, by a question that ends the run and whose
answer comes when the call is made again (`Answers`); or a model (`sample`)."""

from __future__ import annotations

import inspect
from base64 import b64encode
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from mcp import types

from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import ToolError
from dragoman.interrupt import Reason
from dragoman.json_bytes import Json, JsonMap
from dragoman.mcp.content import load_parts
from dragoman.mcp.options import Options
from dragoman.message import DataPart, FinishReason, Message, Role
from dragoman.request import ModelRequest, Settings
from dragoman.tools import AskUser, ToolContext
from dragoman.tools.check import find_faults

__all__ = ["Answers", "VisitPage", "ask_model"]

_LONGEST = 4000
"""Characters of a server's question that a person is shown."""
_NOTES = "mcp"
"""Where in a question's metadata stands what the call must know to go on."""

_STOPS = {FinishReason.length: "maxTokens", FinishReason.stop: "endTurn"}


class VisitPage(AskUser):
    """A server wants somebody to go to a page. The answer is whether he does."""

    reason: Reason = "auth"

    def __init__(self, url: str, message: str, server: str, notes: JsonMap | None = None) -> None:
        """`url`: the page. `message`: why. `server`: who wants it.

        Raises:
            ToolError: it is no page of the web.
        """
        if urlsplit(url).scheme not in ("https", "http"):
            raise ToolError(
                f"{server} wants somebody to go to an address that is no web page; nobody was asked"
            )
        metadata = {"url": url, "server": server, **({_NOTES: notes} if notes else {})}
        super().__init__(message[:_LONGEST], {"type": "boolean"}, metadata=metadata)


class Answers:
    """The answers that a call got when it was run before: objects to forms, booleans to pages.

    A tool that waited is run again. Where the server said with what the call goes on, it goes on
    there; else the server works from the start, and asks again. An answer is given to the very
    question that the person has read, and to no other.
    """

    def __init__(self, server: str, context: ToolContext[Any]) -> None:
        notes = if_object(context.record.question_metadata.get(_NOTES))
        questions = [str(digest) for digest in if_list(notes.get("questions"))]
        self._server = server
        self._answers = list(
            zip(questions, context.answers[-len(questions) :] if questions else (), strict=False)
        )
        self._unused = list(self._answers)
        self.round = if_object(notes.get("round")) or None
        """What the server wants to know before the call goes on, as it said so; `None`: nothing, or
        it asks by itself."""

    def start_again(self) -> None:
        """Lets all answers be given again: the server works from the start."""
        self.round, self._unused = None, list(self._answers)

    def take_answer(self, question: types.ElicitRequestParams) -> types.ElicitResult:
        """Returns the answer to a question, and gives it no second time.

        Raises:
            AskUser: nobody has answered it yet.
            ToolError: an answer does not fit.
        """
        digest = _digest_question(question)
        entry_of_question = next((entry for entry in self._unused if entry[0] == digest), None)
        if entry_of_question is None:
            raise self._make_question(question, digest)
        self._unused.remove(entry_of_question)
        value = entry_of_question[1]
        if isinstance(question, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept" if value is True else "decline")
        if wrong := find_faults({"type": "object", **question.requested_schema}, value):
            raise ToolError(
                f"the answer is not fit for what {self._server} asks: {'; '.join(wrong)}"
            )
        return types.ElicitResult(action="accept", content=cast("Json", value))

    def _make_question(self, question: types.ElicitRequestParams, digest: str) -> AskUser:
        notes = {
            "questions": [*(known_digest for known_digest, _ in self._answers), digest],
            **({"round": self.round} if self.round else {}),
        }
        if isinstance(question, types.ElicitRequestURLParams):
            return VisitPage(question.url, question.message, self._server, notes)
        metadata = {"server": self._server, _NOTES: notes}
        return AskUser(question.message[:_LONGEST], question.requested_schema, metadata=metadata)


def _digest_question(question: types.ElicitRequestParams) -> str:
    """Returns a digest of what a person reads of a question, so that no answer is given to
    another one."""
    page = (
        question.url
        if isinstance(question, types.ElicitRequestURLParams)
        else question.requested_schema
    )
    return sha256(msgspec.json.encode((question.message, page), order="deterministic")).hexdigest()


async def ask_model(
    options: Options, params: types.CreateMessageRequestParams, context: ToolContext[Any]
) -> types.CreateMessageResult | types.ErrorData:
    """Returns the model's answer to a server's request for one.

    Raises:
        AskUser: an agent that answers waits for somebody.
        ToolError: it asks for what cannot be sent to a model.
    """
    policy = options.sampling
    if policy is None:
        return types.ErrorData(code=types.INVALID_REQUEST, message="no model is to be had here")
    if params.tools or params.tool_choice:
        return types.ErrorData(code=types.INVALID_PARAMS, message="the model here takes no tools")
    request = _read_request(params)
    if callable(policy):
        reply: Any = policy(request)
        reply = await reply if inspect.isawaitable(reply) else reply
        message = Message.model(reply) if isinstance(reply, str) else cast("Message", reply)
    else:
        message = await _ask_agent(policy, request, context)
    return _make_result(message)


async def _ask_agent(policy: Any, request: ModelRequest, context: ToolContext[Any]) -> Message:
    """Returns the answer of an agent, whose run is part of the run that called the tool."""
    from dragoman.agent import Agent

    options: Json = {"history": request.messages, "settings": request.settings}
    if isinstance(policy, str):
        async with Agent(policy) as agent:
            result = await context.send(agent, None, **options)
    else:
        result = await context.send(policy, None, **options)
    return next(
        (message for message in reversed(result.messages) if message.role is Role.MODEL),
        Message.model(),
    )


def _read_request(params: types.CreateMessageRequestParams) -> ModelRequest:
    messages = [Message.system(params.system_prompt)] if params.system_prompt else []
    for message in params.messages:
        parts = load_parts(message.content_as_list)
        messages.append(Message.user(*parts) if message.role == "user" else Message.model(*parts))
    hints = params.model_preferences.hints if params.model_preferences else None
    wished = next((hint.name for hint in hints or () if hint.name), "")
    settings = Settings(
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        stop=tuple(params.stop_sequences or ()) or None,
    )
    return ModelRequest(wished, tuple(messages), settings=settings)


def _make_result(message: Message) -> types.CreateMessageResult:
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
