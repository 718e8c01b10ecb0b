"""Checks of a store's messages: saving, querying, searching, deleting, concurrent writers.

Each function is one check: its docstring is the statement that it verifies, and `store_check`
registers it with the method to look at if it fails. A check gets its store and a thread id from
`bench.thread`. Times are fixed (`START`), so that stored values can be compared whole. The
checks of concurrent writers look for lost, reordered or torn batches; the last one needs two
stores on one database and runs only for stores that can be shared.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta, timezone

from dragoman.memory.memo_text import make_memo
from dragoman.memory.store import Batch, MessageQuery, Quote, Store, ThreadChange, ThreadQuery
from dragoman.message import DataPart, Message, ToolResultPart
from dragoman.testing.check import require, require_equal
from dragoman.testing.samples import ANSWER, CONVERSATION, PARTS, TEXT
from dragoman.testing.store.bench import (
    START,
    StoreBench,
    expect_refusal,
    read_branch,
    read_texts,
    save_texts,
    store_check,
)

__all__ = [
    "a_batch_is_atomic",
    "a_message_replaces_the_one_with_its_id",
    "equal_messages_keep_their_ids",
    "messages_can_be_deleted",
    "memos_lose_what_is_deleted",
    "messages_come_back_equal",
    "messages_keep_the_order_of_writing",
    "message_queries_select",
    "concurrent_writes_lose_nothing",
    "concurrent_stores_lose_nothing",
    "search_finds_words",
]

_SAVE = "Store.save"
_MESSAGES = "Store.messages"


@store_check(look=_SAVE)
async def messages_come_back_equal(bench: StoreBench) -> None:
    """Saved messages are read unchanged: every type of content, files in tool results, ids, times
    with zones, turns, metadata, usage."""
    # A zone with half an hour, which is easily lost.
    zone = timezone(timedelta(hours=5, minutes=30))
    result = ToolResultPart("call_one", "look", (DataPart(b"\x00\xff", "image/png"), *PARTS[:1]))
    messages = [
        *CONVERSATION,
        ANSWER.replace(
            turn="the turn", metadata={"a": [1, None, TEXT]}, native={"acme": {"signed": "x"}}
        ),
        Message.user(*PARTS, DataPart(b"", "text/plain")),
        Message.user(result).replace(created_at=START.astimezone(zone)),
        Message.model(),
    ]
    messages = [
        message.replace(id=f"{TEXT} {index}", created_at=message.created_at or START)
        for index, message in enumerate(messages)
    ]
    async with bench.thread() as (store, thread_id):
        await store.save(Batch(thread_id=thread_id, messages=tuple(messages), at=START))
        loaded = [message.message for message in await read_branch(store, thread_id)]
        require_equal(loaded, messages, "what comes back")
        zones = [message.created_at.utcoffset() for message in loaded if message.created_at]
        require_equal(
            zones,
            [message.created_at.utcoffset() for message in messages if message.created_at],
            "the zones of the times",
        )


@store_check(look=_MESSAGES)
async def messages_keep_the_order_of_writing(bench: StoreBench) -> None:
    """Messages are in the order of writing, also if their times are equal or go back. Positions
    grow."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "b", "a", seconds=9)
        await save_texts(store, thread_id, "c")
        # Ids that differ only in case are different messages.
        await save_texts(store, thread_id, "B")
        require_equal(await read_texts(store, thread_id), ["b", "a", "c", "B"], "the order")
        stored = await read_branch(store, thread_id)
        positions = [message.position for message in stored]
        require(
            positions[0] >= 1 and positions == sorted({*positions}),
            f"positions must grow from 1 on, and are {positions}",
        )
        require_equal([message.thread_id for message in stored], [thread_id] * 4, "the thread's id")


@store_check(look=_SAVE)
async def a_message_replaces_the_one_with_its_id(bench: StoreBench) -> None:
    """A message whose id is in the thread replaces that message. Messages with new ids are
    appended. Other threads are unaffected."""
    async with bench.thread() as (store, thread_id), bench.thread() as (other, other_id):
        await save_texts(store, thread_id, "a", "b", "c")
        await save_texts(other, other_id, "b")
        new = (Message.model("new").replace(id="b"), Message.user("d").replace(id="d"))
        await store.save(Batch(thread_id=thread_id, messages=new, at=START))
        require_equal(await read_texts(store, thread_id), ["a", "new", "c", "d"], "the thread")
        require_equal(await read_texts(other, other_id), ["b"], "the other thread")


@store_check(look=_SAVE)
async def equal_messages_keep_their_ids(bench: StoreBench) -> None:
    """Messages with equal content are separate messages, in one thread or two. Deleting one leaves
    the others complete."""
    data = DataPart(b"the same bytes", "image/png")
    messages = tuple(
        [
            Message.user("same", data).replace(id=f"m{number}", created_at=START)
            for number in range(3)
        ]
    )
    async with bench.thread() as (store, thread_id), bench.thread() as (other, other_id):
        await store.save(Batch(thread_id=thread_id, messages=messages, at=START))
        await other.save(Batch(thread_id=other_id, messages=messages[:1], at=START))
        await store.delete_messages(thread_id, ["m0", "m2"], START)
        stored = await read_branch(store, thread_id)
        require_equal([message.message for message in stored], [messages[1]], "what is left")
        await store.delete_thread(thread_id)
        stored = await read_branch(other, other_id)
        require_equal(
            [message.message for message in stored],
            [messages[0]],
            "the other thread, once the first is deleted",
        )


@store_check(look=_SAVE)
async def a_batch_is_atomic(bench: StoreBench) -> None:
    """A refused batch writes nothing, and does not create its thread."""
    async with bench.thread() as (store, thread_id):
        await expect_refusal(
            save_texts(store, thread_id, "a", after="nowhere"),
            "`after` that no message has",
            ["nowhere"],
        )
        require_equal(await store.threads(ThreadQuery(ids=(thread_id,))), [], "the thread")
        await save_texts(store, thread_id, "a")
        await expect_refusal(
            save_texts(store, thread_id, "b", after="nowhere"),
            "`after` that no message has",
            ["nowhere"],
        )
        require_equal(await read_texts(store, thread_id), ["a"], "the thread")


@store_check(look=_MESSAGES)
async def message_queries_select(bench: StoreBench) -> None:
    """`ids`, `after`, `before`, `since`, `until`, `offset`, `limit` and `newest_first` select
    messages, alone and together."""
    async with bench.thread() as (store, thread_id):
        for second, text in enumerate("abcdef"):
            await save_texts(store, thread_id, text, seconds=second)
        positions = {
            stored.message.text: stored.position
            for stored in await store.messages(MessageQuery(thread_id=thread_id))
        }
        for wanted, query in (
            ("fedcba", {"newest_first": True}),
            ("fe", {"newest_first": True, "limit": 2}),
            ("dc", {"newest_first": True, "limit": 2, "offset": 2}),
            ("", {"limit": 0}),
            ("f", {"limit": 9, "offset": 5}),
            ("bd", {"ids": ("d", "b", "nowhere")}),
            ("", {"ids": ()}),
            ("cd", {"after": positions["b"], "before": positions["e"]}),
            ("bc", {"since": START + timedelta(seconds=1), "until": START + timedelta(seconds=3)}),
            ("b", {"after": positions["a"], "limit": 1}),
        ):
            result = "".join(await read_texts(store, thread_id, **query))
            require_equal(result, wanted, f"what {', '.join(query)} finds")
        require_equal(await read_texts(store, "nowhere"), [], "a thread that is not there")


@store_check(look=f"{_MESSAGES}: text")
async def search_finds_words(bench: StoreBench) -> None:
    """A text finds the messages that contain all its words, in any case, in a thread or in all.
    Punctuation finds nothing and breaks nothing."""
    async with bench.thread() as (store, thread_id), bench.thread() as (_, other):
        await save_texts(
            store, thread_id, "Ein Fluss in Oslo", "ein Berg", "Fluss: Glomma", seconds=1
        )
        await save_texts(store, other, "der fluss heißt Glomma")
        require_equal(
            await read_texts(store, thread_id, text="FLUSS"),
            ["Ein Fluss in Oslo", "Fluss: Glomma"],
            "one word",
        )
        require_equal(
            await read_texts(store, thread_id, text="glomma fluss"), ["Fluss: Glomma"], "two words"
        )
        require_equal(await read_texts(store, thread_id, text="flu"), [], "half a word")
        require_equal(
            await read_texts(store, other, text="heißt"),
            ["der fluss heißt Glomma"],
            "a word with a letter of its own",
        )
        matches = await store.messages(MessageQuery(text="glomma", newest_first=True))
        matching_texts = [
            match.message.text for match in matches if match.thread_id in (thread_id, other)
        ]
        require_equal(
            matching_texts,
            ["Fluss: Glomma", "der fluss heißt Glomma"],
            "a word in all threads, newest first",
        )
        for text in (
            '"',
            "'; DROP TABLE x --",
            "* OR fluss",
            "fluss NOT oslo",
            "(",
            ":",
            "%",
            "",
            " ",
            "🌍",
            "a-b",
        ):
            require_equal(await read_texts(store, thread_id, text=text), [], f"the text {text!r}")


@store_check(look="Store.delete_messages")
async def messages_can_be_deleted(bench: StoreBench) -> None:
    """Messages are deleted by id. The call returns their number and updates the thread's time, and
    new messages follow the remaining ones."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", "b", "c")
        later = START + timedelta(seconds=5)
        require_equal(
            await store.delete_messages(thread_id, ["c", "a", "nowhere"], later),
            2,
            "the number of those deleted",
        )
        await save_texts(store, thread_id, "d", seconds=6)
        require_equal(await read_texts(store, thread_id), ["b", "d"], "the thread")
        require_equal(
            await store.delete_messages(thread_id, ["nowhere"], later),
            0,
            "the number, where there are none",
        )
        require_equal(
            await store.delete_messages("nowhere", ["a"], later),
            0,
            "the number, where there is no thread",
        )
        require_equal(await read_texts(store, thread_id, text="a"), [], "a deleted message's words")


@store_check(look="Batch.quotes")
async def memos_lose_what_is_deleted(bench: StoreBench) -> None:
    """A memo loses the lines that quote a message which is deleted or changed, in the same write,
    and is deleted with its last line. A line stays while its owner has another message with the
    same text. One that quotes a message which is gone already is not stored."""
    async with bench.thread() as (store, source_id), bench.thread() as (_, thread_id):
        owner = ThreadChange(resource_id=f"owner of {source_id}")
        await save_texts(store, source_id, "a", "b", "c", "d", change=owner)
        positions = {
            stored.message.text: stored.position for stored in await read_branch(store, source_id)
        }
        memo = make_memo(['{"text":"a"}', '{"text":"b"}', '{"text":"c"}'], ["a", "b", "c"])
        quotes = [
            Quote("memo", line, source_id, positions.get(text, 99))
            for line, text in enumerate(["a", "b", "lost"])
        ]
        messages = (memo.replace(id="memo", created_at=START), Message.user("e").replace(id="e"))
        batch = Batch(
            thread_id=thread_id, messages=messages, at=START, quotes=tuple(quotes), change=owner
        )
        await store.save(batch)
        quoted = await _read_quoted(store, thread_id)
        require_equal(quoted, ["a", "b"], "what the memo quotes, without what was gone")
        await save_texts(store, thread_id, "a", change=owner)
        await store.delete_messages(source_id, ["a", "d"], START)
        require_equal(
            await _read_quoted(store, thread_id), ["a", "b"], "a text that is twice there"
        )
        await store.delete_messages(thread_id, ["a"], START)
        require_equal(await _read_quoted(store, thread_id), ["b"], "what is left of the memo")
        changed = Message.user("B").replace(id="b", created_at=START)
        await store.save(Batch(thread_id=source_id, messages=(changed,), at=START, change=owner))
        require_equal(await read_texts(store, thread_id), ["e"], "the thread without its memo")


async def _read_quoted(store: Store, thread_id: str) -> object:
    """Returns the ids of the messages that the first message of a thread quotes."""
    memo = (await read_branch(store, thread_id))[0].message
    quoted = memo.metadata.get("recalled")
    require(memo.text.count('{"text"') == len(quoted or ()), "a memo must name what it quotes")
    return quoted


@store_check(look=_SAVE)
async def concurrent_writes_lose_nothing(bench: StoreBench) -> None:
    """Tasks that write to one thread concurrently lose nothing, and each keeps its order."""
    async with bench.thread() as (store, thread_id):
        await asyncio.gather(*[_write_batches(store, thread_id, name) for name in "abcde"])
        _require_all_batches(await read_texts(store, thread_id), "abcde")


@store_check("shared", look=_SAVE)
async def concurrent_stores_lose_nothing(bench: StoreBench) -> None:
    """Two stores of one database, as two processes have, write to one new thread concurrently.
    Nothing is lost, each keeps its order, and each sees the other's messages."""
    async with bench.thread() as (first, thread_id), bench.open() as second:
        await asyncio.gather(
            *[
                _write_batches(store, thread_id, name)
                for store, name in ((first, "a"), (second, "b"), (second, "c"))
            ]
        )
        _require_all_batches(written := await read_texts(first, thread_id), "abc")
        require_equal(await read_texts(second, thread_id), written, "what the other one sees")


async def _write_batches(store: Store, thread_id: str, name: str) -> None:
    """Writes eight batches of two messages."""
    for number in range(8):
        await save_texts(store, thread_id, f"{name}{number}", f"{name}{number}b")


def _require_all_batches(written: list[str], names: str) -> None:
    """Requires that all batches of all writers are there, in order and unbroken."""
    for name in names:
        wanted = [f"{name}{number}{end}" for number in range(8) for end in ("", "b")]
        require_equal(
            [text for text in written if text.startswith(name)], wanted, f"what {name} wrote"
        )
    pairs = [(written[index], written[index + 1]) for index in range(0, len(written), 2)]
    require(all(second == first + "b" for first, second in pairs), f"a batch was torn: {written}")
