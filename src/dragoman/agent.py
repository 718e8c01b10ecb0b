"""The agent: a model, tools and a way to talk to them. `run` is the one operation; every `send` is
a run drained."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, Self, Unpack, overload

from typing_extensions import TypeForm, TypeVar

from dragoman.arguments import unknown_arguments_error
from dragoman.audio_calls import AudioCalls
from dragoman.capability import Capability
from dragoman.errors import AuthenticationError
from dragoman.event import Event
from dragoman.hooks import Hooks
from dragoman.interrupt import Interrupt
from dragoman.limits import Limits
from dragoman.logs import log_from_environment
from dragoman.media_calls import MediaCalls
from dragoman.memory.memory import Memory
from dragoman.message import DataPart, FilePart, Message
from dragoman.model.access import Key
from dragoman.model.agent_models import Models
from dragoman.model.fallbacks import ModelChoice
from dragoman.model.middleware import Middleware
from dragoman.model.resolve_model import default_transport
from dragoman.model_profile import ModelProfile
from dragoman.orchestration import MessageAccumulator, StreamingOrchestrator
from dragoman.orchestration.output_checks import OutputCheck
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.story import Story
from dragoman.portal import Portal, synchronous, synchronous_stream
from dragoman.prompt import (
    History,
    Prompt,
    RunOptions,
    check_agent,
    check_settings,
    make_tools,
    read_sequences,
    refuse_output_type,
)
from dragoman.providers import Provider
from dragoman.request import ModelRequest, OnLoss, ServerTool, Settings, ToolSpec
from dragoman.result import BatchEmbeddingsResult, ChatResult, EmbeddingsResult, ModelInfo
from dragoman.run import Run
from dragoman.run_beginning import OnDoubt, RunDefaults
from dragoman.run_builder import build_run, find_pending
from dragoman.runtime import new_id, now
from dragoman.tools import Tool, ToolExecutor, Toolset, split_tools
from dragoman.tools.agent_tool import agent_tool
from dragoman.tools.definition import PlainFunction
from dragoman.typed_stream import send_stream_for

if TYPE_CHECKING:
    from datetime import datetime

    from dragoman.model.embeddings_model import EmbeddingsOptions
    from dragoman.transport import Transport

__all__ = ["Agent", "History", "Prompt", "RunOptions"]

Deps = TypeVar("Deps", default=None)
T = TypeVar("T")


class Agent(AudioCalls, MediaCalls[Deps], Generic[Deps]):
    """A model with its tools and settings. Making one opens nothing and reads no key.

    It may be shared by tasks, threads and event loops. `close` (or `async with`) gives connections
    back; an agent that is merely forgotten leaves nothing behind either.
    """

    def __init__(
        self,
        model: ModelChoice | None = None,
        *,
        tools: Iterable[Tool[Deps] | Toolset | PlainFunction] | None = None,
        system: str | None = None,
        settings: Settings | None = None,
        profile: ModelProfile | None = None,
        server_tools: Iterable[ServerTool] = (),
        options: Mapping[str, Any] | None = None,
        base_url: str | None = None,
        api_key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        environment_only: bool = False,
        transport: Transport | None = None,
        middleware: Iterable[Middleware] = (),
        hooks: Hooks | Iterable[Hooks] = (),
        limits: Limits | None = None,
        output_checks: Sequence[OutputCheck[Deps]] | None = None,
        memory: Memory | None = None,
        on_loss: OnLoss = "tell",
        on_doubt: OnDoubt = "tell",
        prefix: Literal["keep", "break"] = "keep",
        approval_key: str | bytes | None = None,
        executor: ToolExecutor | None = None,
        orchestrator: Callable[[], StreamingOrchestrator] | StreamingOrchestrator | None = None,
        accumulator: Callable[[], MessageAccumulator] | None = None,
        display_name: str | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
        **unknown: Never,
    ) -> None:
        """Args:
            model: a model string or a provider's record; of several, as a list or a `fallback`, the next is asked if one
                fails. Left out: the environment's `DRAGOMAN_MODEL`, else `local`.
            tools: functions, `Tool`s and `Toolset`s that the model may call.
            system: the system text of every conversation.
            settings: how the model is to answer, where a send does not say.
            profile: what you know of the model; it goes before all that `dragoman.profiles` knows of it.
            server_tools: tools that the provider runs, such as a web search.
            options: body fields that have no neutral name, passed on as they are.
            base_url: where the first model's provider is.
            api_key: its key, or a function that returns the key, or an awaitable of it, for each request.
            headers: further headers for it.
            environment: variables that go before those of the process: keys, base URLs, `DRAGOMAN_MODEL`.
            environment_only: leave the variables of the process out.
            transport: how requests are sent; left out, by HTTP with retries.
            middleware: around every request to a model, the first outermost.
            hooks: told of runs, model calls and tools as they begin and end.
            limits: bounds of a run.
            output_checks: functions of the run's `ToolContext` and its output. Each returns the output, changed or not,
                or raises `ModelRetry` with words for the model, which then answers again.
            memory: keeps the conversations of sends with a `thread_id`.
            on_loss: what a provider cannot take (a file, a setting, another's thinking) is left out and named in
                `ChatResult.losses`; `error` refuses the request instead.
            on_doubt: who is told of a call of a durable run that may have acted before its process ended: the model or a person.
            prefix: a system text or tools that change in mid-conversation are said at its end where the model heeds that, so
                that its cached and signed beginning stays; `break` sends them in place of the old ones.
            approval_key: signs what runs wait for; an answer then counts only with that signature. A secret of 32 bytes.
            executor: runs the tools; left out, the provider's or ours.
            orchestrator: what a run does in which order; a class or function makes one for each run.
            accumulator: joins the chunks of a message.
            display_name: name for people, hand-offs and servers.
            id_factory: makes ids of messages and runs.
            clock: the time.

        Raises:
            SettingsError: the model string is malformed, or no provider has that name.
            ToolError: a tool cannot be described to a model, or two have one name.
            TypeError: an argument is of another type; the message names it.
        """
        if unknown:
            raise unknown_arguments_error("Agent()", unknown, _arguments_of(type(self).__init__))
        log_from_environment()
        if isinstance(hooks, Hooks):
            hooks = (hooks,)
        tools, middleware, server_tools, hooks = read_sequences(
            () if tools is None else tools, middleware, server_tools, hooks
        )
        check_agent(locals())
        self.tools = make_tools(tools)
        """The tools and sets that it was given."""
        self.toolset = split_tools(self.tools)[1]
        self._own_transport, self._transport = transport is None, transport or default_transport()
        self._models = Models(
            model,
            transport=self._transport,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=environment,
            environment_only=environment_only,
            middleware=middleware,
            new_id=id_factory,
            clock=clock,
            profile=profile,
        )
        settings, options = settings or Settings(), options or {}
        check_settings(settings)
        self._defaults = RunDefaults(
            models=self._models,
            tools=self.tools,
            system=Message.system(system) if system else None,
            request=ModelRequest(
                "", (), server_tools, settings, None, True, options, on_loss=on_loss, prefix=prefix
            ),
            hooks=hooks,
            limits=limits or Limits(),
            on_doubt=on_doubt,
            output_checks=tuple(output_checks or ()),
            approval_key=approval_key.encode() if isinstance(approval_key, str) else approval_key,
            executor=executor,
            orchestrator=orchestrator,
            accumulator=accumulator,
            memory=memory,
            display_name=display_name or self._models.provider.display_name,
            new_id=id_factory,
            clock=clock,
        )
        self.output_checks = self._defaults.output_checks
        """Functions that accept, change or send back its outputs."""
        self.memory = memory
        """Where its conversations are kept; `None`: nowhere."""
        self.portal = Portal()
        """Where the synchronous calls run."""

    @property
    def provider_name(self) -> str:
        """Returns the provider's name or alias as given, in lower case."""
        return self._models.string.provider

    @property
    def chat_model_name(self) -> str | None:
        """Returns the chat model as given, or None for the provider's default."""
        return self._models.string.chat

    @property
    def embeddings_model_name(self) -> str | None:
        """Returns the embeddings model as given, or None for the provider's default."""
        return self._models.string.embeddings

    @property
    def embeds_by_purpose(self) -> bool:
        """True if a text to search with gets another vector than a text to be found."""
        return self._models.embeddings().embeds_by_purpose

    @property
    def media_model_name(self) -> str | None:
        """The media model as given; `None`: the provider's default."""
        return self._models.string.media

    @property
    def model(self) -> str:
        """Returns the full model string, with the provider's defaults for names that were not
        given."""
        return self._models.name

    @property
    def display_name(self) -> str:
        """Returns the name for people: the given one, else the provider's."""
        return self._defaults.display_name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Returns what the usual models of the agent's provider can do."""
        return self._models.provider.capabilities

    @property
    def all_tools(self) -> tuple[Tool[Deps] | Toolset, ...]:
        """Returns the agent's tools and those that its memory adds."""
        if self.memory is None or self.memory.working_memory is None:
            return self.tools
        return (*self.tools, *self.memory.tools)

    # what it does

    @overload
    def run(self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]) -> Run[str]: ...
    @overload
    def run(
        self, prompt: Prompt, *, output_type: type[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> Run[T]: ...
    @overload
    def run(
        self, prompt: Prompt, *, output_type: TypeForm[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> Run[T]: ...
    def run(
        self, prompt: Prompt, *, output_type: object = str, **run_options: Unpack[RunOptions[Deps]]
    ) -> Run[Any]:
        """Returns a run of the agent, to be used in `async with`. Nothing happens before it is
        iterated over or asked for its result.

        Raises:
            SettingsError: as the constructor, or the provider, or one of a fallback, can give no typed output.
            InvalidRequestError: nothing to send.
            ResumeError: an answer in `resume` does not fit what the history waits for; with toolsets it is the run's error.
            TypeError: an argument that `RunOptions` does not know.
        """
        return build_run(self._defaults, prompt, output_type, run_options)

    def go_on(
        self,
        prompt: Prompt,
        story: Story,
        *,
        output_type: object = str,
        **run_options: Unpack[RunOptions[Deps]],
    ) -> Run[Any]:
        """Returns a durable run of the agent, which goes on where its log ends. Raises what `run`
        does."""
        if story.run_id:
            run_options["run_id"] = story.run_id
        return build_run(self._defaults, prompt, output_type, run_options, story=story)

    def pending(
        self,
        history: History,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        tools: Iterable[Tool | ToolSpec | Toolset | Callable[..., Any]] = (),
        trusted_history: bool = True,
    ) -> tuple[Interrupt, ...]:
        """Returns what a conversation with the agent waits for, read off its messages: what
        `send(None, history=…)` with these options has as `pending`. No toolset is asked: a call of
        its tools that waits has a mark in the history that a run of this library left.

        With an `approval_key` it is signed. Of a history that comes from a client
        (`trusted_history=False`) nothing is that no run of yours has signed before: it may be made
        up.

        Raises:
            HistoryError: a mark in the history cannot be read.
            TypeError: the history holds something else than messages.
        """
        seal = Seal(
            self._defaults.approval_key if trusted_history else None, thread_id, resource_id
        )
        return find_pending(history, tools=(*self.tools, *make_tools(tools)), seal=seal)

    async def send(
        self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[str]:
        """Sends a prompt to the agent and returns the whole answer. `run_options`: see
        `RunOptions`."""
        refuse_output_type(run_options)
        async with self.run(prompt, **run_options) as run:
            return await run.result()

    @overload
    async def send_for(
        self, prompt: Prompt, output_type: type[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[T]: ...
    @overload
    async def send_for(
        self, prompt: Prompt, output_type: TypeForm[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[T]: ...
    async def send_for(
        self, prompt: Prompt, output_type: Any, **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[Any]:
        """Sends a prompt to the agent and returns a value of a type: anything that pydantic can
        adapt, also `int | str`.

        Raises:
            TypedOutputError: the model's answer is not of the type, also after it was told so once.
        """
        async with self.run(prompt, output_type=output_type, **run_options) as run:
            return await run.result()

    async def send_stream(
        self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]
    ) -> AsyncGenerator[ChatResult[str], None]:
        """Sends a prompt to the agent and yields the answer in chunks, the first of which holds the
        prompt's message.

        Their outputs joined are the output of `send`, where no chunk takes something back: after a
        chunk with `retracted` what it holds is void. `ChatResult.joined` does both. Close the
        stream (`aclosing`) where you leave it early.
        """
        refuse_output_type(run_options)
        async with self.run(prompt, **run_options) as run:
            async with aclosing(run.steps()) as steps:
                async for step in steps:
                    for chunk in step.chunks():
                        yield chunk
            if run.exception is not None:
                raise run.exception

    async def send_events(
        self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]
    ) -> AsyncGenerator[Event, None]:
        """Sends a prompt to the agent and yields the run's events. A failure is told as `RunError`
        and then raised."""
        refuse_output_type(run_options)
        async with self.run(prompt, **run_options) as run:
            async for event in run:
                yield event
            if run.exception is not None:
                raise run.exception

    send_stream_for = send_stream_for
    as_tool = agent_tool

    def check_keys(self) -> dict[str, AuthenticationError | None]:
        """Returns, by its model string, for the agent's model and each of its fallbacks the error
        for a key that is missing, or None. Nothing is sent, and a function that gives keys is not
        called."""
        return self._models.check_keys()

    async def embed_query(
        self, text: str, **options: Unpack[EmbeddingsOptions]
    ) -> EmbeddingsResult:
        """Returns the vector, of the agent's embeddings model, of a text to search with. See
        `EmbeddingsModel.embed_query`.

        Raises:
            SettingsError: the provider makes no embeddings.
        """
        return await self._models.embeddings().embed_query(text, **options)

    async def embed_documents(
        self, texts: Iterable[str], **options: Unpack[EmbeddingsOptions]
    ) -> BatchEmbeddingsResult:
        """Returns the vectors, of the agent's embeddings model, of texts to be found, in the same
        order. See `EmbeddingsModel.embed_documents`.

        Raises:
            SettingsError: the provider makes no embeddings.
        """
        return await self._models.embeddings().embed_documents(texts, **options)

    async def list_models(self) -> list[ModelInfo]:
        """Returns the models that the agent's provider offers.

        Raises:
            SettingsError: the provider lists none.
            ProviderError: it refused.
        """
        from dragoman.model.model_list import list_models

        return await list_models(self._models.access())

    def files(self, messages: ChatResult[Any] | Iterable[Message]) -> list[DataPart | FilePart]:
        """Returns the files that the model and its provider's tools made or fetched, in order: with
        their bytes, or by the id under which the provider holds them, for `download`."""
        from dragoman.model.provider_files import list_files

        return list_files(messages.messages if isinstance(messages, ChatResult) else messages)

    async def download(self, part: FilePart, *, model: str | Provider | None = None) -> DataPart:
        """Downloads the bytes of a file that the provider holds. `model`: whose provider holds it,
        if that is not the agent's.

        Raises:
            SettingsError: that provider holds no such files.
            ProviderError: it refused.
        """
        from dragoman.model.provider_files import download

        return await download(self._models.access(model), part)

    # the same from any thread, also inside a running event loop (which they block)

    send_sync = synchronous(send)
    send_for_sync = synchronous(send_for)
    send_stream_sync = synchronous_stream(send_stream)
    send_stream_for_sync = synchronous_stream(send_stream_for)
    embed_query_sync = synchronous(embed_query)
    embed_documents_sync = synchronous(embed_documents)
    list_models_sync = synchronous(list_models)
    download_sync = synchronous(download)

    async def close(self) -> None:
        """Closes the agent's connections, after the titles that its memory still makes, and ends
        the thread of the synchronous calls."""
        if self.memory is not None:
            await self.memory.finish()
        self.close_sync()
        if self._own_transport:
            await self._transport.close()

    def close_sync(self) -> None:
        """Closes what the agent's synchronous calls use: its connections and their thread."""
        if self.portal.started:
            if self.memory is not None:
                self.portal.call(self.memory.finish())
            if self._own_transport:
                self.portal.call(self._transport.close())
            self.portal.close()

    def __repr__(self) -> str:
        tools = f", {len(self.tools)} tools" if self.tools else ""
        return f"<Agent {self.provider_name}:{self.chat_model_name}{tools}>"

    async def __aenter__(self) -> Self:
        if self.toolset is not None:
            await self.toolset.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Closes the agent, as `close`."""
        try:
            if self.toolset is not None:
                await self.toolset.__aexit__(None, None, None)
        finally:
            await self.close()

    def __enter__(self) -> Self:
        if self.toolset is not None:
            self.portal.call(self.toolset.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        if self.toolset is not None and self.portal.started:
            self.portal.call(self.toolset.__aexit__(None, None, None))
        self.close_sync()


def _arguments_of(function: Callable[..., Any]) -> list[str]:
    from inspect import signature

    return [name for name in signature(function).parameters if name not in ("self", "unknown")]
