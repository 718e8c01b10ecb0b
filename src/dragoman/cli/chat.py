"""`dragoman chat`: one answer, or a conversation in a terminal.

`chat` checks the options, loads the agent and its memory, and starts either `_answer_once` or
`interactive.converse`. The embedded model starts to load before the other imports, which take about
as long.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import msgspec
import typer

from dragoman.cli.prompt import parse_prompt, read_piped, replace_invalid_text
from dragoman.cli.prompt_log import ConversationOption, LogOption, PromptLog, is_logging
from dragoman.cli.settings import choose_model
from dragoman.cli.terminal import INTERRUPTED, echo, echo_json
from dragoman.cli.threads import (
    StoreOption,
    check_thread,
    find_last_origin,
    open_memory,
    open_thread,
)
from dragoman.json_bytes import Json

if TYPE_CHECKING:
    from decimal import Decimal

    from dragoman.agent import Agent
    from dragoman.cli.screen import Screen
    from dragoman.message import Content, Usage
    from dragoman.result import ChatResult

__all__ = ["chat"]

_EFFORTS = ("off", "low", "medium", "high")

Reasoning = Literal["off", "low", "medium", "high"] | int


def _check_effort(text: str | None) -> str | None:
    """Returns the reasoning effort of `dragoman chat`, by name or as a number of tokens.

    Raises:
        BadParameter: it is neither.
    """
    if text is not None and text not in _EFFORTS and not text.isdecimal():
        raise typer.BadParameter(
            f"{text!r} is none of {', '.join(_EFFORTS)} and no number of tokens"
        )
    return text


def _load_schema(argument: str) -> Json:
    """Returns a JSON Schema from the option of `dragoman chat`, or from the file that `@path`
    names.

    Raises:
        BadParameter: it is not a JSON object.
    """
    try:
        text = argument
        if argument.startswith("@"):
            text = Path(argument[1:]).expanduser().read_text()
        schema = msgspec.json.decode(text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(
            f"no JSON Schema: {error}", param_hint="--output-schema"
        ) from error
    if not isinstance(schema, dict):
        raise typer.BadParameter(
            "no JSON Schema: it must be an object", param_hint="--output-schema"
        )
    return cast("Json", schema)


def chat(
    context: typer.Context,
    prompt: Annotated[
        str, typer.Argument(help="What to ask; @path attaches a file.", show_default=False)
    ] = "",
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            envvar="DRAGOMAN_MODEL",
            help="Such as openai:gpt-4o.",
            callback=choose_model,
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("-s", "--system", metavar="TEXT", help="A system prompt.")
    ] = None,
    temperature: Annotated[float | None, typer.Option("-t", "--temperature", min=0, max=2)] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of the answer.")
    ] = None,
    reasoning: Annotated[
        str | None,
        typer.Option(
            metavar="EFFORT",
            callback=_check_effort,
            help="How much to think: off, low, medium, high, or a number of tokens.",
        ),
    ] = None,
    output_schema: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE", help="The answer is JSON by this JSON Schema."),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="A Python module, here or installed, whose @tool functions the model may call.",
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the provider is.")
    ] = None,
    thinking: Annotated[
        bool | None,
        typer.Option(
            "--thinking/--no-thinking",
            help="Show the model's thinking, on standard error if the answer is piped.  "
            "[default: on a terminal]",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the usage, on standard error.")
    ] = False,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="Show model calls and tools with times and cost, on standard error."
        ),
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Store the conversation under a name, and continue it.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("-c", "--continue", help="Continue the last stored conversation."),
    ] = False,
    conversation: ConversationOption = None,
    log: LogOption = None,
    store: StoreOption = None,
    color: Annotated[bool, typer.Option("--color/--no-color", help="Off also by NO_COLOR.")] = True,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print output, usage, finish reason and messages as JSON."),
    ] = False,
) -> int:
    """Ask a model. Without a prompt, in a terminal, hold a conversation.

    \b
    dragoman chat "Name three rivers"
    dragoman chat 'What is in @photo.jpg?' -m openai:gpt-4o
    git diff | dragoman chat "Review this:"
    echo "Name a river" | dragoman chat -m ollama
    dragoman chat --tools mytools "Delete notes.txt."
    dragoman chat --tools mytools --trace "How warm is it in Oslo?"
    dragoman chat --thread trip "I like trains."
    dragoman chat -c "Where do I go?"                    the last conversation, named or not
    dragoman chat "A river" --output-schema '{"type": "object", "properties": {"name": {"type": "string"}}}'

    \b
    The model is -m, else the last model of a stored conversation, else DRAGOMAN_MODEL,
    else that of dragoman models default, else local: the embedded model, which needs no key.
    Keys come from environment variables (dragoman providers lists them) or dragoman keys. Piped input is data: only PROMPT attaches files.
    Ctrl-C stops the answer.
    """
    schema = _load_schema(output_schema) if output_schema is not None else None
    is_named = thread is not None or conversation is not None
    if thread is not None and conversation is not None:
        raise typer.BadParameter("give --thread or --conversation", param_hint="--conversation")
    if is_named and again:
        raise typer.BadParameter("give one conversation, not both", param_hint="--continue")
    # The store keeps what is gone on with. Other conversations are logged.
    prompt_log = PromptLog(store, is_on=not (is_named or again) and is_logging(log))
    if conversation is not None:
        check_thread(store, conversation)
        thread = conversation
    # Only a model on the command line changes the model of a conversation.
    source = context.get_parameter_source("model")
    if (thread is not None or again) and (source is None or source.name != "COMMANDLINE"):
        model, base_url = _find_model_of_thread(store, thread, model, base_url)
    if base_url is None:
        _load_early(model or "local")
    from dragoman import providers
    from dragoman.agent import Agent
    from dragoman.cli.modules import load_tools
    from dragoman.cli.screen import Screen, TraceStream
    from dragoman.providers.keys import find_key
    from dragoman.request import Settings
    from dragoman.tracing import trace as make_trace

    effort: str | int | None = reasoning
    if reasoning and reasoning.isdecimal():
        effort = int(reasoning)
    settings = Settings(
        temperature=temperature, max_tokens=max_tokens, reasoning=cast("Reasoning | None", effort)
    )
    user_tools = load_tools(tools) if tools is not None else ()
    memory = None
    if thread is not None or again:
        memory = open_memory(store)
    agent = Agent[None](
        model,
        tools=user_tools,
        system=system and replace_invalid_text(system),
        settings=settings,
        base_url=base_url,
        memory=memory,
        hooks=make_trace(TraceStream(lambda: screen.break_line())) if trace else (),
    )
    # A missing key is reported before anything is read or typed.
    find_key(providers.get(agent.provider_name))
    content = parse_prompt(prompt, read_piped())
    # Standard input is None in a Windows process without a console.
    converses = not content and sys.stdin is not None and sys.stdin.isatty()
    if not content and not converses:
        raise typer.BadParameter(
            "there is nothing to ask; give a prompt, or pipe one in", param_hint="PROMPT"
        )
    if converses and json:
        raise typer.BadParameter("needs a prompt", param_hint="--json")
    # JSON is printed when it is complete, so thinking before it would only be in the way.
    if json or (schema is not None and not converses):
        thinking = False
    screen = Screen(colour=color, thinking=thinking)
    if converses:
        from dragoman.cli.converse import converse

        return converse(agent, screen, prompt_log, thread=thread, schema=schema, verbose=verbose)

    import asyncio

    return asyncio.run(
        _answer_once(
            agent,
            content,
            screen,
            prompt_log,
            thread=thread,
            schema=schema,
            verbose=verbose,
            json=json,
        )
    )


def _find_model_of_thread(
    store: str | None, thread: str | None, usual: str | None, base_url: str | None
) -> tuple[str | None, str | None]:
    """Returns the model that answered last in the conversation that `dragoman chat` goes on with
    and the base URL for it, or `usual` if the conversation is new.

    A conversation with one model must not go to another one only because a variable changed.
    """
    import asyncio

    from dragoman import providers
    from dragoman.errors import SettingsError

    origin = asyncio.run(find_last_origin(store, thread))
    if origin is None or not origin.model:
        return usual, base_url
    model = f"{origin.provider}:{origin.model}"
    try:
        provider = providers.get(origin.provider)
    except SettingsError as error:
        raise SettingsError(
            f"this conversation was held with {model}; -m says who answers now ({error.message})"
        ) from error
    if model != usual and origin.provider != (usual or "local"):
        echo(
            f"note: {model} answers, as before in this conversation; -m asks another model",
            err=True,
        )
    # A provider such as openai-compatible has no URL of its own: the stored one is used.
    needs_url = provider.base_url is None and base_url is None and not provider.by_url
    return model, origin.endpoint if needs_url else base_url


def _load_early(model: str) -> None:
    """Starts to load the embedded model of `dragoman chat`, if it is the one, while the rest of the
    program is imported."""
    from dragoman.model.resolve_model import parse_model_string

    string = parse_model_string(model)
    if string.provider == "local":
        from dragoman.providers.local import preload_model

        preload_model(string.chat)


async def _answer_once(
    agent: Agent[None],
    content: list[Content],
    screen: Screen,
    log: PromptLog,
    *,
    thread: str | None,
    schema: Json | None,
    verbose: bool,
    json: bool,
) -> int:
    """Chats once: asks, answers and returns the exit code. JSON by a schema is shown when it is
    complete and valid; until then a terminal shows its end."""
    from asyncio import CancelledError
    from functools import reduce
    from operator import add

    from dragoman.cli.ctrl_c import Interrupts
    from dragoman.cli.screen import find_cost, format_usage, show_notes, show_pending
    from dragoman.cli.send_prompt import RunChoices, make_asker, send_and_ask
    from dragoman.message import FinishReason

    # Incomplete JSON is of no use to a program that reads the output.
    whole = json or schema is not None
    async with agent, open_thread(agent, thread) as begun:
        with Interrupts() as interrupts:
            try:
                screen.warm_up(agent.model)
                show = screen.show
                if whole:
                    show = _ignore if json else screen.follow
                asks = make_asker(screen, interrupts)
                options: RunChoices = {"output_schema": schema, "thread_id": begun.id}
                results = await send_and_ask(
                    agent, content, show, interrupts, begun.messages, asks, **options
                )
                result = results[-1]
                if whole and not json:
                    screen.show(result)
            except CancelledError:
                return INTERRUPTED
            finally:
                screen.finish()
                await log.write(begun.id, begun.messages)
    usages = [finished.usage for finished in results if finished.usage is not None]
    usage = reduce(add, usages) if usages else None
    if json:
        echo_json(_results_to_json(results, usage, find_cost(results)))
    for finished in results:
        show_notes(finished)
    show_pending(result.pending, "it is unanswered; in a terminal dragoman asks for the answer")
    if verbose:
        echo(format_usage(usage, find_cost(results)), err=True)
    if result.pending:
        return 1
    return INTERRUPTED if result.finish_reason is FinishReason.cancelled else 0


def _results_to_json(
    results: Sequence[ChatResult[str]], usage: Usage | None, cost: Decimal | None
) -> Json:
    """Returns what `dragoman chat --json` prints for the runs of one prompt."""
    last = results[-1]
    messages = [message for result in results for message in result.messages]
    fields: Json = {
        "output": last.output,
        "finish_reason": last.finish_reason,
        "usage": usage,
        "messages": messages,
    }
    if cost is not None:
        fields["cost"] = f"{cost:f}"
    if last.pending:
        fields["pending"] = last.pending
    return fields


def _ignore(_: object) -> None:
    pass
