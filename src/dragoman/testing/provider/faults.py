"""Checks of what happens when a provider fails: refusals, cut and spoilt answers, cancellation,
several event loops."""

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
from dragoman.testing.check import Skipped, demand, same
from dragoman.testing.provider.bench import ProviderBench, Reply, provider_check, says
from dragoman.testing.scripted_answer import Answer
from dragoman.testing.wire.bench import text_values
from dragoman.transport.retry import Retry

__all__ = [
    "cancelled_answers_are_closed",
    "cut_answers_keep_what_came",
    "errors_within_answers_are_raised",
    "event_loops_may_differ",
    "refusals_have_their_class",
    "refusals_without_a_body_have_their_class",
    "retries_lead_to_the_answer",
    "spoilt_answers_are_errors",
    "strange_answers_are_errors",
    "unknown_models_are_refused",
    "waits_are_told",
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
    """Each refusal (401, 403, 404, 400, too long, 429, overloaded, 500) is raised as the error of
    its class, with the provider's name, the status, the body and what the provider said."""
    for error_class in _REFUSALS:
        error = await _failure(bench, error_class("The kit says no."))
        same(type(error).__name__, error_class.__name__, "the class of the error")
        same(error.provider, bench.name, "`provider` of the error")
        demand(
            error.status is not None and error.status >= 400,
            f"`status` of the error is {error.status}",
        )
        demand(error.body, "`body` of the error is empty")
        demand(
            "The kit says no." in str(error),
            f"the error does not say what the provider said: {error}",
        )


@provider_check(Capability.chat, look="the wire's load_error: the table of statuses")
async def refusals_without_a_body_have_their_class(bench: ProviderBench) -> None:
    """A refusal whose body says nothing, such as a proxy's page, is told by its status."""
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
            error = await _failure(bench, Answer(status=status, body=body))
            same(
                type(error).__name__,
                error_class.__name__,
                f"the class of the error with status {status} and the body {body[:9]!r}",
            )
            same(error.status, status, "`status` of the error")


@provider_check(Capability.chat, look="the wire's load_error: retry_after")
async def waits_are_told(bench: ProviderBench) -> None:
    """A `RateLimitError` has the seconds to wait, where the provider tells them."""
    error = await _failure(bench, RateLimitError("Too fast.", retry_after=7))
    same(getattr(error, "retry_after", None), 7.0, "`retry_after` of the error")


@provider_check(Capability.chat, look="transport.Retry, and load_error")
async def retries_lead_to_the_answer(bench: ProviderBench) -> None:
    """With `Retry` around the transport, refusals that pass (429, no capacity) lead to the answer,
    after the wait that the provider asks for, and the request is the same each time."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    replies: list[Reply] = [
        RateLimitError("Too fast.", retry_after=7),
        OverloadedError("Full."),
        says("Hello."),
    ]
    async with bench.agent(*replies, wrap=lambda server: Retry(server, sleep=sleep)) as agent:
        result = await agent.send("Hi.")
    same(result.output, "Hello.", "the answer")
    same(waits[:1], [7.0], "the first wait")
    requests = bench.server.sent
    same(len(requests), 3, "the number of requests")
    demand(requests[0] == requests[1] == requests[2], "the requests are not the same each time")


@provider_check(Capability.chat, look="the wire's decoder.close")
async def cut_answers_keep_what_came(bench: ProviderBench) -> None:
    """A connection that breaks in the middle of an answer is a `StreamCutError` with all that had
    come; the pieces were shown."""
    text = "one two three four five six seven eight nine ten " * 4
    shown: list[str] = []
    async with bench.agent(Answer(content=says(text), cut=True)) as agent:
        try:
            async for chunk in agent.send_stream("Count."):
                shown.append(chunk.output)
        except StreamCutError as error:
            demand(error.partial is not None, "`partial` of the error is None")
            partial = error.partial.text if error.partial else ""
            demand(partial and text.startswith(partial), f"`partial` of the error says {partial!r}")
            same("".join(shown), partial, "what was shown before the error")
            same(error.provider, bench.name, "`provider` of the error")
            same(bench.server.open, 0, "the number of answers left open")
            return
    demand(False, "an answer that was cut is taken for a whole one")


@provider_check(Capability.chat, look="the wire's decoder: what is no JSON")
async def spoilt_answers_are_errors(bench: ProviderBench) -> None:
    """Bytes in the middle of an answer that are no event of the format are an error that says so,
    after what came before."""
    text = "one two three four five six seven eight nine ten " * 4
    for wrong in (b"\n\ndata: {]\n\n", b"\n{]\n{]\n"):
        error = await _failure(bench, Answer(content=says(text), wrong=wrong * 2))
        demand(isinstance(error, DecodeError | StreamCutError), f"the error is {error!r}")
        partial = error.partial.text if error.partial else ""
        demand(partial and text.startswith(partial[:4]), f"`partial` of the error says {partial!r}")


@provider_check(Capability.chat, look="the wire's decoder: a body that is no answer")
async def strange_answers_are_errors(bench: ProviderBench) -> None:
    """A status of success with a page, nothing or other JSON in place of an answer is an error, and
    no empty answer."""
    for body in (_PAGE, b"", b"[]", b"null", b"{}"):
        error = await _failure(bench, Answer(body=body))
        demand(
            isinstance(error, DecodeError | ProviderError),
            f"the body {body!r} is the error {error!r}",
        )


@provider_check(Capability.chat, look="the wire's decoder: errors in a stream")
async def errors_within_answers_are_raised(bench: ProviderBench) -> None:
    """An error that comes in place of an answer though the status says success is raised as what it
    is."""
    body = bench.wire.dump_error(OverloadedError("No capacity.")).body
    error = await _failure(bench, Answer(body=msgspec.json.encode(body)))
    same(type(error).__name__, "OverloadedError", "the class of the error")
    demand("No capacity." in str(error), f"the error does not say what the provider said: {error}")
    same(error.provider, bench.name, "`provider` of the error")


@provider_check(Capability.chat, look="nothing of a provider's: the transport")
async def cancelled_answers_are_closed(bench: ProviderBench) -> None:
    """A run that is left, cancelled or timed out while the model is silent ends at once, and its
    connection is closed."""
    text = "one two three four five six seven eight nine ten " * 4
    silent = Answer(content=says(text), gate=anyio.Event())
    prompt = Message.user("Count.").replace(id="prompt")
    async with bench.agent(silent) as agent:
        with anyio.move_on_after(0.05) as scope:
            await agent.send("Count.")
        demand(scope.cancelled_caught, "a silent answer ended by itself")
        same(bench.server.open, 0, "the number of answers left open after a timeout")
        async with agent.run(prompt) as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.message_id != prompt.id:
                    break
        same(bench.server.open, 0, "the number of answers left open after a run was left")
        async with agent.run(prompt) as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.message_id != prompt.id:
                    run.cancel()
            result = await run.result()
        same(result.finish_reason, FinishReason.cancelled, "the finish reason")
        demand(
            result.output and text.startswith(result.output),
            f"what there is of a cancelled run: {result.output!r}",
        )
        same(bench.server.open, 0, "the number of answers left open after a cancellation")


@provider_check(Capability.chat, look="state that is bound to an event loop", live=True)
def event_loops_may_differ(bench: ProviderBench) -> None:
    """One agent answers in one event loop after the other, in another thread's, and
    synchronously."""
    agent = bench.agent(says("Hello."))
    outputs = [asyncio.run(_output(agent)), asyncio.run(_output(agent))]
    with ThreadPoolExecutor(1) as thread:
        outputs.append(thread.submit(lambda: asyncio.run(_output(agent))).result())
    outputs.append(agent.send_sync("Say hello.").output)
    asyncio.run(agent.close())
    same(len(outputs), 4, "the number of answers")
    demand(all(outputs), f"the answers are {outputs}")


@provider_check(Capability.chat, look=f"{_LOOK}: 401", live=True)
async def wrong_keys_are_refused(bench: ProviderBench) -> None:
    """A wrong key is an `AuthenticationError` that names the provider, and says what the provider
    said."""
    if not (bench.provider.key_names and bench.provider.key_required):
        raise Skipped(f"{bench.provider.display_name} needs no key")
    error = await _failure(bench, AuthenticationError("Wrong key."), api_key="kit-wrong-key")
    demand(isinstance(error, AuthenticationError), f"a wrong key is {error!r}")
    same(error.provider, bench.name, "`provider` of the error")
    _names_the_cause(bench, error)


@provider_check(Capability.chat, look=f"{_LOOK}: 404", live=True)
async def unknown_models_are_refused(bench: ProviderBench) -> None:
    """A model that there is not is a `ModelNotFoundError` that says what the provider said; the
    name that was asked for arrived."""
    error = await _failure(
        bench, ModelNotFoundError("No such model."), must=bench.judge, model="kit-no-such-model"
    )
    bench.judge(isinstance(error, ModelNotFoundError), f"an unknown model is {error!r}")
    if bench.scripted:
        same(bench.received().model, "kit-no-such-model", "the model that was asked for")
    _names_the_cause(bench, error)


def _names_the_cause(bench: ProviderBench, error: DragomanError) -> None:
    """Demands that at least one text in the body of an error is found again in its message, by
    three words in a row."""
    texts = [_words(text) for text in _texts(error.body or b"") if " " in text.strip()]
    runs = [words[at : at + 3] for words in texts for at in range(max(1, len(words) - 2)) if words]
    message = _words(error.message)
    bench.judge(
        not runs
        or any(run == message[at : at + len(run)] for run in runs for at in range(len(message))),
        f"the error says nothing of what the provider said: {error.message!r}; the body is {error.body!r}",
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _texts(body: bytes) -> list[str]:
    """Returns all texts in the JSON of a body; if it is no JSON, the body without its marks."""
    try:
        return text_values(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError):
        return [re.sub(r"<[^>]*>", " ", body.decode(errors="replace"))]


async def _failure(
    bench: ProviderBench, reply: Reply, must: Callable[[object, str], None] = demand, **options: Any
) -> DragomanError:
    """Returns the error of a request that gets this reply; it is the last event, and is raised.
    `must`: what an answer fails by."""
    async with bench.agent(reply, **options) as agent:
        async with agent.run("Hi.") as run:
            events = [event async for event in run]
        must(
            isinstance(events[-1], RunError),
            f"the last event of a run that failed is {events[-1]!r}",
        )
        same(bench.server.open, 0, "the number of answers left open")
        try:
            result = await agent.send("Hi.")
        except DragomanError as error:
            return error
    must(False, f"{reply!r} is no error, but the answer {result.output!r}")
    raise AssertionError


async def _output(agent: Any) -> str:
    return (await agent.send("Say hello.")).output
