"""Checks of what a provider receives beside text: images, audio, files."""

from __future__ import annotations

from dragoman.capability import Capability
from dragoman.message import DataPart, FilePart, LinkPart
from dragoman.testing.check import require, require_equal
from dragoman.testing.provider.bench import ProviderBench, make_reply, provider_check
from dragoman.testing.samples import PNG

__all__ = [
    "audio_arrives",
    "files_arrive",
    "images_arrive",
    "media_without_capability_are_harmless",
]


@provider_check(Capability.vision, look="the wire's images, and vision in the record", live=True)
async def images_arrive(bench: ProviderBench) -> None:
    """An image arrives in its place beside the text, and the model sees it."""
    answer = await _ask_about(
        bench, DataPart(PNG, "image/png", "red.png"), "What colour is the image? One word.", "Red."
    )
    bench.require_of_model(
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
async def media_without_capability_are_harmless(bench: ProviderBench) -> None:
    """Media that the provider does not declare (images, audio, files, links) are sent, replaced by
    a note in text, or left out. The text beside them arrives, and nothing raises."""
    parts = (
        DataPart(PNG, "image/png"),
        DataPart(b"ID3\x03", "audio/mpeg"),
        DataPart(b"\x00\x01", "application/octet-stream"),
        LinkPart("https://files.conformance.invalid/a.mp4", "video/mp4"),
        FilePart("file-kit"),
    )
    async with bench.agent(make_reply("Seen.")) as agent:
        for part in parts:
            result = await agent.send("Look at this.", attachments=[part])
            require_equal(result.output, "Seen.", f"the answer to a {type(part).__name__}")
            require(
                "Look at this." in bench.get_request().messages[-1].text,
                f"the text beside a {type(part).__name__} is lost",
            )


async def _ask_about(bench: ProviderBench, part: DataPart, prompt: str, answer: str) -> str:
    """Returns the answer to a prompt with an attachment, and checks that both arrived."""
    async with bench.agent(make_reply(answer)) as agent:
        result = await agent.send(prompt, attachments=[part])
    if bench.scripted:
        arrived = [
            piece
            for piece in bench.get_request().messages[-1].content
            if isinstance(piece, DataPart)
        ]
        require_equal(
            [(piece.data, piece.mime_type) for piece in arrived],
            [(part.data, part.mime_type)],
            "the media that arrived",
        )
        require_equal(bench.get_request().messages[-1].text, prompt, "the text beside it")
    return result.output
