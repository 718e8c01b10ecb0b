"""Answers to what a server asks during a call: by a person (`Answers`) or by a model (`ask_model`).

A question for a person ends the run (`AskUser`). When the answer is there, the tool is called
again, and `Answers` gives it to the same question. What the call needs to continue is in the
question's metadata, under `mcp`: digests of the questions so far, and the server's own state
(`round`) if its protocol has one.
"""

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
from dragoman.tools.schema_check import find_faults

__all__ = ["Answers", "VisitPage", "ask_model"]

_LONGEST = 4000
"""Most characters of a server's question that a person sees."""
_NOTES = "mcp"
"""Key in a question's metadata of what the call needs to continue."""

_STOPS = {FinishReason.length: "maxTokens", FinishReason.stop: "endTurn"}


class VisitPage(AskUser):
    """A server asks a person to visit a page. The answer is whether the person agrees."""

    reason: Reason = "auth"

    def __init__(self, url: str, message: str, server: str, notes: JsonMap | None = None) -> None:
        """Creates the exception that asks the user to visit a page. `url`: the page. `message`: the
        reason. `server`: the MCP server's name.

        Raises:
            ToolError: the URL is not a web page.
        """
        if urlsplit(url).scheme not in ("https", "http"):
            raise ToolError(
                f"{server} asks a person to visit an address that is not a web page, so nobody was asked"
            )
        metadata: Json = {"url": url, "server": server}
        if notes:
            metadata[_NOTES] = notes
        super().__init__(message[:_LONGEST], {"type": "boolean"}, metadata=metadata)


class Answers:
    """The answers that a call received when it ran before: objects for forms, booleans for pages.

    A tool that waited runs again. It continues at the server's state if there is one, else the
    server starts from the beginning and asks again. Each answer goes only to the question that the
    person read.
    """

    def __init__(self, server: str, context: ToolContext[Any]) -> None:
        """Starts with the answers to MCP questions that the run was resumed with. `server`: the MCP
        server's name."""
        notes = if_object(context.record.question_metadata.get(_NOTES))
        questions = [str(digest) for digest in if_list(notes.get("questions"))]
        self._server = server
        # The context has the answers of all runs of this call; the last ones are to these
        # questions. A slice of minus zero would be all of them.
        answers = context.answers[-len(questions) :] if questions else ()
        self._answers = list(zip(questions, answers, strict=False))
        self._unused = list(self._answers)
        self.round = if_object(notes.get("round")) or None
        """The server's question and state before the call continues; `None` if there is none, or
        if the server asks by requests of its own."""

    def start_again(self) -> None:
        """Allows all answers to be used again, since the server starts from the beginning."""
        self.round, self._unused = None, list(self._answers)

    def take_answer(self, question: types.ElicitRequestParams) -> types.ElicitResult:
        """Returns the user's answer to a question of an MCP server. Each answer is used once.

        Raises:
            AskUser: nobody has answered it yet.
            ToolError: the answer does not match the schema.
        """
        digest = _digest_question(question)
        entry = next((entry for entry in self._unused if entry[0] == digest), None)
        if entry is None:
            raise self._make_question(question, digest)
        self._unused.remove(entry)
        value = entry[1]
        if isinstance(question, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept" if value is True else "decline")
        if wrong := find_faults({"type": "object", **question.requested_schema}, value):
            raise ToolError(
                f"the answer does not match what {self._server} asks: {'; '.join(wrong)}"
            )
        return types.ElicitResult(action="accept", content=cast("Json", value))

    def _make_question(self, question: types.ElicitRequestParams, digest: str) -> AskUser:
        """Returns the MCP question that ends the run, with what the call needs to continue."""
        notes: Json = {"questions": [*(earlier for earlier, _ in self._answers), digest]}
        if self.round:
            notes["round"] = self.round
        if isinstance(question, types.ElicitRequestURLParams):
            return VisitPage(question.url, question.message, self._server, notes)
        metadata = {"server": self._server, _NOTES: notes}
        return AskUser(question.message[:_LONGEST], question.requested_schema, metadata=metadata)


def _digest_question(question: types.ElicitRequestParams) -> str:
    """Returns a digest of what a person reads of an MCP server's question, so that no other
    question gets its answer."""
    if isinstance(question, types.ElicitRequestURLParams):
        content: object = question.url
    else:
        content = question.requested_schema
    text = msgspec.json.encode((question.message, content), order="deterministic")
    return sha256(text).hexdigest()


async def ask_model(
    options: Options, params: types.CreateMessageRequestParams, context: ToolContext[Any]
) -> types.CreateMessageResult | types.ErrorData:
    """Returns a model's answer to an MCP server's request (sampling).

    Raises:
        AskUser: the agent that answers waits for somebody.
        ToolError: the request has content that no model accepts.
    """
    policy = options.sampling
    if policy is None:
        return types.ErrorData(code=types.INVALID_REQUEST, message="this client offers no model")
    if params.tools or params.tool_choice:
        return types.ErrorData(
            code=types.INVALID_PARAMS, message="this client's model takes no tools"
        )
    request = _read_request(params)
    if callable(policy):
        reply: Any = policy(request)
        if inspect.isawaitable(reply):
            reply = await reply
        message = Message.model(reply) if isinstance(reply, str) else cast("Message", reply)
    else:
        message = await _ask_agent(policy, request, context)
    return _make_result(message)


async def _ask_agent(policy: Any, request: ModelRequest, context: ToolContext[Any]) -> Message:
    """Returns for an MCP server the answer of an agent or a model string, as a part of the run that
    called the tool."""
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
    """Returns an MCP server's request as a `ModelRequest`."""
    messages = [Message.system(params.system_prompt)] if params.system_prompt else []
    for message in params.messages:
        parts = load_parts(message.content_as_list)
        messages.append(Message.user(*parts) if message.role == "user" else Message.model(*parts))
    # The server may only wish for a model; which one answers is up to `sampling=`.
    hints = params.model_preferences.hints if params.model_preferences else None
    wished = next((hint.name for hint in hints or () if hint.name), "")
    settings = Settings(
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        stop=tuple(params.stop_sequences or ()) or None,
    )
    return ModelRequest(wished, tuple(messages), settings=settings)


def _make_result(message: Message) -> types.CreateMessageResult:
    """Returns a model's answer in MCP's form: its text, or else its first image."""
    image = next(
        (p for p in message.parts if isinstance(p, DataPart) and p.mime_type.startswith("image/")),
        None,
    )
    if message.text or image is None:
        content: types.SamplingContent = types.TextContent(text=message.text)
    else:
        content = types.ImageContent(data=b64encode(image.data).decode(), mime_type=image.mime_type)
    model = None
    if (origin := message.origin) is not None:
        model = origin.served_model or origin.model
    # A function may return a message without a reason: it has ended as it should.
    stop = _STOPS.get(message.finish_reason or FinishReason.stop)
    return types.CreateMessageResult(
        role="assistant", content=content, model=model or "unknown", stop_reason=stop
    )
