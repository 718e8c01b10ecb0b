"""`dragoman logs`: the prompts and answers that were logged or stored in threads.

An exchange is a prompt of a thread with the messages up to the next prompt. The latest ones are
found thread by thread, since a thread's last change is never before its exchanges.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from dragoman.cli.fenced_code import extract_code
from dragoman.cli.prompt_log import ConversationOption, is_logging
from dragoman.cli.settings import change_settings, expand_alias
from dragoman.cli.terminal import echo, echo_json, to_one_line
from dragoman.cli.threads import StoreOption, describe_store, read_messages, run_with_memory
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json

if TYPE_CHECKING:
    from dragoman.memory import Memory, Thread
    from dragoman.message import Message, Usage

__all__ = ["LOGS"]

LOGS = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Prompts and answers that were logged. Options: dragoman logs list --help.",
)
_SHORT = 100
"""Most characters of a prompt in the short form."""
_LONGEST_AGO = datetime.min.replace(tzinfo=UTC)


class LoggedPrompt(NamedTuple):
    """A prompt and what answered it."""

    thread: Thread
    """The conversation."""
    messages: tuple[Message, ...]
    """The prompt, and the messages after it."""

    @property
    def time(self) -> datetime:
        """Returns when it was asked."""
        return self.messages[0].created_at or _LONGEST_AGO

    @property
    def prompt(self) -> str:
        """Returns the text of the prompt."""
        return self.messages[0].text

    @property
    def answers(self) -> list[Message]:
        """Returns the messages of the model."""
        return [message for message in self.messages if message.origin is not None]

    @property
    def response(self) -> str:
        """Returns the text of the answer."""
        return "\n\n".join(message.text for message in self.answers if message.text)

    @property
    def model(self) -> str:
        """Returns the model that answered last, or an empty text."""
        origins = [message.origin for message in self.answers if message.origin is not None]
        return f"{origins[-1].provider}:{origins[-1].model or ''}" if origins else ""

    @property
    def usage(self) -> Usage | None:
        """Returns the tokens of all its model calls, if the provider told them."""
        usages = [message.usage for message in self.answers if message.usage is not None]
        return reduce(add, usages) if usages else None


def _split_exchanges(thread: Thread, messages: Sequence[Message]) -> list[LoggedPrompt]:
    """Returns the exchanges of a thread, in order."""
    from dragoman.codec.memos import select_visible
    from dragoman.message import Role

    groups: list[list[Message]] = []
    for _, message in select_visible(messages):
        is_prompt = message.role is Role.USER and not message.tool_results
        if is_prompt or not groups:
            groups.append([])
        groups[-1].append(message)
    return [LoggedPrompt(thread, tuple(group)) for group in groups]


async def _iterate_threads(memory: Memory) -> AsyncGenerator[Thread]:
    """Yields the stored threads, the latest first, and reads them page by page."""
    page, more = 0, True
    while more:
        threads = await memory.threads(page=page, per_page=20)
        page, more = page + 1, threads.has_more
        for thread in threads.items:
            yield thread


async def _find_latest(
    memory: Memory, count: int, is_wanted: Callable[[LoggedPrompt], bool]
) -> list[LoggedPrompt]:
    """Returns the latest exchanges that are wanted, the latest last. `count`: most of them; 0: all."""
    latest: list[LoggedPrompt] = []
    async for thread in _iterate_threads(memory):
        if count and len(latest) == count and latest[0].time >= thread.updated_at:
            break
        messages = await read_messages(memory, thread.id)
        latest += filter(is_wanted, _split_exchanges(thread, messages))
        latest.sort(key=lambda exchange: exchange.time)
        latest = latest[-count:]
    return latest


async def _find_by_words(
    memory: Memory, query: str, count: int, is_wanted: Callable[[LoggedPrompt], bool]
) -> list[LoggedPrompt]:
    """Returns the latest exchanges with a message that contains all these words, the latest last."""
    matches = await memory.search(query, per_page=None)
    ids = {match.message.id for match in matches.items}

    def has_words(exchange: LoggedPrompt) -> bool:
        return is_wanted(exchange) and any(message.id in ids for message in exchange.messages)

    matching: list[LoggedPrompt] = []
    for thread_id in dict.fromkeys(match.thread_id for match in matches.items):
        thread = await memory.thread(thread_id)
        if thread is None:
            continue
        messages = await read_messages(memory, thread_id)
        matching += filter(has_words, _split_exchanges(thread, messages))
    matching.sort(key=lambda exchange: exchange.time)
    return matching[-count:]


async def _find_in_thread(memory: Memory, name: str | None) -> list[LoggedPrompt]:
    """Returns the exchanges of a conversation, by default the last one.

    Raises:
        HistoryError: there is none.
    """
    if name is None:
        threads = (await memory.threads(per_page=1)).items
        thread = threads[0] if threads else None
    else:
        thread = await memory.thread(name)
    if thread is None:
        raise HistoryError(f"there is no conversation {to_one_line(name or '')}".rstrip())
    return _split_exchanges(thread, await read_messages(memory, thread.id))


@LOGS.command(name="list")
def list_logs(
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=0, help="How many; 0 for all.  [default: 3]"),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("-q", "--query", "--search", metavar="WORDS", help="Those with all these."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m", "--model", metavar="MODEL", help="Those of a model.", callback=expand_alias
        ),
    ] = None,
    current: Annotated[
        bool, typer.Option("-c", "--current", help="Those of the last conversation.")
    ] = False,
    conversation: ConversationOption = None,
    response: Annotated[
        bool, typer.Option("-r", "--response", help="Print only the last answer.")
    ] = False,
    extract: Annotated[
        bool, typer.Option("-x", "--extract", help="Print only the last answer's first code block.")
    ] = False,
    short: Annotated[bool, typer.Option("-s", "--short", help="Print no answers.")] = False,
    usage: Annotated[bool, typer.Option("-u", "--usage", help="Print the tokens, too.")] = False,
    store: StoreOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show the last prompts and answers, the latest last.

    Conversations of chat --thread are among them.

    \b
    dragoman logs -n 10 --short
    dragoman logs -q "glomma river" -m ollama:llama3.2
    dragoman logs -r > answer.md
    dragoman logs -c
    """

    def is_wanted(exchange: LoggedPrompt) -> bool:
        return model is None or model in (exchange.model, exchange.model.partition(":")[0])

    async def find(memory: Memory) -> list[LoggedPrompt]:
        if current or conversation is not None:
            in_thread = await _find_in_thread(memory, conversation)
            return [exchange for exchange in in_thread if is_wanted(exchange)][-(count or 0) :]
        limit = 3 if count is None else count
        if query is not None:
            return await _find_by_words(memory, query, limit, is_wanted)
        return await _find_latest(memory, limit, is_wanted)

    exchanges = run_with_memory(store, find)
    if json:
        echo_json([_dump(exchange) for exchange in exchanges])
        return 0
    if not exchanges:
        echo("note: nothing of this is logged", err=True)
        return 1
    if response or extract:
        text = exchanges[-1].response
        echo(extract_code(text) if extract else text)
        return 0
    describe = _describe_shortly if short else _describe
    for exchange in exchanges:
        echo(describe(exchange, with_usage=usage))
    return 0


def _dump(exchange: LoggedPrompt) -> Json:
    """Returns an exchange of the log as JSON."""
    tokens = exchange.usage
    return {
        "id": exchange.messages[0].id,
        "model": exchange.model,
        "prompt": exchange.prompt,
        "response": exchange.response,
        "conversation_id": exchange.thread.id,
        "conversation_name": exchange.thread.title or exchange.thread.id,
        "datetime_utc": exchange.time,
        "input_tokens": tokens and tokens.input_tokens,
        "output_tokens": tokens and tokens.output_tokens,
        "messages": [msgspec.Raw(message.to_json()) for message in exchange.messages],
    }


def _describe(exchange: LoggedPrompt, *, with_usage: bool) -> str:
    """Returns an exchange of the log as Markdown."""
    calls = [
        f"- **{call.name}**: `{msgspec.json.encode(call.arguments, enc_hook=str).decode()}`"
        for message in exchange.answers
        for call in message.tool_calls
    ]
    sections = [
        f"# {exchange.time.astimezone():%Y-%m-%d %H:%M:%S}    conversation: {exchange.thread.id}",
        f"Model: **{exchange.model}**",
        f"## Prompt\n\n{exchange.prompt}",
    ]
    if calls:
        sections.append("\n".join(["## Tool calls\n", *calls]))
    sections.append(f"## Response\n\n{exchange.response}")
    if with_usage and exchange.usage is not None:
        sections.append(f"## Usage\n\n{_describe_usage(exchange)}")
    return "\n\n".join(sections) + "\n"


def _describe_shortly(exchange: LoggedPrompt, *, with_usage: bool) -> str:
    """Returns an exchange of the log as an element of a YAML list, without the answer."""
    fields: Json = {
        "model": exchange.model,
        "datetime": f"{exchange.time.astimezone():%Y-%m-%d %H:%M:%S}",
        "conversation": exchange.thread.id,
        "prompt": " ".join(exchange.prompt.split())[:_SHORT],
    }
    if with_usage and exchange.usage is not None:
        fields["usage"] = _describe_usage(exchange)
    # A JSON text is one of YAML, whatever is in it.
    lines = [f"{name}: {msgspec.json.encode(text).decode()}" for name, text in fields.items()]
    return "- " + "\n  ".join(lines)


def _describe_usage(exchange: LoggedPrompt) -> str:
    from dragoman.cli.screen import format_usage

    return format_usage(exchange.usage)


@LOGS.command()
def status(store: StoreOption = None) -> None:
    """Show whether prompts are logged, where, and how many conversations there are.

    \b
    dragoman logs status
    """

    async def count_threads(memory: Memory) -> int:
        return len((await memory.threads(per_page=None)).items)

    echo(f"logging is {'on' if is_logging(None) else 'off'}")
    echo(f"store: {describe_store(store)}")
    echo(f"conversations: {run_with_memory(store, count_threads)}")


@LOGS.command()
def path(store: StoreOption = None) -> None:
    """Print where prompts and answers are stored.

    \b
    dragoman logs path
    """
    echo(describe_store(store))


@LOGS.command()
def on() -> None:
    """Log prompts and answers from now on.

    \b
    dragoman logs on
    """
    change_settings(lambda content: content.update(log=True))


@LOGS.command()
def off() -> None:
    """Log no prompts and answers, unless --log asks for it.

    \b
    dragoman logs off
    """
    change_settings(lambda content: content.update(log=False))
