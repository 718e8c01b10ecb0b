"""`dragoman threads`: the stored conversations, and the store in which the command line keeps
them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import msgspec
import typer

from dragoman.cli.embed import ModelOption, make_embedder
from dragoman.cli.terminal import HtmlOption, echo, echo_json, to_one_line
from dragoman.errors import HistoryError, SettingsError

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.json_bytes import Json
    from dragoman.memory import Hit, Memory, StoredMessage
    from dragoman.message import Message, Origin

__all__ = [
    "OpenThread",
    "StoreOption",
    "open_thread",
    "delete",
    "export",
    "find_last_origin",
    "describe_last_message",
    "list_threads",
    "open_memory",
    "search",
    "show",
    "find_store_file",
    "check_thread",
    "describe_store",
    "read_messages",
    "run_with_memory",
]

_LAST = 200
"""Most messages of a thread that a model receives."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DRAGOMAN_STORE",
        help="Where conversations are stored: sqlite:///FILE or postgresql://…  "
        "[default: ~/.local/share/dragoman/threads.db]",
        show_default=False,
    ),
]


def find_store_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of stored conversations: XDG_DATA_HOME/dragoman/threads.db, or
    ~/.local/share/dragoman/threads.db."""
    folder = Path.home() / ".local" / "share"
    if data := environment.get("XDG_DATA_HOME"):
        folder = Path(data).expanduser()
    return folder / "dragoman" / "threads.db"


class OpenThread(NamedTuple):
    """A conversation that continues, or a new one."""

    id: str
    """The thread's id."""
    messages: list[Message]
    """The messages that the model receives."""


@asynccontextmanager
async def open_thread(agent: Agent[Any], name: str | None) -> AsyncGenerator[OpenThread, None]:
    """Opens the conversation with this name, or the last one without a name. An agent without a
    memory gets a new one. The store is closed with the block.

    Raises:
        HistoryError: no conversation is stored.
    """
    from dragoman.memory.conversation import load_thread
    from dragoman.runtime import new_id

    memory = agent.memory
    if memory is None:
        yield OpenThread(new_id(), [])
        return
    async with memory:
        if name is None:
            threads = (await memory.threads(per_page=1)).items
            if not threads:
                raise HistoryError("no conversation is stored yet; start one with --thread NAME")
            name = threads[0].id
        yield OpenThread(name, await load_thread(memory, name, None))


async def find_last_origin(url: str | None, name: str | None) -> Origin | None:
    """Returns the origin of the last model message in a stored thread, by default the last
    conversation; None if there is none."""
    from dragoman.memory.conversation import load_thread

    async with open_memory(url) as memory:
        if name is None:
            threads = (await memory.threads(per_page=1)).items
            if not threads:
                return None
            name = threads[0].id
        messages = await load_thread(memory, name, None)
    return next(
        (message.origin for message in reversed(messages) if message.origin is not None), None
    )


def open_memory(url: str | None, *, embedder: Agent[Any] | None = None) -> Memory:
    """Returns the stored threads at a URL, by default in the user's own file. `embedder`: finds
    messages by their meaning.

    Raises:
        SettingsError: the URL is wrong, the folder cannot be created, or a package is missing.
    """
    from dragoman.memory import Memory, Recall

    if url is None:
        file = find_store_file()
        try:
            # Conversations are private.
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"cannot create {file.parent}: {error.strerror}; give --store"
            ) from error
        url = f"sqlite:///{file}"
    recall = None
    if embedder is not None:
        recall = Recall(embedder, automatic=False)
    return Memory(url, last_messages=_LAST, recall=recall)


def describe_store(url: str | None) -> str:
    """Returns where the threads are: the user's own file, or a URL without its password."""
    from dragoman.transport.redaction import public_url

    return str(find_store_file()) if url is None else public_url(url)


def check_thread(url: str | None, name: str) -> None:
    """Checks that a conversation is stored.

    Raises:
        HistoryError: it is not.
    """
    if run_with_memory(url, lambda memory: memory.thread(name)) is None:
        raise HistoryError(
            f"there is no conversation {to_one_line(name)}; dragoman logs shows them"
        )


T = TypeVar("T")

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The conversation.", show_default=False)]
_SPEAKERS = {"user": ">", "model": "", "system": "system:"}
_WIDTH = 100
"""Most characters of a message in a list."""


def list_threads(
    every: Annotated[
        bool, typer.Option("--all", help="Also those without a name, which dragoman logs shows.")
    ] = False,
    store: StoreOption = None,
    json: _Json = False,
) -> int:
    """List the stored conversations, latest first.

    \b
    dragoman threads list
    dragoman threads list --all
    """

    async def read_threads(memory: Memory) -> list[Any]:
        threads = (await memory.threads(per_page=None)).items
        return [thread for thread in threads if every or not thread.metadata.get("unnamed")]

    threads = run_with_memory(store, read_threads)
    if json:
        _print_json(threads)
        return 0
    if not threads:
        echo("note: no conversation is stored", err=True)
    for thread in threads:
        title = f"  {to_one_line(thread.title)}" if thread.title else ""
        echo(f"{_format_time(thread.updated_at)}  {to_one_line(thread.id)}{title}")
    return 0


def show(
    name: _Name, store: StoreOption = None, json: _Json = False, html: HtmlOption = False
) -> int:
    """Show a conversation.

    \b
    dragoman threads show trip
    dragoman threads show trip --html > trip.html
    """
    from dragoman.cli.transcript import write_thread
    from dragoman.codec.memos import select_visible

    messages = run_with_memory(store, lambda memory: read_messages(memory, name))
    if json:
        _print_json([msgspec.Raw(message.to_json()) for message in messages])
        return 0
    visible = [message for _, message in select_visible(messages)]
    if html:
        sys.stdout.write(write_thread(visible, name))
        return 0
    for message in visible:
        echo(_describe_message(message))
    return 0


def export(
    name: _Name,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="Such as openai_chat or anthropic.")
    ] = "dragoman",
    store: StoreOption = None,
) -> int:
    """Print a conversation as JSON, in any format that dragoman writes.

    What the format cannot hold is reported on standard error.

    \b
    dragoman threads export trip --to openai_chat > trip.json
    """
    from dragoman import formats
    from dragoman.loss import Loss

    if to not in formats.names():
        raise typer.BadParameter(
            f"no format is named {to!r}; there are {', '.join(formats.names())}", param_hint="--to"
        )
    messages = run_with_memory(store, lambda memory: read_messages(memory, name))
    losses: list[Loss] = []
    payload = formats.get(to).dump_messages(messages, losses=losses)
    echo_json(payload)
    for loss in losses:
        if not loss.is_minor:
            echo(f"note: {to_one_line(str(loss))}", err=True)
    return 0


def delete(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…", help="The conversations.", show_default=False)
    ],
    store: StoreOption = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> int:
    """Delete conversations for good, after a confirmation.

    \b
    dragoman threads delete trip
    dragoman threads delete trip old --yes
    """

    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise typer.BadParameter(
            "cannot ask for confirmation without a terminal; give --yes", param_hint="NAME"
        )

    # Nothing is deleted if one name is wrong: it may be a typing error.
    async def find_missing(memory: Memory) -> list[str]:
        return [name for name in names if await memory.thread(name) is None]

    if missing := run_with_memory(store, find_missing):
        for name in missing:
            echo(
                f"error: there is no conversation {to_one_line(name)}; nothing was deleted",
                err=True,
            )
        return 1
    if not yes and not typer.confirm(f"delete {', '.join(map(to_one_line, names))}?", err=True):
        return 1

    async def delete_all(memory: Memory) -> None:
        for name in names:
            await memory.delete_thread(name)

    run_with_memory(store, delete_all)
    return 0


def search(
    text: Annotated[str, typer.Argument(help="Words that a message has.", show_default=False)],
    thread: Annotated[
        str | None, typer.Option(metavar="NAME", help="In this conversation alone.")
    ] = None,
    meaning: Annotated[
        bool, typer.Option("--meaning", help="Find what means the same, not the same words.")
    ] = False,
    model: ModelOption = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, help="Most messages, with --meaning.")
    ] = 10,
    store: StoreOption = None,
    json: _Json = False,
) -> int:
    """Find messages that contain all these words, in any case, latest first.

    With --meaning the nearest in meaning come first. The model that makes their vectors is -m, else that
    of DRAGOMAN_MODEL's provider, else local: the embedded model, which needs no key. Of messages without
    vectors the newest 64 get some first; dragoman memory index makes all.

    \b
    dragoman threads search "glomma river"
    dragoman threads search --meaning "a broken heating" -n 3
    """
    if not meaning:
        if model is not None:
            raise typer.BadParameter("a model is for --meaning", param_hint="--model")
        matches = run_with_memory(store, lambda memory: _find_by_words(memory, text, thread))
    elif not text.strip():
        raise typer.BadParameter("there is nothing to look for", param_hint="TEXT")
    else:
        matches = _find_by_meaning(
            store, model, lambda memory: memory.similar(text, thread_id=thread, limit=limit)
        )
    if json:
        _print_json([_dump_match(match) for match in matches])
    else:
        for match in matches:
            echo(
                f"{to_one_line(match.thread_id)}  {match.message.role}: {to_one_line(match.message.text)[:_WIDTH]}"
            )
    return 0 if matches else 1


async def _find_by_words(
    memory: Memory, text: str, thread: str | None
) -> list[StoredMessage | Hit]:
    return [*(await memory.search(text, thread_id=thread, per_page=None)).items]


def _find_by_meaning(
    store: str | None, model: str | None, find: Callable[[Memory], Awaitable[list[Hit]]]
) -> list[StoredMessage | Hit]:
    """Returns the messages of stored threads that `find` finds with an embeddings model."""
    import asyncio

    async def find_with(agent: Agent[None]) -> list[StoredMessage | Hit]:
        async with agent, open_memory(store, embedder=agent) as memory:
            return [*await find(memory)]

    agent, _ = make_embedder(model, None)
    return asyncio.run(find_with(agent))


def _dump_match(match: StoredMessage | Hit) -> Json:
    """Returns a found message as JSON, for `dragoman threads search`."""
    from dragoman.memory import Hit

    dumped: Json = {"thread": match.thread_id, "message": msgspec.Raw(match.message.to_json())}
    if isinstance(match, Hit):
        return {**dumped, "score": match.score}
    return dumped


def describe_last_message(messages: Sequence[Message]) -> str:
    """Returns the last text of a stored thread in one line."""
    from dragoman.codec.memos import select_visible

    visible = [message for _, message in select_visible(messages)]
    text = next((message.text for message in reversed(visible) if message.text), "")
    if text:
        return f"last: {to_one_line(text)[-_WIDTH:]}"
    return f"{len(messages)} messages"


def run_with_memory(store: str | None, work: Callable[[Memory], Awaitable[T]]) -> T:
    """Runs work with the stored threads, and closes them."""
    import asyncio

    async def done() -> T:
        async with open_memory(store) as memory:
            return await work(memory)

    return asyncio.run(done())


async def read_messages(memory: Memory, name: str) -> list[Message]:
    """Returns the messages of a stored thread. Damaged ones are reported and left out."""

    problems: list[str] = []
    page = await memory.recall(name, per_page=None, problems=problems)
    for problem in problems:
        echo(f"note: {to_one_line(problem)}", err=True)
    return [*page.items]


def _describe_message(message: Message) -> str:
    """Returns a message of a thread for people: text, calls, results and files."""
    from dragoman.message import DataPart, FilePart, LinkPart

    lines = [message.text] if message.text else []
    lines += [
        f"[calls {to_one_line(call.name)} {_format_json(call.arguments)}]"
        for call in message.tool_calls
    ]
    lines += [
        f"[{to_one_line(result.name)}: {_format_json(result.result)[:_WIDTH]}]"
        for result in message.tool_results
    ]
    lines += [
        f"[{part.mime_type or 'file'}]"
        for part in message.parts
        if isinstance(part, DataPart | LinkPart | FilePart)
    ]
    speaker = _SPEAKERS[message.role]
    return "\n".join([f"{speaker} {line}".lstrip() for line in lines or ["[nothing]"]])


def _format_json(value: Any) -> str:
    return to_one_line(msgspec.json.encode(value, enc_hook=str).decode(errors="replace"))


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _print_json(values: Iterable[Any]) -> None:
    echo_json([*values])
