"""What an agent does with images and other media beside chats: it has them made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Generic, Unpack

from typing_extensions import TypeVar

from dragoman.portal import Portal, synchronous, synchronous_stream
from dragoman.prompt import Prompt, RunOptions
from dragoman.result import ChatResult
from dragoman.run_builder import RunDefaults

__all__ = ["MediaCalls"]

Deps = TypeVar("Deps", default=None)


class MediaCalls(Generic[Deps]):
    """The calls of an agent for media."""

    _defaults: RunDefaults
    portal: Portal

    async def generate_media(
        self,
        prompt: Prompt,
        *,
        mime_types: Iterable[str],
        **run_options: Unpack[RunOptions[Deps]],
    ) -> ChatResult[str]:
        """Asks the model for media (files of these MIME types) and returns the answer, whose
        messages hold them as parts; `files(result)` lists them. See `generate_media_stream`."""
        from dragoman.media import fold_media

        chunks = self.generate_media_stream(prompt, mime_types=mime_types, **run_options)
        return fold_media([chunk async for chunk in chunks if not chunk.custom])

    def generate_media_stream(
        self,
        prompt: Prompt,
        *,
        mime_types: Iterable[str],
        **run_options: Unpack[RunOptions[Deps]],
    ) -> AsyncGenerator[ChatResult[str], None]:
        """Asks the model for media (files of these MIME types) and yields the answer in chunks, the
        first of which holds the prompt's message. `dragoman.media.fold_media` adds them up.

        The provider makes them with an image model or with code that it runs. The agent's tools are
        not offered. `options` are fields of the provider's tool, such as `size`, or of the body.

        Raises:
            SettingsError: `mime_types` is empty or holds no MIME type, the provider makes no such media, or an output schema is
                asked for.
            ProviderError: it refused, or a file cannot be downloaded; `result` is what there is.
        """
        from dragoman.media import stream_media

        return stream_media(self._defaults, prompt, mime_types, run_options)

    generate_media_sync = synchronous(generate_media)
    generate_media_stream_sync = synchronous_stream(generate_media_stream)
