"""Media generation: a run of the media model, in chunks, and how chunks add up.

`stream_media` is the run that `Agent.generate_media_stream` makes. Its files come as parts of the
model's message (see `model/media_generation.py`). Unfinished images come before, as custom events:
`read_partial_image` reads one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.media import decode_base64
from dragoman.content import guess_mime_type
from dragoman.errors import SettingsError
from dragoman.event import PARTIAL_IMAGE, Custom
from dragoman.json_bytes import Json
from dragoman.message import DataPart, FinishReason
from dragoman.prompt import Prompt, RunOptions, refuse_output_type
from dragoman.providers.media_plan import check_mime_types
from dragoman.result import ChatResult
from dragoman.run_builder import RunDefaults, build_run

if TYPE_CHECKING:
    from dragoman.message import Message, Usage
    from dragoman.model.media_generation import MediaModel

__all__ = ["fold_media", "read_partial_image", "stream_media"]

_UNKNOWN = FinishReason.unspecified


async def stream_media(
    agent: RunDefaults, prompt: Prompt, mime_types: Iterable[str], run_options: RunOptions
) -> AsyncGenerator[ChatResult[str], None]:
    """Runs a media request and yields its chunks. `usage` of a chunk is that of the run so far.

    Raises:
        SettingsError: see `Agent.generate_media_stream`.
        DragomanError: the run failed; `result` of the error is what there was until then.
    """
    refuse_output_type(run_options)
    if run_options.get("output_schema") is not None:
        raise SettingsError("media generation takes no output_schema: use send for JSON")
    types = check_mime_types(mime_types)
    media_model = agent.models.media(types, run_options.get("model"))
    defaults = msgspec.structs.replace(agent, tools=(), output_checks=())
    notes = _Notes(media_model)
    async with build_run(
        defaults, prompt, str, run_options, chat_model=media_model.chat_model
    ) as run:
        async with aclosing(run.steps()) as steps:
            async for step in steps:
                for chunk in step.chunks():
                    yield notes.add(chunk)
        if run.exception is not None:
            raise run.exception


class _Notes:
    """Notes in the metadata of chunks how the media are made, and adds up their usage."""

    def __init__(self, model: MediaModel) -> None:
        """Starts the notes of a media stream."""
        self._model = model
        self._count = 0
        self._usage: Usage | None = None
        self._has_mode = False

    def add(self, chunk: ChatResult[str]) -> ChatResult[str]:
        """Returns the next chunk of media with its notes."""
        notes: Json = {"chunk_index": self._count}
        self._count += 1
        plan = self._model.plan
        # Once: a fallback may have begun again before, and lists in metadata are appended.
        if plan is not None and not self._has_mode and chunk.finish_reason is not _UNKNOWN:
            self._has_mode = True
            notes["generation_mode"] = plan.mode
            notes["requested_mime_types"] = list(plan.mime_types)
        usage = chunk.usage
        if usage is not None and self._usage is not None:
            usage = self._usage + usage
        self._usage = usage or self._usage
        return msgspec.structs.replace(chunk, metadata={**chunk.metadata, **notes}, usage=usage)


def fold_media(chunks: Iterable[ChatResult[str]]) -> ChatResult[str]:
    """Adds up the chunks of a media stream.

    Messages are appended. Metadata are merged by key: lists are appended, objects merged, and of
    other values the last counts, as it does of the usage and of a finish reason that says something.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    messages: list[Message] = []
    whole: ChatResult[str] = ChatResult("")
    for chunk in chunks:
        if chunk.retracted:
            texts = ["".join(texts).removesuffix(chunk.retracted)]
        texts.append(chunk.output)
        thoughts.append(chunk.thinking or "")
        messages += chunk.messages
        whole = _add_fields(whole, chunk)
    thinking = "".join(thoughts) or None
    metadata = dict(whole.metadata)
    if thinking:
        metadata["thinking"] = thinking
    return msgspec.structs.replace(
        whole,
        output="".join(texts),
        messages=tuple(messages),
        thinking=thinking,
        metadata=metadata,
    )


def _add_fields(whole: ChatResult[str], chunk: ChatResult[str]) -> ChatResult[str]:
    """Returns the result of a media generation with the further fields of a chunk."""
    changes: dict[str, Any] = {}
    if chunk.metadata:
        changes["metadata"] = _merge_metadata(whole.metadata, chunk.metadata)
    for name in ("usage", "state"):
        if (value := getattr(chunk, name)) is not None:
            changes[name] = value
    if chunk.finish_reason is not _UNKNOWN:
        changes["finish_reason"] = chunk.finish_reason
    if chunk.id:
        changes["id"] = chunk.id
    for name in ("calls", "losses", "pending"):
        if more := getattr(chunk, name):
            changes[name] = (*getattr(whole, name), *more)
    return msgspec.structs.replace(whole, **changes)


def _merge_metadata(first: Mapping[str, Any], second: Mapping[str, Any]) -> Json:
    """Returns the metadata of two chunks with media as one: lists are joined, objects merged, and of
    other values the second one stands. Part of `fold_media`."""
    merged = dict(first)
    for key, value in second.items():
        before = merged.get(key)
        if isinstance(value, list) and isinstance(before, list):
            merged[key] = [*cast("list[Any]", before), *cast("list[Any]", value)]
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[key] = {**cast("Json", before), **cast("Json", value)}
        else:
            merged[key] = value
    return merged


def read_partial_image(event: Custom) -> DataPart | None:
    """Returns the unfinished image (media) that an event shows; `None` if it shows none. The
    finished image takes its place, as a part of the message."""
    fields = if_object(event.value)
    if event.name != PARTIAL_IMAGE:
        return None
    data = decode_base64(fields.get("partial_image_b64"))
    if not data:
        return None
    image_format = if_text(fields.get("output_format"))
    name = f"partial_{fields.get('partial_image_index', 0)}"
    mime_type = guess_mime_type("", data)
    if image_format:
        mime_type = f"image/{image_format}"
    return DataPart(data, mime_type, name)
