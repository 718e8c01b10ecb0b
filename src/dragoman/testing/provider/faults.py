"""Checks of failures: refusals, cut and corrupt answers, cancellation, several event loops.

The scripted server refuses, cuts or corrupts its answer, or stops in the middle of it. `_get_error`
sends the prompt twice, as a run and by `send`, because a failure must be the last event of the
first and the exception of the second, and no response may stay open. Few checks are `live`, since
a real provider cannot be told to fail: only wrong keys, unknown models and several event loops
can be tried there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import msgspec

from dragoman import errors
from dragoman.capability import Capability
from dragoman.errors import (
    AuthenticationError,
    DecodeError,
    DragomanError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    StreamCutError,
)
from dragoman.event import PartDelta, RunError
from dragoman.message import FinishReason, Message
from dragoman.testing.check import Skipped, require, require_equal
from dragoman.testing.provider.bench import ProviderBench, Reply, make_reply, provider_check
from dragoman.testing.scripted_answer import Answer
from dragoman.testing.wire.bench import list_texts
from dragoman.transport.retry import Retry

__all__ = [
    "cancellation_closes_connections",
    "cut_answers_keep_what_came",
    "errors_in_answers_are_raised",
    "event_loops_may_differ",
    "refusals_have_their_class",
    "refusals_without_a_body_have_their_class",
    "retries_lead_to_the_answer",
    "corrupt_answers_are_errors",
    "unexpected_bodies_are_errors",
    "unknown_models_are_refused",
    "rate_limits_have_retry_after",
    "wrong_keys_are_refused",
]

_LOOK = "the wire's load_error and decoder"
_REFUSALS = (
    errors.AuthenticationError,
    errors.PermissionDeniedError,
    errors.ModelNotFoundError,
    errors.InvalidRequestError,
    errors.ContextLengthError,
    errors.RateLimitError,
    errors.OverloadedError,
    errors.ProviderError,
)
_PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@provider_check(Capability.chat, look=_LOOK)
async def refusals_have_their_class(bench: ProviderBench) -> None:
    """Each refusal (401, 403, 404, 400, context too long, 429, overloaded, 500) raises the error of
    its class, with the provider's name, the status, the body and the provider's message."""
    for error_class in _REFUSALS:
        error = await _get_error(bench, error_class("The kit says no."))
        require_equal(type(error).__name__, error_class.__name__, "the class of the error")
        require_equal(error.provider, bench.name, "`provider` of the error")
        require(
            error.status is not None and error.status >= 400,
            f"`status` of the error is {error.status}",
        )
        require(error.body, "`body` of the error is empty")
        require(
            "The kit says no." in str(error),
            f"the error does not say what the provider said: {error}",
        )


@provider_check(Capability.chat, look="the wire's load_error: the table of statuses")
async def refusals_without_a_body_have_their_class(bench: ProviderBench) -> None:
    """A refusal with an uninformative body, such as a proxy's page, is classified by its status."""
    kinds = {
        401: AuthenticationError,
        403: errors.PermissionDeniedError,
        429: RateLimitError,
        503: OverloadedError,
    }
    for status, error_class in {
        **kinds,
        529: OverloadedError,
        500: ProviderError,
        502: ProviderError,
    }.items():
        for body in (_PAGE, b""):
            error = await _get_error(bench, Answer(status=status, body=body))
            require_equal(
                type(error).__name__,
                error_class.__name__,
                f"the class of the error with status {status} and the body {body[:9]!r}",
            )
            require_equal(error.status, status, "`status` of the error")


@provider_check(Capability.chat, look="the wire's load_error: retry_after")
async def rate_limits_have_retry_after(bench: ProviderBench) -> None:
    """`RateLimitError` has the seconds to wait if the provider gives them."""
    error = await _get_error(bench, RateLimitError("Too fast.", retry_after=7))
    require_equal(getattr(error, "retry_after", None), 7.0, "`retry_after` of the error")


@provider_check(Capability.chat, look="transport.Retry, and load_error")
async def retries_lead_to_the_answer(bench: ProviderBench) -> None:
    """With `Retry` around the transport, temporary refusals (429, overloaded) lead to the answer
    after the wait that the provider asks for. All attempts send the same request."""
    # The check does not really wait: it notes how long `Retry` would.
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    replies: list[Reply] = [
        RateLimitError("Too fast.", retry_after=7),
        OverloadedError("Full."),
        make_reply("Hello."),
    ]
    async with bench.agent(*replies, wrap=lambda server: Retry(server, sleep=sleep)) as agent:
        result = await agent.send("Hi.")
    require_equal(result.output, "Hello.", "the answer")
    require_equal(waits[:1], [7.0], "the first wait")
    requests = bench.server.sent
    require_equal(len(requests), 3, "the number of requests")
    require(requests[0] == requests[1] == requests[2], "the requests are not the same each time")


@provider_check(Capability.chat, look="the wire's decoder.close")
async def cut_answers_keep_what_came(bench: ProviderBench) -> None:
    """A connection that breaks during an answer raises `StreamCutError` with everything that
    arrived. The caller has seen those chunks."""
    text = "one two three four five six seven eight nine ten " * 4
    shown: list[str] = []
    async with bench.agent(Answer(content=make_reply(text), cut=True)) as agent:
        try:
            async for chunk in agent.send_stream("Count."):
                shown.append(chunk.output)
        except StreamCutError as error:
            require(error.partial is not None, "`partial` of the error is None")
            partial = error.partial.text if error.partial else ""
            require(
                partial and text.startswith(partial), f"`partial` of the error says {partial!r}"
            )
            require_equal("".join(shown), partial, "what was shown before the error")
            require_equal(error.provider, bench.name, "`provider` of the error")
            require_equal(bench.server.open, 0, "the number of answers left open")
            return
    require(False, "an answer that was cut is taken for a whole one")


@provider_check(Capability.chat, look="the wire's decoder: what is no JSON")
async def corrupt_answers_are_errors(bench: ProviderBench) -> None:
    """Corrupt bytes in the middle of an answer raise an error, after everything that came before
    them."""
    text = "one two three four five six seven eight nine ten " * 4
    for garbage in (b"\n\ndata: {]\n\n", b"\n{]\n{]\n"):
        error = await _get_error(bench, Answer(content=make_reply(text), garbage=garbage * 2))
        require(isinstance(error, DecodeError | StreamCutError), f"the error is {error!r}")
        partial = error.partial.text if error.partial else ""
        require(
            partial and text.startswith(partial[:4]), f"`partial` of the error says {partial!r}"
        )


@provider_check(Capability.chat, look="the wire's decoder: a body that is no answer")
async def unexpected_bodies_are_errors(bench: ProviderBench) -> None:
    """A page, an empty body or other JSON with a successful status raises an error and is not an
    empty answer."""
    for body in (_PAGE, b"", b"[]", b"null", b"{}"):
        error = await _get_error(bench, Answer(body=body))
        require(
            isinstance(error, DecodeError | ProviderError),
            f"the body {body!r} is the error {error!r}",
        )


@provider_check(Capability.chat, look="the wire's decoder: errors in a stream")
async def errors_in_answers_are_raised(bench: ProviderBench) -> None:
    """An error in the body of a successful status raises the error's own class."""
    body = bench.wire.dump_error(OverloadedError("No capacity.")).body
    error = await _get_error(bench, Answer(body=msgspec.json.encode(body)))
    require_equal(type(error).__name__, "OverloadedError", "the class of the error")
    require("No capacity." in str(error), f"the error does not say what the provider said: {error}")
    require_equal(error.provider, bench.name, "`provider` of the error")


@provider_check(Capability.chat, look="nothing of a provider's: the transport")
async def cancellation_closes_connections(bench: ProviderBench) -> None:
    """A run that is left, cancelled or timed out while the model is silent ends at once, and its
    connection is closed."""
    text = "one two three four five six seven eight nine ten " * 4
    # The gate never opens: half of the answer comes, then nothing.
    silent = Answer(content=make_reply(text), gate=anyio.Event())
    prompt = Message.user("Count.").replace(id="prompt")
    async with bench.agent(silent) as agent:
        with anyio.move_on_after(0.05) as scope:
            await agent.send("Count.")
        require(scope.cancelled_caught, "a silent answer ended by itself")
        require_equal(bench.server.open, 0, "the number of answers left open after a timeout")
        async with agent.run(prompt) as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.message_id != prompt.id:
                    break
        require_equal(bench.server.open, 0, "the number of answers left open after a run was left")
        async with agent.run(prompt) as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.message_id != prompt.id:
                    run.cancel()
            result = await run.result()
        require_equal(result.finish_reason, FinishReason.cancelled, "the finish reason")
        require(
            result.output and text.startswith(result.output),
            f"what there is of a cancelled run: {result.output!r}",
        )
        require_equal(bench.server.open, 0, "the number of answers left open after a cancellation")


@provider_check(Capability.chat, look="state that is bound to an event loop", live=True)
def event_loops_may_differ(bench: ProviderBench) -> None:
    """One agent answers in one event loop after another, in another thread's loop, and
    synchronously."""
    agent = bench.agent(make_reply("Hello."))
    outputs = [asyncio.run(_get_output(agent)), asyncio.run(_get_output(agent))]
    # A connection pool of the first loop would fail in another one.
    with ThreadPoolExecutor(1) as thread:
        outputs.append(thread.submit(lambda: asyncio.run(_get_output(agent))).result())
    outputs.append(agent.send_sync("Say hello.").output)
    asyncio.run(agent.close())
    require_equal(len(outputs), 4, "the number of answers")
    require(all(outputs), f"the answers are {outputs}")


@provider_check(Capability.chat, look=f"{_LOOK}: 401", live=True)
async def wrong_keys_are_refused(bench: ProviderBench) -> None:
    """A wrong key raises `AuthenticationError` with the provider's name and message."""
    if not (bench.provider.key_names and bench.provider.key_required):
        raise Skipped(f"{bench.provider.display_name} needs no key")
    error = await _get_error(bench, AuthenticationError("Wrong key."), api_key="kit-wrong-key")
    require(isinstance(error, AuthenticationError), f"a wrong key is {error!r}")
    require_equal(error.provider, bench.name, "`provider` of the error")
    _require_cause(bench, error)


@provider_check(Capability.chat, look=f"{_LOOK}: 404", live=True)
async def unknown_models_are_refused(bench: ProviderBench) -> None:
    """An unknown model raises `ModelNotFoundError` with the provider's message. The requested name
    arrives."""
    error = await _get_error(
        bench,
        ModelNotFoundError("No such model."),
        must=bench.require_of_model,
        model="kit-no-such-model",
    )
    bench.require_of_model(isinstance(error, ModelNotFoundError), f"an unknown model is {error!r}")
    if bench.scripted:
        require_equal(
            bench.get_request().model, "kit-no-such-model", "the model that was asked for"
        )
    _require_cause(bench, error)


def _require_cause(bench: ProviderBench, error: DragomanError) -> None:
    """Requires that the error's message repeats at least one text of its body, by three words in a
    row."""
    texts = [
        _split_words(text) for text in _list_body_texts(error.body or b"") if " " in text.strip()
    ]
    runs = [words[at : at + 3] for words in texts for at in range(max(1, len(words) - 2)) if words]
    message = _split_words(error.message)
    bench.require_of_model(
        not runs
        or any(run == message[at : at + len(run)] for run in runs for at in range(len(message))),
        f"the error says nothing of what the provider said: {error.message!r}; the body is {error.body!r}",
    )


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _list_body_texts(body: bytes) -> list[str]:
    """Returns all texts in a JSON body, or the body without markup if it is not JSON."""
    try:
        return list_texts(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError):
        return [re.sub(r"<[^>]*>", " ", body.decode(errors="replace"))]


async def _get_error(
    bench: ProviderBench,
    reply: Reply,
    must: Callable[[object, str], None] = require,
    **options: Any,
) -> DragomanError:
    """Returns the error that a request with this reply raises. It must also be the last event of a
    run.

    `must`: checks that the reply is an error; `ProviderBench.require_of_model` where a real model
    may not fail.
    """
    async with bench.agent(reply, **options) as agent:
        async with agent.run("Hi.") as run:
            events = [event async for event in run]
        must(
            isinstance(events[-1], RunError),
            f"the last event of a run that failed is {events[-1]!r}",
        )
        require_equal(bench.server.open, 0, "the number of answers left open")
        try:
            result = await agent.send("Hi.")
        except DragomanError as error:
            return error
    must(False, f"{reply!r} is no error, but the answer {result.output!r}")
    # Unreachable for a scripted server: `must` has failed the check.
    raise AssertionError


async def _get_output(agent: Any) -> str:
    return (await agent.send("Say hello.")).output
