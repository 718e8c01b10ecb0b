"""Checks of what a provider is shown beside text: images, audio, files."""

from __future__ import annotations

from dragoman.capability import Capability
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
)
from dragoman.testing.check import demand, same
from dragoman.testing.provider.bench import ProviderBench, provider_check, says
from dragoman.testing.samples import PNG

__all__ = [
    "audio_arrives",
    "files_arrive",
    "images_arrive",
    "undeclared_media_harm_nothing",
]


@provider_check(Capability.vision, look="the wire's images, and vision in the record", live=True)
async def images_arrive(bench: ProviderBench) -> None:
    """An image arrives in its place beside the text, and the model sees it."""
    answer = await _ask_about(
        bench, DataPart(PNG, "image/png", "red.png"), "What colour is the image? One word.", "Red."
    )
    bench.judge(
        "red" in answer.lower(), f"the model does not see that the image is red: {answer!r}"
    )


@provider_check(Capability.audio, look="the wire's audio, and audio in the record")
async def audio_arrives(bench: ProviderBench) -> None:
    """Audio arrives in its place beside the text."""
    await _ask_about(
        bench,
        DataPart(b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        "What do you hear?",
        "Silence.",
    )


@provider_check(Capability.files, look="the wire's documents, and files in the record")
async def files_arrive(bench: ProviderBench) -> None:
    """A document arrives in its place beside the text."""
    await _ask_about(
        bench,
        DataPart(b"%PDF-1.4\n%%EOF", "application/pdf", "a.pdf"),
        "What does it say?",
        "Nothing.",
    )


@provider_check(Capability.chat, look="the wire's dump_messages")
async def undeclared_media_harm_nothing(bench: ProviderBench) -> None:
    """What the provider does not declare (images, audio, files, links) is sent, replaced by a text
    that says so, or left out; the text beside it arrives, and nothing breaks."""
    parts = (
        DataPart(PNG, "image/png"),
        DataPart(b"ID3\x03", "audio/mpeg"),
        DataPart(b"\x00\x01", "application/octet-stream"),
        LinkPart("https://files.conformance.invalid/a.mp4", "video/mp4"),
        FilePart("file-kit"),
    )
    async with bench.agent(says("Seen.")) as agent:
        for part in parts:
            result = await agent.send("Look at this.", attachments=[part])
            same(result.output, "Seen.", f"the answer to a {type(part).__name__}")
            demand(
                "Look at this." in bench.received().messages[-1].text,
                f"the text beside a {type(part).__name__} is lost",
            )


async def _ask_about(bench: ProviderBench, part: DataPart, prompt: str, answer: str) -> str:
    async with bench.agent(says(answer)) as agent:
        result = await agent.send(prompt, attachments=[part])
    if bench.scripted:
        arrived = [
            piece for piece in bench.received().messages[-1].content if isinstance(piece, DataPart)
        ]
        same(
            [(piece.data, piece.mime_type) for piece in arrived],
            [(part.data, part.mime_type)],
            "the media that arrived",
        )
        same(bench.received().messages[-1].text, prompt, "the text beside it")
    return result.output
