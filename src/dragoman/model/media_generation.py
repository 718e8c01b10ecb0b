"""Media generation: middleware that asks a model for files and puts them into its message.

`MediaModel` puts a layer around a model and each of its fallbacks, below all other middlewares. For
each request the layer looks up how the provider makes media (`plan_media`) and adds the provider's tool, options and instructions. When the
message ends, it downloads the files that the provider's tools wrote and adds them as parts, so that
threads, streams and logs have them like any other part. The provider's own reference to a file stays
where it is. `mark_copy` marks the downloaded part, so that the provider is not sent the file again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from hashlib import blake2b
from typing import cast

import msgspec

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.marks import mark_copy, mark_fetched
from dragoman.codec.opening import count_system_messages
from dragoman.codec.outgoing_conversation import drop_foreign_options
from dragoman.errors import DragomanError, ProviderError, SettingsError
from dragoman.event import Event, MessageFinished, MessageStarted, PartFinished, RunError
from dragoman.fold import MessageBuilder, part_events
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.media_request import ImageRequest
from dragoman.message import DataPart, FilePart, FinishReason, Message, Role
from dragoman.model.access import Access
from dragoman.model.chat_model import ChatModel
from dragoman.model.image_request import make_image_request
from dragoman.model.media_endpoint import MediaEndpoint
from dragoman.model.middleware import Next
from dragoman.model.provider_files import download, list_files
from dragoman.providers.media_plan import MediaPlan, plan_media
from dragoman.providers.media_way import MediaWay
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest, ServerTool, ToolSpec

__all__ = ["MediaModel", "add_media", "name_media_model"]

_LOG = logger("media")
_MOST_FILES = 32
"""Files that are downloaded for one message. A reference to any other stays a `FilePart`."""
_MOST_BYTES = 2**28
"""Bytes of all of them together."""


class MediaModel:
    """The model of one run that makes media: `chat_model`, with a layer around it and around each
    of its fallbacks."""

    def __init__(
        self,
        model: ChatModel,
        mime_types: Sequence[str],
        name: str,
        find_endpoint: Callable[[Access, str], MediaEndpoint],
    ) -> None:
        """Creates the model that generates media in a run. `model`: the chat model of the run.
        `name`: of the model that makes its media. `find_endpoint`: returns a provider's model for
        images by its name."""
        self.find_endpoint = find_endpoint
        """Returns a provider's model for images by its name."""
        self.mime_types = mime_types
        """The MIME types that are asked for."""
        self.plan: MediaPlan | None = None
        """How the latest request makes its media; `None`: there was none yet."""
        members = {
            string: self._make_variant(member, self._name_model(member))
            for string, member in model.fallbacks.items()
        }
        self.chat_model = self._make_variant(model, name).led_by((), members)
        """The model to ask."""

    def _name_model(self, member: ChatModel) -> str:
        """Returns the name of the model of a fallback's provider that makes the media. If it makes
        none, asking it reports that."""
        try:
            return name_media_model(member.provider, self.mime_types)
        except SettingsError:
            return member.name

    def _make_variant(self, model: ChatModel, name: str) -> ChatModel:
        return model.variant(name, _MediaLayer(self, model.access, name))


class _MediaLayer:
    """Makes media requests of the requests to one model, and fetches the files of its answers."""

    def __init__(self, task: MediaModel, access: Access, name: str) -> None:
        self._task, self._access, self._name = task, access, name

    async def __call__(self, request: ModelRequest, following: Next) -> AsyncGenerator[Event, None]:
        """Sends a request on as one for media, and yields its events with the files."""
        provider, losses = self._access.provider, list[Loss]()
        try:
            plan = self._task.plan = plan_media(provider, self._task.mime_types)
        except DragomanError as error:
            yield RunError(error)
            return
        # Options for another provider would make the wire drop those of the plan, too.
        request = drop_foreign_options(request, provider.wire, losses)
        # Files that were written before a pause are named in the message that goes on.
        paused = [message for message in request.messages[-1:] if message.role is Role.MODEL]
        message = _OpenMessage(paused)
        if plan.endpoint:
            events = self._ask_endpoint(make_image_request(request, plan.mime_types, losses))
        else:
            events = cast("AsyncGenerator[Event, None]", following(add_media(request, plan)))
        async with aclosing(events):
            async for event in events:
                if losses and isinstance(event, MessageStarted):
                    event = msgspec.structs.replace(event, losses=(*event.losses, *losses))
                message.add(event)
                if not (isinstance(event, MessageFinished) and message.ends_with(event)):
                    yield event
                    continue
                async with aclosing(self._end(message, event)) as ending:
                    async for last in ending:
                        yield last

    async def _ask_endpoint(self, request: ImageRequest) -> AsyncGenerator[Event, None]:
        """Yields the events of an answer of the provider's endpoint for images."""
        try:
            endpoint = self._task.find_endpoint(self._access, self._name)
        except SettingsError as error:
            yield RunError(error)
            return
        async with aclosing(endpoint.batches(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def _end(
        self, message: _OpenMessage, finish: MessageFinished
    ) -> AsyncGenerator[Event, None]:
        """Yields the generated media of a message and its end. If a file cannot be had, the error
        follows the end."""
        provider, error = self._access.provider, None
        fetched: list[str] = []
        try:
            for reference in message.references()[:_MOST_FILES]:
                part = await download(self._access, reference)
                fetched.append(reference.id)
                for event in message.append(mark_copy(part, provider.wire)):
                    yield event
        except DragomanError as failure:
            error = failure
        if fetched:
            finish = msgspec.structs.replace(finish, native=mark_fetched(finish.native, fetched))
        # The message is complete without its files: it ends before the error is reported.
        yield finish
        if error is not None:
            yield RunError(error)
        elif not message.has_files:
            wanted = ", ".join(self._task.mime_types)
            _LOG.warning("%s made no file; asked for %s", provider.display_name, wanted)


class _OpenMessage:
    """The message that an answer builds, with the files in it."""

    def __init__(self, before: Sequence[Message]) -> None:
        """Collects the generated files of a message. `before`: the paused message that the answer
        goes on with; empty if there is none."""
        self._before = before
        self._builder = MessageBuilder()
        self._next_index = 0
        self._digests: set[bytes] = set()
        self._size = 0
        self.has_files = False
        """True once it has a file."""

    def add(self, event: Event) -> None:
        """Takes an event of a message with generated media."""
        self._builder.add(event)
        if isinstance(event, PartFinished):
            self._next_index = max(self._next_index, event.index + 1)
            self._note(event.part)

    def ends_with(self, event: MessageFinished) -> bool:
        """Returns whether an event is the end, for generated media, of the message, after which the
        provider writes no more files."""
        start = self._builder.start
        is_own = start is not None and event.message_id == start.message_id
        return is_own and event.finish_reason is not FinishReason.pause

    def references(self) -> list[FilePart]:
        """Returns the references to generated files that the provider holds, each once."""
        files = list_files([*self._before, self._builder.message()])
        references = {file.id: file for file in files if isinstance(file, FilePart)}
        self.has_files = self.has_files or bool(references)
        return list(references.values())

    def append(self, part: DataPart) -> list[Event]:
        """Returns the events of a generated file behind the message's parts; none if its bytes are
        there already.

        Raises:
            ProviderError: the files together are larger than may be.
        """
        self._size += len(part.data)
        if self._size > _MOST_BYTES:
            raise ProviderError(
                f"the files of an answer have more than {_MOST_BYTES // 2**20} MiB together; "
                "fetch the rest one by one with agent.download(part)"
            )
        start = self._builder.start
        if not self._note(part) or start is None:
            return []
        events = part_events(start.message_id, self._next_index, part)
        self._next_index += 1
        return events

    def _note(self, part: object) -> bool:
        """Returns whether a part is a generated file whose bytes the message did not have."""
        if not isinstance(part, DataPart):
            return False
        digest = blake2b(part.data, digest_size=16).digest()
        is_new = digest not in self._digests
        self._digests.add(digest)
        self.has_files = True
        return is_new


def name_media_model(
    provider: Provider,
    mime_types: Sequence[str],
    *,
    media: str | None = None,
    chat: str | None = None,
) -> str:
    """Returns the name of the model that makes these types. `media`, `chat`: models in place of the
    provider's defaults.

    Raises:
        SettingsError: the provider makes no such media.
    """
    plan = plan_media(provider, mime_types)
    chat = chat or provider.chat_model or ""
    if not plan.needs_media_model:
        return chat
    if plan.endpoint:
        return media or provider.image_model or ""
    return media or provider.media_model or chat


def add_media(request: ModelRequest, plan: MediaPlan) -> ModelRequest:
    """Returns the request with the tools, options and instructions of a plan. What the request says
    itself wins."""
    tools = list(request.tools)
    options: JsonMap = request.options
    settings = request.settings
    for way in plan.ways:
        fields = {name: options[name] for name in way.tool_options if name in options}
        options = _merge(way.options, read_extra_fields(options, *fields))
        if way.tool is not None:
            tools = _add_tool(tools, way.tool, _choose_format(way, plan), fields)
        if settings.max_tokens is None and way.max_tokens is not None:
            settings = msgspec.structs.replace(settings, max_tokens=way.max_tokens)
    types = ", ".join(plan.mime_types)
    texts = [way.instructions.replace("{types}", types) for way in plan.ways if way.instructions]
    # At the head, where no provider signs over it, so that signed content behind it stays valid.
    head = count_system_messages(request.messages)
    messages = (
        *request.messages[:head],
        *map(Message.system, texts),
        *request.messages[head:],
    )
    return request.replace(tools=tools, options=options, settings=settings, messages=messages)


def _choose_format(way: MediaWay, plan: MediaPlan) -> Json:
    """Returns the field that tells a tool for media its format. Of several formats the model
    chooses."""
    formats = [way.formats[name] for name in plan.mime_types if name in way.formats]
    if len(formats) == 1:
        return {"output_format": formats[0]}
    return {}


def _add_tool(
    tools: Sequence[ToolSpec | ServerTool], name: str, defaults: JsonMap, fields: JsonMap
) -> list[ToolSpec | ServerTool]:
    """Returns the tools with one more for media, which has these fields. A tool of that name keeps
    its own place and the fields that it has."""
    for index, tool in enumerate(tools):
        if isinstance(tool, ServerTool) and tool.name == name:
            options = {**defaults, **tool.options, **fields}
            changed = msgspec.structs.replace(tool, options=options)
            return [*tools[:index], changed, *tools[index + 1 :]]
    return [*tools, ServerTool(name, {**defaults, **fields})]


def _merge(first: JsonMap, second: JsonMap) -> Json:
    """Returns for a media tool the fields of both; objects of one name are merged, else the
    second's win."""
    merged = {**first, **second}
    for name, value in first.items():
        if isinstance(value, dict) and isinstance(second.get(name), dict):
            merged[name] = _merge(if_object(value), if_object(second[name]))
    return merged
