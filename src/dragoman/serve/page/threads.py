"""Shows, renames and deletes the caller's conversations.

An agent with a memory has them there. Of one without a memory they are what the server kept of the
runs in its log.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import NamedTuple

import anyio

from dragoman.errors import InvalidRequestError, ModelNotFoundError, ThreadNotFoundError
from dragoman.event import MessageStarted
from dragoman.history.copy_memos import hide_memos_from
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.memory.memory import Memory
from dragoman.message import Message, Role
from dragoman.runs.log import RunStatus
from dragoman.serve.core.agents import ServedAgent
from dragoman.serve.core.answer_record import latest_key
from dragoman.serve.core.call import Call
from dragoman.serve.core.threads import check_name, is_thread_of, name_of, resource_of, thread_id
from dragoman.serve.core.turn import read_memory
from dragoman.serve.page.agents import find_served, list_served
from dragoman.serve.page.door import PageRequest, Reply
from dragoman.serve.page.views import (
    dump_interrupt,
    dump_run,
    find_own_runs,
    last_origin,
    model_of,
    show_messages,
)
from dragoman.serve.store.stored_answer import Answered

__all__ = [
    "delete_thread",
    "find_latest",
    "list_threads",
    "read_conversation",
    "read_thread",
    "rename_thread",
    "show_thread",
]

_PER_PAGE = 30
_MESSAGES = 100
"""Messages of a page."""
_MOST_FOUND = 200
"""Messages that a search looks at, and threads whose titles it looks at."""
_TITLE = 80
"""Characters of a title that is made of a question."""
_END_SECONDS = 5.0
"""So long a run that is cancelled may take to its end."""
_RUNS_AT_ONCE = 500
"""Runs of a log that are read at a time."""
_MOST_BRANCHES = 1000
"""Branches of a conversation that are deleted."""


class _Entry(NamedTuple):
    """A conversation in the list."""

    id: str
    updated_at: datetime
    title: str | None
    memory: Memory | None


async def list_threads(request: PageRequest) -> Reply:
    """Answers with a page of conversations, the latest first."""
    call, start = request.call, request.page * _PER_PAGE
    words = call.query.get("q", "").strip()[:_TITLE]
    most = _MOST_FOUND if words else start + _PER_PAGE + 1
    entries: list[_Entry] = []
    for memory in _memories(call):
        entries += await _list_stored(call, memory, most)
    if any(served.agent.memory is None for served in list_served(call)):
        entries += await _list_logged(call, {entry.id for entry in entries}, most)
    entries.sort(key=lambda entry: entry.updated_at, reverse=True)
    if words:
        entries = await _search(call, entries, words)
    page_entries = entries[start : start + _PER_PAGE]
    items = [
        {
            "id": name_of(resource_of(call), entry.id),
            "title": await _find_title(call, entry),
            "updated_at": entry.updated_at,
        }
        for entry in page_entries
    ]
    more = len(entries) > start + _PER_PAGE
    return Reply({"items": items, "page": request.page, "has_more": more})


def _memories(call: Call) -> list[Memory]:
    """Returns the memories of the caller's agents, each once."""
    memories = [served.agent.memory for served in list_served(call)]
    return list({id(memory): memory for memory in memories if memory is not None}.values())


async def _list_stored(call: Call, memory: Memory, most: int) -> list[_Entry]:
    resource = resource_of(call)
    page = await memory.threads(resource_id=resource, per_page=most)
    return [
        _Entry(thread.id, thread.updated_at, thread.title or None, memory)
        for thread in page.items
        if is_thread_of(thread.id, resource)
    ]


async def _list_logged(call: Call, seen: set[str], most: int) -> list[_Entry]:
    """Returns the conversations of agents without a memory."""
    entries: list[_Entry] = []
    skip, resource = 0, resource_of(call)
    # A conversation may have many runs, so that a page of runs may hold few of them.
    while statuses := await find_own_runs(call, most=_RUNS_AT_ONCE, skip=skip):
        for status in statuses:
            thread = status.thread_id
            if thread is None or thread in seen or not is_thread_of(thread, resource):
                continue
            seen.add(thread)
            latest = await find_latest(call, thread)
            # What was deleted is still in the log.
            if latest is not None:
                time = datetime.fromtimestamp(status.started_at, UTC)
                entries.append(_Entry(thread, time, _question(latest.request.messages), None))
            if len(entries) == most:
                return entries
        skip += len(statuses)
    return entries


async def _search(call: Call, entries: list[_Entry], words: str) -> list[_Entry]:
    """Returns the entries that have these words in their title or in a message."""
    matches: set[str] = set()
    for memory in _memories(call):
        page = await memory.search(words, resource_id=resource_of(call), per_page=_MOST_FOUND)
        matches |= {stored.thread_id for stored in page.items}
    return [
        entry
        for entry in entries
        if entry.id in matches or words.lower() in (entry.title or "").lower()
    ]


async def _find_title(call: Call, entry: _Entry) -> str:
    if entry.title is not None or entry.memory is None:
        return entry.title or ""
    page = await entry.memory.recall(entry.id, resource_id=resource_of(call), per_page=5)
    return _question(hide_memos_from("ag_ui", page.items)) or ""


def _question(messages: Sequence[Message]) -> str | None:
    """Returns the beginning of the first question among messages."""
    texts = [message.text for message in messages if message.role is Role.USER and message.text]
    return texts[0][:_TITLE] if texts else None


class _ThreadOfCaller(NamedTuple):
    """A conversation of the caller."""

    id: str
    name: str
    """As the page calls it."""
    served: ServedAgent
    """The agent that answered last."""
    latest: Answered | None
    """What the server kept of its latest run."""


async def find_latest(call: Call, thread: str) -> Answered | None:
    """Returns what the server kept of the latest run in a conversation."""
    return await call.service.answers.find(call.caller.id, [latest_key(thread), f"thread:{thread}"])


async def read_thread(call: Call) -> _ThreadOfCaller:
    """Returns the conversation that the path names.

    Raises:
        ModelNotFoundError: the caller has none of that name.
        InvalidRequestError: it is no name.
    """
    name = check_name(call.parameters["id"], "the conversation's id")
    thread = thread_id(resource_of(call), name)
    latest = await find_latest(call, thread)
    served = find_served(call, "")
    if latest is not None:
        with suppress(ModelNotFoundError):
            served = find_served(call, latest.request.model)
    else:
        for candidate in list_served(call):
            if await _is_stored(call, candidate.agent.memory, thread):
                return _ThreadOfCaller(thread, name, candidate, None)
        raise ModelNotFoundError(f"there is no conversation {name!r:.200} here")
    return _ThreadOfCaller(thread, name, served, latest)


async def _is_stored(call: Call, memory: Memory | None, thread: str) -> bool:
    if memory is None or not is_thread_of(thread, resource_of(call)):
        return False
    return await memory.thread(thread, resource_id=resource_of(call)) is not None


async def show_thread(request: PageRequest) -> Reply:
    """Answers with a conversation: its newest messages, what waits, and the run that goes on."""
    call = request.call
    conversation = await read_thread(call)
    served, latest = conversation.served, conversation.latest
    run = await _find_run(call, latest)
    running_ids = await _list_told(call, run) if run is not None and not run.is_over else set[str]()
    title, messages, more = await _read_messages(request, conversation)
    pending: Sequence[Interrupt] = ()
    if latest is not None and latest.state != "in_progress":
        pending = latest.pending
    value: Json = {
        "id": conversation.name,
        "title": title or "",
        "titles": served.agent.memory is not None and not served.agent.memory.read_only,
        "agent": served.name,
        "model": model_of(last_origin(messages)),
        "messages": show_messages(
            call, [message for message in messages if message.id not in running_ids]
        ),
        "page": request.page,
        "has_more": more,
        "pending": [dump_interrupt(interrupt) for interrupt in pending],
        "run": None if run is None else dump_run(call, run, served.name),
    }
    return Reply(value)


async def _find_run(call: Call, latest: Answered | None) -> RunStatus | None:
    if latest is None or latest.run_id is None:
        return None
    return (await call.service.log.status([latest.run_id])).get(latest.run_id)


async def _list_told(call: Call, run: RunStatus) -> set[str]:
    """Returns the ids of the messages that a run has told so far."""
    pages: AsyncGenerator[list[object], None] = call.service.runs.stored_events(run)  # pyright: ignore[reportAssignmentType]
    return {
        event.message_id
        async for page in pages
        for event in page
        if isinstance(event, MessageStarted)
    }


async def _read_messages(
    request: PageRequest, conversation: _ThreadOfCaller
) -> tuple[str | None, list[Message], bool]:
    """Returns the title, the messages of a page, and whether there are earlier ones."""
    call, memory, latest = request.call, conversation.served.agent.memory, conversation.latest
    if memory is not None:
        try:
            page = await memory.recall(
                conversation.id,
                resource_id=resource_of(call),
                page=request.page,
                per_page=_MESSAGES,
                newest_first=True,
            )
        except ThreadNotFoundError:
            return None, [], False
        thread = await memory.thread(conversation.id, resource_id=resource_of(call))
        messages = hide_memos_from("ag_ui", page.items[::-1])
        title = thread.title if thread is not None else None
        return title or _question(messages), [*messages], page.has_more
    messages = await _read_kept(call, latest)
    end = max(len(messages) - request.page * _MESSAGES, 0)
    start = max(end - _MESSAGES, 0)
    return _question(messages), messages[start:end], start > 0


async def _read_kept(call: Call, latest: Answered | None) -> list[Message]:
    """Returns the messages of a conversation that the server kept."""
    if latest is None:
        return []
    most = call.service.limits.conversation_bytes
    chain = await call.service.answers.chain(call.caller.id, latest.id, most_bytes=most)
    return [message for answered in chain for message in answered.messages]


async def read_conversation(call: Call) -> list[Message]:
    """Returns all messages of the conversation that the path names, as a model reads them.

    Raises:
        ModelNotFoundError: the caller has none of that name.
    """
    conversation = await read_thread(call)
    memory = conversation.served.agent.memory
    if memory is None:
        return await _read_kept(call, conversation.latest)
    messages, _ = await read_memory(memory, conversation.id, resource_of(call))
    return messages


async def rename_thread(request: PageRequest) -> Reply:
    """Gives a conversation a title.

    Raises:
        InvalidRequestError: it is no title, or the agent has no memory that could keep it.
    """
    title = request.read_text("title").strip()
    if not title or not title.isprintable():
        raise InvalidRequestError('"title" must be a text of 1 to 200 characters').at(field="title")
    call = request.call
    conversation = await read_thread(call)
    memory = conversation.served.agent.memory
    if memory is None or memory.read_only:
        raise InvalidRequestError("the agent has no memory, so its conversations have no titles")
    await memory.update_thread(conversation.id, resource_id=resource_of(call), title=title)
    return Reply({"id": conversation.name, "title": title})


async def _end_run(call: Call, run: RunStatus) -> None:
    """Cancels a run, and waits until what it gave is kept: else that would come back."""
    await call.service.runs.cancel(run.run_id)
    with anyio.move_on_after(_END_SECONDS):
        async with aclosing(call.service.runs.pages(run.run_id, run.end)) as pages:
            async for _ in pages:
                pass


async def delete_thread(request: PageRequest) -> Reply:
    """Deletes a conversation, and ends the run that goes on in it."""
    call = request.call
    conversation = await read_thread(call)
    run = await _find_run(call, conversation.latest)
    if run is not None and not run.is_over:
        await _end_run(call, run)
    for memory in _memories(call):
        if not memory.read_only:
            await memory.delete_thread(conversation.id, resource_id=resource_of(call))
    answers, owner = call.service.answers, call.caller.id
    # Branches that were left are kept beside the latest.
    for _ in range(_MOST_BRANCHES):
        latest = await find_latest(call, conversation.id)
        if latest is None:
            break
        chain = await answers.chain(owner, latest.id)
        for answered in chain or [latest]:
            await answers.delete(owner, answered.id)
    return Reply(None, 204)
