"""`dragoman chat`: one answer, or a conversation in a terminal.

`chat` checks the options, loads the agent and its memory, and starts either `_answer_once` or
`interactive.converse`. The embedded model starts to load before the other imports, which take about
as long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from dragoman.cli.chat_options import (
    ApproveOption,
    AttachmentOption,
    AttachmentTypeOption,
    DebugOption,
    Draft,
    ExtractLastOption,
    ExtractOption,
    FragmentOption,
    FunctionsOption,
    MarkdownOption,
    ModelOptionOption,
    ParamOption,
    SaveOption,
    SchemaMultiOption,
    SchemaOption,
    SystemFragmentOption,
    TemplateOption,
    ToolOption,
    make_template,
    pair,
)
from dragoman.cli.completion import complete_model, complete_thread
from dragoman.cli.fenced_code import extract_code
from dragoman.cli.prompt_log import ConversationOption, LogOption, PromptLog, is_logging
from dragoman.cli.settings import choose_model, expand_alias
from dragoman.cli.terminal import INTERRUPTED, echo, echo_json
from dragoman.cli.threads import (
    StoreOption,
    check_thread,
    find_last_origin,
    open_memory,
    open_thread,
)
from dragoman.json_bytes import Json, JsonMap

if TYPE_CHECKING:
    from decimal import Decimal

    from dragoman.agent import Agent
    from dragoman.cli.screen import Screen
    from dragoman.message import Content, Usage
    from dragoman.result import ChatResult

__all__ = ["chat"]

_EFFORTS = ("off", "low", "medium", "high")


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
            autocompletion=complete_model,
            callback=choose_model,
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("-s", "--system", metavar="TEXT", help="A system prompt.")
    ] = None,
    template: TemplateOption = None,
    param: ParamOption = None,
    save: SaveOption = None,
    fragment: FragmentOption = None,
    system_fragment: SystemFragmentOption = None,
    attachment: AttachmentOption = None,
    attachment_type: AttachmentTypeOption = None,
    option: ModelOptionOption = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=2, help="How freely to choose words.")
    ] = None,
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
    schema: SchemaOption = None,
    schema_multi: SchemaMultiOption = None,
    extract: ExtractOption = False,
    extract_last: ExtractLastOption = False,
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="A Python module, here or installed, whose @tool functions the model may call.",
        ),
    ] = None,
    tool: ToolOption = None,
    functions: FunctionsOption = None,
    tools_debug: DebugOption = False,
    tools_approve: ApproveOption = False,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the provider is.")
    ] = None,
    md: MarkdownOption = False,
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
            autocompletion=complete_thread,
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
    dragoman chat "A river" --schema 'name, length int: in km, countries list'
    dragoman chat -f notes.md -a photo.jpg -o temperature 0 "What is new?"
    dragoman chat -s 'Translate to $language' -p language French --save translate
    dragoman chat -t translate -p language Danish "Good morning"

    \b
    The model is -m, else that of the template, else the last model of a stored conversation, else
    DRAGOMAN_MODEL, else that of dragoman models default, else local: the embedded model, which needs
    no key. Keys come from environment variables (dragoman providers lists them) or dragoman keys.
    Piped input is data: only PROMPT attaches files.
    Ctrl-C stops the answer.
    """
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
    # Only a model on the command line or in a template changes the model of a conversation.
    source = context.get_parameter_source("model")
    code = None
    if functions:
        from dragoman.cli.tool_choices import read_functions

        code = read_functions(functions)
    is_own = source is not None and source.name == "COMMANDLINE"
    draft = Draft(
        prompt,
        make_template(
            option=option,
            settings={
                "temperature": temperature,
                "max_tokens": max_tokens,
                "reasoning": reasoning,
            },
            attachment_type=attachment_type,
            # With --save the prompt is that of the template, in which it may have variables.
            prompt=save and prompt,
            defaults=save and dict(pair(param)),
            system=system,
            model=model if is_own else None,
            fragments=fragment,
            system_fragments=system_fragment,
            attachments=attachment,
            schema=schema,
            schema_multi=schema_multi,
            tools=tool,
            tools_module=tools,
            functions=code,
            extract=extract,
            extract_last=extract_last,
        ),
        template,
        None if save else param,
    )
    if save is not None:
        if template is not None or thread is not None or again:
            raise typer.BadParameter("goes with no template or conversation", param_hint="--save")
        draft.save(save)
        return 0
    prompt_options = draft.template
    json_schema = draft.load_schema()
    if prompt_options.model:
        # A template may name an alias.
        model = expand_alias(prompt_options.model)
    elif thread is not None or again:
        model, base_url = _find_model_of_thread(store, thread, model, base_url)
    if base_url is None:
        _load_early(model or "local")
    from dragoman import providers
    from dragoman.agent import Agent
    from dragoman.cli.model_options import sort_options
    from dragoman.cli.screen import Screen, TraceStream
    from dragoman.cli.tool_choices import ToolChoice, choose_tools, debug_hooks
    from dragoman.model.resolve_model import parse_model_string
    from dragoman.providers.keys import find_key
    from dragoman.request import Settings
    from dragoman.tracing import trace as make_trace

    settings, fields = sort_options(prompt_options.options, Settings())
    user_tools = choose_tools(
        ToolChoice(
            prompt_options.tools,
            prompt_options.tools_module,
            prompt_options.functions,
            tools_approve,
        )
    )
    # A missing key is reported before anything is read or typed.
    find_key(providers.get(parse_model_string(model or "local").provider))
    content, system_text = draft.load_content()
    hooks = [debug_hooks(lambda: screen.break_line())] if tools_debug else []
    if trace:
        hooks.append(make_trace(TraceStream(lambda: screen.break_line())))
    memory = None
    if thread is not None or again:
        memory = open_memory(store)
    agent = Agent[None](
        model,
        tools=user_tools,
        system=system_text or None,
        settings=settings,
        options=fields,
        base_url=base_url,
        memory=memory,
        hooks=hooks,
    )
    # Standard input is None in a Windows process without a console.
    converses = not content and sys.stdin is not None and sys.stdin.isatty()
    if not content and not converses:
        raise typer.BadParameter(
            "there is nothing to ask; give a prompt, or pipe one in", param_hint="PROMPT"
        )
    if converses and json:
        raise typer.BadParameter("needs a prompt", param_hint="--json")
    # JSON is printed when it is complete, so thinking before it would only be in the way.
    cuts = prompt_options.extract or prompt_options.extract_last
    if json or ((json_schema is not None or cuts) and not converses):
        thinking = False
    screen = Screen(colour=color, thinking=thinking, markdown=md)
    if converses:
        from dragoman.cli.converse import converse

        return converse(
            agent, screen, prompt_log, thread=thread, schema=json_schema, verbose=verbose
        )

    import asyncio

    return asyncio.run(
        _answer_once(
            agent,
            content,
            screen,
            prompt_log,
            thread=thread,
            schema=json_schema,
            cut=partial(extract_code, last=prompt_options.extract_last) if cuts else None,
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
        from dragoman.cli.fetch_model import offer_model

        offer_model(string.chat or "")
        from dragoman.providers.local import preload_model

        preload_model(string.chat)


async def _answer_once(
    agent: Agent[None],
    content: list[Content],
    screen: Screen,
    log: PromptLog,
    *,
    thread: str | None,
    schema: JsonMap | None,
    cut: Callable[[str], str] | None,
    verbose: bool,
    json: bool,
) -> int:
    """Chats once: asks, answers and returns the exit code. JSON by a schema is shown when it is
    complete and valid; until then a terminal shows it as a table.

    `cut`: returns what of the answer is shown, once it is complete.
    """
    from asyncio import CancelledError
    from functools import reduce
    from operator import add

    from dragoman.cli.ctrl_c import Interrupts
    from dragoman.cli.screen import find_cost, format_usage, show_notes, show_pending
    from dragoman.cli.send_prompt import RunChoices, make_asker, send_and_ask
    from dragoman.message import FinishReason

    # Incomplete JSON is of no use to a program that reads the output.
    whole = json or schema is not None or cut is not None
    table = None
    if schema is not None and not json and sys.stderr.isatty():
        from dragoman.cli.live_table import LiveTable

        table = LiveTable(schema, screen.finish)
    async with agent, open_thread(agent, thread) as begun:
        with Interrupts() as interrupts:
            try:
                screen.warm_up(agent.model)
                show = screen.show
                if whole:
                    show = _ignore if json else screen.follow
                if table is not None:
                    show = table.follow
                asks = make_asker(screen, interrupts)
                options: RunChoices = {"output_schema": schema, "thread_id": begun.id}
                results = await send_and_ask(
                    agent, content, show, interrupts, begun.messages, asks, **options
                )
                if table is not None:
                    table.close()
                if cut is not None:
                    results[-1] = msgspec.structs.replace(
                        results[-1], output=cut(results[-1].output)
                    )
                result = results[-1]
                if whole and not json:
                    screen.show(result)
            except CancelledError:
                return INTERRUPTED
            finally:
                if table is not None:
                    table.close()
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
