"""`MediaEndpoint`: images, speech and transcripts of a provider, by its endpoints (issue N)."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from dragoman import DataPart, Message, Role, Usage, providers
from dragoman.capability import Capability
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    DecodeError,
    DragomanError,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    SettingsError,
    StreamCutError,
)
from dragoman.event import Custom, MessageFinished, RunError
from dragoman.media_request import ImageRequest
from dragoman.message import FinishReason
from dragoman.model.agent_models import Models
from dragoman.model.media_endpoint import MediaEndpoint
from dragoman.testing import ScriptedModel, ScriptedServer
from dragoman.transport import Retry
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from dragoman.wires import get

pytestmark = pytest.mark.anyio

PNG = DataPart(b"\x89PNG\r\n\x1a\n...", "image/png")
KEY: Any = {"api_key": "sk-very-secret-key", "environment": {}}
ABLE = [each for each in providers.REGISTRY.providers() if Capability.images in each.capabilities]


def model(name: str, answer: Any, name_of_model: str | None = "m") -> tuple[MediaEndpoint, Any]:
    provider = providers.get(name)
    if not isinstance(provider.base_url, str):
        provider = msgspec.structs.replace(provider, base_url="http://x/v1")
    server = ScriptedServer(
        get(provider.wire),
        lambda _: answer,
        base_url=str(provider.base_url),
        media=lambda _: answer,
        stream=True,
    )
    return MediaEndpoint(provider, "images", name_of_model, transport=server, **KEY), server


@pytest.mark.parametrize("name", [each.name for each in ABLE])
async def test_every_provider_that_makes_images_makes_them(name: str) -> None:
    usage = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    answer = Message.model(PNG).replace(usage=usage, finish_reason=FinishReason.stop)
    made, server = model(name, answer)
    image = DataPart(PNG.data, "image/png", "a.png")
    result = await made.send(ImageRequest("", "a cat", (image,), size="1024x1024"))
    asked, answered = result.messages
    assert (asked.text, asked.parts[1:]) == ("a cat", (image,))
    assert (answered.role, answered.parts, answered.usage) == (Role.MODEL, (PNG,), usage)
    assert answered.origin is not None and answered.created_at is not None
    assert (answered.origin.provider, answered.origin.model) == (name, "m")
    assert (result.output, result.usage, result.finish_reason) == ("", usage, FinishReason.stop)
    assert [call.usage for call in result.calls] == [usage]
    [sent] = server.sent
    assert "sk-very-secret-key" in str(sent.headers)


async def test_default_models_and_options_are_the_records() -> None:
    for name, expected in {"openai": "gpt-image-2.5-flare", "xai": "grok-imagine-image"}.items():
        made, server = model(name, PNG, None)
        await made.send(ImageRequest("", "a cat", options={"n": 1}))
        [wanted] = server.media_requests
        assert (made.name, wanted.model, wanted.count) == (expected, expected, 1)
        form = {} if name == "openai" else {"response_format": "b64_json"}
        assert server.sent[0].body == {"model": expected, "prompt": "a cat", "n": 1, **form}


async def test_what_a_provider_has_no_endpoint_for_is_a_setting_in_plain_words() -> None:
    for name in ("anthropic", "cohere", "groq"):
        with pytest.raises(
            SettingsError, match=r"makes no images; these do: .*google, openai"
        ) as caught:
            model(name, PNG)
        assert caught.value.provider == name
    with pytest.raises(SettingsError, match="has no default model for images; name one"):
        model("together", PNG, None)


async def test_images_that_are_being_drawn_are_events() -> None:
    made, _ = model("openai", PNG)
    batches = [events async for events in made.batches(ImageRequest("", "x", stream=True))]
    kinds = [type(event) for events in batches for event in events]
    assert kinds[-1] is MessageFinished and Custom not in kinds


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            ContentRefusedError("Your request was rejected by the safety system"),
            ContentRefusedError,
        ),
        (RateLimitError("too many requests"), RateLimitError),
        (InvalidRequestError("Unknown parameter: size"), InvalidRequestError),
        (
            AuthenticationError("Incorrect API key provided: sk-very-secret-key"),
            AuthenticationError,
        ),
    ],
)
async def test_errors_are_of_the_tree_and_hold_no_key(
    answer: DragomanError, expected: type[DragomanError]
) -> None:
    made, _ = model("openai", answer)
    with pytest.raises(expected) as caught:
        await made.send(ImageRequest("", "a cat"))
    assert (caught.value.provider, caught.value.request_id) == ("openai", "kit-request-1")
    assert "secret" not in str(caught.value) + str(caught.value.body)


async def test_an_answer_without_images_says_why() -> None:
    for message, error in (
        (
            Message.model("I cannot draw this.").replace(finish_reason=FinishReason.content_filter),
            ContentRefusedError,
        ),
        (Message.model("Sorry."), ProviderError),
    ):
        made, _ = model("google", message)
        with pytest.raises(error, match=message.text):
            await made.send(ImageRequest("", "a cat"))


def playing(*exchanges: Exchange, retries: int = 0) -> MediaEndpoint:
    transport: Any = Player(exchanges)
    if retries:
        transport = Retry(transport, base=0)
    return MediaEndpoint(providers.get("openai"), "images", transport=transport, **KEY)


async def test_a_cut_or_odd_answer_is_an_error_with_what_there_was() -> None:
    whole = b'{"data": [{"b64_json": "iVBORw0KGgo="}]}'
    for exchange, error in (
        (Exchange(body=whole, cut_after=20), StreamCutError),
        (Exchange(body=b"<html>"), DecodeError),
        (Exchange(body=whole[:20]), StreamCutError),
    ):
        with pytest.raises(error) as caught:
            await playing(exchange).send(ImageRequest("", "a cat"))
        assert caught.value.provider == "openai"
    batches = [
        events
        async for events in playing(Exchange(body=whole, cut_after=20)).batches(
            ImageRequest("", "x")
        )
    ]
    assert isinstance(batches[-1][-1], RunError)
    partial = b'data: {"type": "image_generation.partial_image", "b64_json": "iVBORw0KGgo="}\n\n'
    with pytest.raises(StreamCutError):
        await playing(Exchange(body=partial)).send(ImageRequest("", "x", stream=True))
    half = "half a character: \ud83d"
    with pytest.raises(InvalidRequestError, match="half a character"):
        await playing(Exchange(body=whole)).send(ImageRequest("", half, (PNG,)))


async def test_a_failed_request_is_sent_again_as_everywhere() -> None:
    whole = b'{"data": [{"b64_json": "iVBORw0KGgo="}]}'
    result = await playing(Exchange(status=503), Exchange(body=whole), retries=1).send(
        ImageRequest("", "a cat")
    )
    assert result.messages[1].parts == (DataPart(b"\x89PNG\r\n\x1a\n", "image/png"),)


async def test_a_cancelled_request_closes_its_answer() -> None:
    made, server = model("openai", PNG)
    with anyio.CancelScope() as scope:
        async for _ in made.batches(ImageRequest("", "a cat")):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught and server.open == 0


async def test_models_of_an_agent_share_its_access() -> None:
    scripted = ScriptedModel(media=lambda _: PNG)
    models = Models(
        scripted, transport=scripted.server, api_key=None, base_url=None, headers=None, environment=None,  # type: ignore[arg-type]
        environment_only=False, middleware=(), new_id=lambda: "one", clock=lambda: None,  # type: ignore[arg-type, return-value]
    )  # fmt: skip
    result = await models.media_endpoint("images").send(ImageRequest("", "a cat"))
    assert result.id == "one" and result.messages[1].parts == (PNG,)
    assert [request.model for request in scripted.media_requests] == ["scripted-images-1"]
    assert models.media_endpoint("images", "scripted:other").name == "other"
