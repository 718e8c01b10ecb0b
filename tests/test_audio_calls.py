"""`Agent.speak` and `Agent.transcribe`: keys, retries, errors and defaults as everywhere (issue N)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Agent, DataPart, LinkPart, Message, Usage, providers
from dragoman.capability import Capability
from dragoman.errors import AuthenticationError, InvalidRequestError, RateLimitError, SettingsError
from dragoman.media_request import SpeechRequest, TranscriptionRequest
from dragoman.testing import ScriptedModel, ScriptedServer
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from dragoman.wires import get

pytestmark = pytest.mark.anyio

MP3 = DataPart(b"ID3...", "audio/mpeg", "talk.mp3")
SAMPLES = DataPart(b"\1\0" * 4, "audio/L16;rate=24000")
SPEAKING = [
    each.name for each in providers.REGISTRY.providers() if Capability.speech in each.capabilities
]
HEARING = [
    each.name
    for each in providers.REGISTRY.providers()
    if Capability.transcription in each.capabilities
]


def agent(name: str, answer: Any) -> tuple[Agent, Any]:
    provider = providers.get(name)
    if not isinstance(provider.base_url, str):
        provider = msgspec.structs.replace(provider, base_url="http://x/v1")
    server: Any = ScriptedServer(
        get(provider.wire),
        lambda _: answer,
        base_url=str(provider.base_url),
        media=lambda _: answer,
    )
    return Agent(provider, api_key="sk-very-secret-key", environment={}, transport=server), server


@pytest.mark.parametrize("name", SPEAKING)
async def test_every_provider_that_speaks_speaks(name: str) -> None:
    speaker, server = agent(name, MP3 if name != "google" else SAMPLES)
    part = await speaker.speak("Hello.", voice="nova", model=f"{name}:m", instructions="slowly")
    assert (part.mime_type, len(part.data) > 0) == (
        "audio/wav" if name == "google" else "audio/mpeg",
        True,
    )
    [sent] = server.sent
    assert all(said in str(sent.body) for said in ("Hello.", "nova", "slowly"))
    assert "sk-very-secret-key" in str(sent.headers)


@pytest.mark.parametrize("name", HEARING)
async def test_every_provider_that_hears_writes_down(name: str) -> None:
    usage = Usage(input_tokens=3, output_tokens=1, total_tokens=4)
    hearer, server = agent(
        name, Message.model("Hello.").replace(usage=usage, metadata={"language": "en"})
    )
    result = await hearer.transcribe(MP3, model=f"{name}:m", language="en", prompt="Kenobi")
    assert (result.output, result.usage) == ("Hello.", usage)
    assert name == "google" or result.metadata["language"] == "en"
    asked, answered = result.messages
    assert (asked.parts, answered.text) == ((MP3,), "Hello.")
    assert answered.origin is not None and answered.origin.provider == name
    assert [call.usage for call in result.calls] == [usage]
    assert b"ID3..." in server.sent[0].body if name != "google" else server.requests


async def test_defaults_are_the_records() -> None:
    speaker, server = agent("openai", MP3)
    await speaker.speak("Hello.")
    await speaker.transcribe(MP3, timestamps=["word"], options={"temperature": 0.5})
    speech, transcription = server.media_requests
    assert speech == SpeechRequest("gpt-4o-mini-tts", "Hello.", "alloy", "audio/mpeg")
    assert transcription.replace(native=None) == TranscriptionRequest(
        "gpt-transcribe", MP3, timestamps=("word",), options={"temperature": "0.5"}
    )
    for name, model in {"groq": "whisper-large-v3-turbo", "mistral": "voxtral-mini-latest"}.items():
        hearer, server = agent(name, "Hello.")
        await hearer.transcribe(MP3)
        assert server.media_requests[0].model == model


async def test_another_providers_model_may_be_named() -> None:
    other = ScriptedModel(name="other", media=lambda _: MP3)
    async with Agent(ScriptedModel("", name="own")) as own:
        assert await own.speak("Hello.", model=other) == MP3.__class__(MP3.data, "audio/mpeg")
        with pytest.raises(SettingsError, match="Anthropic provider makes no speech; these do: "):
            await own.speak("Hello.", model="anthropic")
    for name, kind in (
        ("groq", "speech"),
        ("anthropic", "transcription"),
        ("xai", "transcription"),
    ):
        asked, _ = agent(name, MP3)
        with pytest.raises(SettingsError, match=f"makes no {kind}") as caught:
            await (asked.speak("Hello.") if kind == "speech" else asked.transcribe(MP3))
        assert caught.value.provider == name
    asked, _ = agent("openai-compatible", MP3)
    with pytest.raises(SettingsError, match="has no default model for speech"):
        await asked.speak("Hello.")


async def test_what_cannot_be_asked_is_refused_before_anything_is_sent() -> None:
    asked, server = agent("openai", MP3)
    for text, mime_type, match in (
        ("", "audio/wav", "empty"),
        (" \n", "audio/wav", "empty"),
        ("x", "image/png", "is no audio"),
        ("x", "audio/midi", "audio/midi"),
    ):
        with pytest.raises(InvalidRequestError, match=match):
            await asked.speak(text, mime_type=mime_type)
    for part, match in (
        (DataPart(b"", "audio/mpeg"), "empty"),
        (DataPart(b"x", "application/pdf"), "no recording"),
        (LinkPart("https://x.example/a.mp3"), "no links"),
    ):
        with pytest.raises(InvalidRequestError, match=match):
            await asked.transcribe(part)
    with pytest.raises(SettingsError, match="timestamps"):
        await asked.transcribe(MP3, timestamps="word")  # type: ignore[arg-type]
    wrong: Any = {"colour": 1}
    for call in (asked.speak("x", **wrong), asked.transcribe(MP3, **wrong)):
        with pytest.raises(TypeError, match="colour"):
            await call
    for part in ("talk.mp3", b"ID3", None):
        with pytest.raises(TypeError, match="DataPart"):
            await asked.transcribe(part)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        await asked.speak(3)  # type: ignore[arg-type]
    assert server.sent == []


async def test_errors_are_of_the_tree_and_hold_no_key() -> None:
    for error in (
        RateLimitError("too many requests"),
        AuthenticationError("Incorrect API key provided: sk-very-secret-key"),
    ):
        asked, _ = agent("openai", error)
        for call in (asked.speak("Hello."), asked.transcribe(MP3)):
            with pytest.raises(type(error)) as caught:
                await call
            assert caught.value.provider == "openai"
            assert "secret" not in str(caught.value) + str(caught.value.body)


async def test_a_broken_connection_cuts_no_audio_short() -> None:
    exchange = Exchange(headers={"content-type": "audio/mpeg"}, body=b"ID3" * 100, cut_after=50)
    asked = Agent("openai", api_key="k", environment={}, transport=Player([exchange]))
    with pytest.raises(Exception, match="cut") as caught:
        await asked.speak("Hello.")
    assert caught.value.partial.parts[0].data == exchange.body[:50]  # type: ignore[attr-defined]


async def test_plain_forms_of_a_transcript_are_its_output() -> None:
    exchange = Exchange(
        headers={"content-type": "text/plain; charset=utf-8"}, body=b"1\n00:00:00,000 --> "
    )
    asked = Agent("openai", api_key="k", environment={}, transport=Player([exchange]))
    result = await asked.transcribe(MP3, options={"response_format": "srt"})
    assert result.output == exchange.body.decode()


def test_the_same_from_any_thread(tmp_path: Path) -> None:
    (tmp_path / "talk.mp3").write_bytes(MP3.data)
    model = ScriptedModel(
        media=lambda request: MP3 if isinstance(request, SpeechRequest) else "Hello."
    )
    with Agent(model) as asked:
        assert asked.speak_sync("Hello.").mime_type == "audio/mpeg"
        part = DataPart.from_file(tmp_path / "talk.mp3")
        assert asked.transcribe_sync(part).output == "Hello."
