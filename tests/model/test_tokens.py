"""Tokens of a prompt are estimated by one rule, and the rule is held to recorded usage."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import DragomanError
from dragoman.event import MessageFinished
from dragoman.message import (
    DataPart,
    LinkPart,
    MarkPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.model import tokens
from dragoman.model.tokens import (
    DEFAULT_PIXELS,
    FileSize,
    estimate_tokens,
    measure_file,
    request_tokens,
    text_tokens,
)
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from support.traffic import WIRES, exchanges

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def png(width: int, height: int) -> DataPart:
    return DataPart(PNG + struct.pack(">II", width, height), "image/png")


# text


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The quick brown fox jumps over the lazy dog.", 9, 11),
        ("antidisestablishmentarianism", 3, 6),
        ("a" * 8000, 900, 1100),
        ("123456789", 3, 5),
        ('{"city": "Rome", "days": [1, 2, 3]}', 11, 20),
        ("def f(x):\n    return x + 1\n", 9, 14),
        ("Здравствуй, мир", 6, 9),
        ("今日は天気がいいですね", 8, 12),
        ("안녕하세요", 3, 6),
        ("\U0001f600\U0001f680", 3, 5),
        ("\ud800 half", 1, 4),
    ],
)
def test_text_by_kinds_of_characters(text: str, least: float, most: float) -> None:
    assert least <= text_tokens(text) <= most


def test_text_counts_by_its_length() -> None:
    assert text_tokens("word, 12 " * 1000) == pytest.approx(
        1000 * text_tokens("word, 12 "), rel=0.01
    )


# messages


def test_every_kind_of_content_counts_but_thinking_and_marks() -> None:
    def of(*content: Any) -> int:
        return estimate_tokens([Message.user(*content)]) - estimate_tokens([Message.user()])

    said = "It rains in Rome today."
    assert of(said) == round(text_tokens(said)) > 0
    assert of(ThinkingPart("Hm. " * 100), MarkPart("step")) == 0
    assert of(ToolCallPart("1", "look", {"at": said})) > of(ToolCallPart("1", "look", {})) > 5
    assert of(ToolResultPart("1", "look", said)) > of(said)
    assert of(ToolResultPart("1", "look", {"a": "\ud800"})) > 0
    assert of(ToolResultPart("1", "look", {"a": said})) > of(ToolResultPart("1", "look", said))
    assert of(ToolResultPart("1", "look", (TextPart(said), png(800, 600)))) > of(
        png(800, 600)
    ) + of(said)
    assert of(DataPart(said.encode(), "text/plain")) >= of(said)
    assert of(LinkPart("https://host.test/a.png", "image/png")) == of(png(*DEFAULT_PIXELS))


def test_a_provider_counts_its_way() -> None:
    talk = [Message.user("It rains in Rome. " * 20)]
    tool = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
    counts = {
        name: estimate_tokens(talk, provider=name)
        for name in ("openai", "anthropic", "google", "cohere")
    }
    assert counts["google"] < counts["anthropic"] < counts["cohere"]
    assert estimate_tokens(talk, provider="azure", model="gpt-4o") == counts["openai"]
    assert estimate_tokens(talk, provider="azure", model="my-claude-4") == counts["anthropic"]
    with_tool = request_tokens(
        ModelRequest("m", tuple(talk), (tool, ServerTool("search"))), "anthropic"
    )
    assert with_tool > counts["anthropic"] + 500
    schema = ModelRequest(
        "m", tuple(talk), output_schema={"type": "object", "properties": {"a": {"type": "string"}}}
    )
    assert request_tokens(schema, "openai") > counts["openai"]


def test_a_message_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = tokens.text_tokens
    monkeypatch.setattr(tokens, "text_tokens", lambda text: counted.append(text) or count(text))
    talk = [Message.user(f"{number} " + "word " * 50) for number in range(20)]
    first = estimate_tokens(talk)
    assert (estimate_tokens(talk), len(counted)) == (first, 20)
    talk.append(Message.user("word " * 50))
    assert estimate_tokens(talk) > first
    assert len(counted) == 21
    known = len(tokens._counts_by_id)
    del talk
    assert len(tokens._counts_by_id) == known - 21


# files


def test_images_by_the_rules_of_providers() -> None:
    def of(width: int, height: int, provider: str) -> int:
        empty = estimate_tokens([Message.user()], provider=provider)
        return estimate_tokens([Message.user(png(width, height))], provider=provider) - empty

    assert of(1024, 1024, "openai") == 85 + 4 * 170
    assert of(2048, 4096, "openai") == 85 + 6 * 170
    assert of(300, 200, "google") == 258
    assert of(1000, 1000, "google") == 4 * 258
    assert of(1000, 1000, "anthropic") == pytest.approx(1334, abs=1)
    assert of(10000, 10000, "anthropic") == 1600


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (PNG + struct.pack(">II", 640, 480), (640, 480)),
        (b"GIF89a" + struct.pack("<HH", 640, 480), (640, 480)),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640), (640, 480)),
        (
            b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480),
            (640, 480),
        ),
        (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14), (640, 480)),
        (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0", (640, 480)),
        (b"", DEFAULT_PIXELS),
        (b"\x89PNG", DEFAULT_PIXELS),
        (PNG + b"\0" * 8, DEFAULT_PIXELS),
        (b"\xff\xd8" + b"\xff" * 50, DEFAULT_PIXELS),
        (b"\xff\xd8\xff\xe0\0\0" * 9, DEFAULT_PIXELS),
        (b"\xff\xd8junk", DEFAULT_PIXELS),
        (b"RIFF\0\0\0\0WEBPVP8X", DEFAULT_PIXELS),
    ],
)
def test_pixels_are_read_from_the_first_bytes(data: bytes, size: tuple[int, int]) -> None:
    found = measure_file(DataPart(data, "image/png"))
    assert (found.media_type, found.width, found.height) == ("image", *size)


def test_other_files_by_pages_and_bytes() -> None:
    pages = b"%PDF-1.7 /Type /Pages /Type /Page /Type/Page /Type /Page"
    assert measure_file(DataPart(pages, "application/pdf")) == FileSize(
        "document", pages=3, length=len(pages)
    )
    assert measure_file(DataPart(b"", "application/octet-stream")).pages == 1
    assert measure_file(LinkPart("https://host.test/a.mp3", "audio/mpeg")) == FileSize("audio")
    assert estimate_tokens([Message.user(DataPart(b"\0" * 10**6, "audio/wav"))]) > 1000


# against what providers counted

PROVIDERS = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "google": ("google",),
    "vertex": ("vertex",),
    "mistral": ("mistral",),
    "cohere": ("cohere",),
    "deepseek": ("deepseek",),
    "xai": ("xai",),
    "groq": ("groq",),
    "azure": ("azure",),
    "together": ("together",),
    "openrouter": ("openrouter",),
    "ollama": ("ollama",),
    "llamacpp": ("llama.cpp",),
}
"""Provider → the vendors of its recordings."""
_NOT_ALL = ("previous_response_id", "conversation", "cachedContent")
"""Options by which a provider counts what is not in the request."""


def errors(vendors: tuple[str, ...], provider: str) -> Iterator[float]:
    """How far an estimate is from the count, as a part of that, for each recorded request."""
    for folder, wire in WIRES.items():
        codec = wires.get(wire)
        for exchange in exchanges(folder):
            if exchange.vendor not in vendors or exchange.status != 200 or not exchange.request:
                continue
            try:
                request = codec.load_request(exchange.request, path=exchange.url)
            except DragomanError:
                continue
            if any(request.options.get(name) for name in _NOT_ALL):
                continue
            if any(isinstance(tool, ServerTool) for tool in request.tools):
                continue
            decoder = codec.decoder()
            events = [*decoder.feed(exchange.body), *decoder.close()]
            used = [
                event.usage
                for event in events
                if isinstance(event, MessageFinished) and event.usage
            ]
            if used and used[-1].input_tokens:
                count = used[-1].input_tokens
                yield abs(request_tokens(request, provider, request.model) - count) / count


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_median_error_is_small_against_recorded_usage(provider: str) -> None:
    found = sorted(errors(PROVIDERS[provider], provider))
    print(
        f"{provider}: {len(found)}, median {median(found):.1%}, p90 {found[len(found) * 9 // 10]:.0%}"
    )
    assert len(found) >= 25
    assert median(found) <= 0.15
