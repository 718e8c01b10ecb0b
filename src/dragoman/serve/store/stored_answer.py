"""What a server keeps of an answer that it gave: `Answered`, the keys under which it is found
again, and those that were read before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Literal

import msgspec

from dragoman.history.pieces import is_shared, shared_key
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, Message, Role, TextPart, Usage
from dragoman.request import ModelRequest, RunRequest

__all__ = [
    "Answered",
    "AnsweredState",
    "DecodedAnswers",
    "Ending",
    "MessageKeys",
    "Stage",
    "begin_ending",
    "conversation_key",
    "keys_after",
    "keys_of",
    "latest_keys",
]

AnsweredState = Literal["in_progress", "completed", "failed", "cancelled"]
Stage = Literal["working", "waiting", "signing_in", "completed", "failed", "refused", "cancelled"]
"""How far a task is, as its latest run says it."""

_MOST_DECODED = 16 * 1024 * 1024


class Ending(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is needed to keep the end of an answer that a durable run makes, in whichever process. It
    goes once the end is kept."""

    user: str = ""
    """The user whom the client calls for; empty: it names none."""
    question_ids: tuple[str, ...] = ()
    """Ids of the client's messages, which the run tells too."""
    scope: str = ""
    """Within which the conversation is looked for."""
    message_keys: tuple[str, ...] = ()
    """Keys of the conversation's messages, as the client has them."""
    last_key: str = ""
    """Key of the last message that the client sent."""
    always: bool = True
    """True if the answer is kept however it ends. Else the client waits for it: what failed, or was
    left, is forgotten."""


class Answered(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An answer that was given, or is being made."""

    id: str
    """Of the call, without the prefix that its wire gives it."""
    owner: str
    """Id of the caller whose it is."""
    wire: str
    """Name of the wire that the client speaks."""
    created_at: datetime
    """When the call came."""
    request: ModelRequest
    """What was asked, its messages without those of the answers that it goes on from."""
    lasting: tuple[Message, ...] = ()
    """System texts of the request that belong to the conversation; the others are for this answer
    alone."""
    output: tuple[Message, ...] = ()
    """The answer as the server has it: with an agent's own rounds of calls, and what providers
    signed."""
    visible: tuple[Message, ...] = ()
    """The answer as the client has it, where that is not `output`."""
    parent: str | None = None
    """Id of the answer that it goes on from."""
    thread_id: str | None = None
    """Id of the conversation, where it has one."""
    task_id: str | None = None
    """Id of the task that it is a part of, where its protocol has tasks."""
    run_id: str | None = None
    """Id of the run that makes it, where one goes on without its client."""
    asked: RunRequest | None = None
    """Of such a run: what its client called it, and which version it speaks, so that it reads the
    same when it reads it again."""
    state: AnsweredState = "completed"
    """How far it is."""
    error: JsonMap | None = None
    """Of a failed one: what its client was answered."""
    refused: bool = False
    """Of a failed one: whether it failed since what was asked for is refused."""
    updated_at: datetime | None = None
    """When that was found out, where that is known."""
    usage: Usage | None = None
    """Of the whole answer."""
    pending: tuple[Interrupt, ...] = ()
    """What it waits for."""
    task: JsonMap | None = None
    """The task that it is the latest part of, as its client reads it: after this run, or before it
    while that goes on. `None`: it is made of all its runs when it is asked for."""
    key: str = ""
    """The key of the conversation up to and with it, as its client has it; empty: it is found by
    its id or its thread alone."""
    shared: bool = True
    """Whether the client may ask for it by its id; else it is kept to recognise the conversation
    alone."""
    ending: Ending | None = None
    """What is needed to keep its end; `None`: it is kept, or no durable run makes it."""

    @property
    def stage(self) -> Stage:
        """Returns the stage of the task whose latest run is this answer."""
        if self.state == "completed" and self.pending:
            if all(interrupt.reason == "auth" for interrupt in self.pending):
                return "signing_in"
            return "waiting"
        if self.state == "failed":
            return "refused" if self.refused else "failed"
        if self.state == "in_progress":
            return "working"
        return self.state

    @property
    def messages(self) -> tuple[Message, ...]:
        """Returns the messages that this answer adds to the conversation: the request's without
        system texts, and the answer."""
        return (*self._question, *self.output)

    @property
    def shown(self) -> tuple[Message, ...]:
        """Returns the messages that this answer adds, in the form that the client has."""
        return (*self._question, *(self.visible or self.output))

    @property
    def _question(self) -> list[Message]:
        return [message for message in self.request.messages if message.role is not Role.SYSTEM]


def conversation_key(conversation: Iterable[Message], scope: str) -> str:
    """Returns the key of a conversation as its client has it; system texts and what no client shows
    do not count. `scope`: within which it is looked for."""
    return f"conversation:{_digest_key(scope, *_list_keys(conversation))}"


MessageKeys = dict[int, tuple[Message, str]]
"""Identity of a message → itself, so that it lives as long, and its key."""


def _list_keys(conversation: Iterable[Message], computed: MessageKeys | None = None) -> list[str]:
    """Returns the keys of the messages of which the key of a conversation is made. `computed`: has
    those that were made before, and grows."""
    if computed is None:
        computed = {}
    keys: list[str] = []
    for message in conversation:
        if message.role is Role.SYSTEM or not message.parts:
            continue
        entry = computed.get(id(message))
        if entry is None:
            entry = computed[id(message)] = message, _message_key(message)
        keys.append(entry[1])
    return keys


def keys_of(
    conversation: Sequence[Message],
    answer: Sequence[Message],
    scope: str,
    computed: MessageKeys | None = None,
) -> list[str]:
    """Returns the keys of an answer. `conversation`: all that the client has before it; both as the
    client has them. `computed`: keys of its messages that were made before; it grows.

    A call is known by its id, and by what it is and what it answers: many providers number the
    calls of each conversation. Some clients fill in its arguments, so it is known as well by its
    name alone behind all that was said before.
    """
    return keys_after(begin_ending(conversation, scope, computed), answer)


def begin_ending(
    conversation: Sequence[Message], scope: str, computed: MessageKeys | None = None
) -> Ending:
    """Returns what the keys of an answer are made of, beside the answer. See `keys_of`."""
    last = _message_key(conversation[-1]) if conversation else ""
    return Ending(
        scope=scope, message_keys=tuple(_list_keys(conversation, computed)), last_key=last
    )


def keys_after(ending: Ending, answer: Sequence[Message]) -> list[str]:
    """Returns the keys of an answer. See `keys_of`."""
    scope = ending.scope
    calls = [
        f"call:{_digest_key(scope, ending.last_key, call.id, shared_key(Message.model(call)))}"
        for message in answer
        for call in message.tool_calls
        if call.id
    ]
    digested = _digest_texts(scope, *ending.message_keys)
    before = digested.hexdigest()
    named = [
        f"call:{_digest_key(before, call.id, call.name)}"
        for message in answer
        for call in message.tool_calls
        if call.id
    ]
    whole = _digest_texts(*_list_keys(answer), after=digested).hexdigest()
    return [f"conversation:{whole}", *dict.fromkeys([*calls, *named])]


def latest_keys(
    conversation: Sequence[Message], scope: str, computed: MessageKeys | None = None
) -> list[str]:
    """Returns the keys under which the latest answer of a conversation may be found, as its client
    sends it back. `computed`: as for `keys_of`."""
    last = max(
        (index for index, message in enumerate(conversation) if message.role is Role.MODEL),
        default=None,
    )
    if last is None:
        return []
    return keys_of(conversation[:last], [conversation[last]], scope, computed)


def _message_key(message: Message) -> str:
    """Returns the key of a message. Texts that stand beside each other count as one, since clients
    of many formats join them."""
    joined: list[Content] = []
    for piece in message.content:
        if not is_shared(piece):
            continue
        before = joined[-1] if joined else None
        if isinstance(piece, TextPart) and isinstance(before, TextPart):
            joined[-1] = TextPart(before.text + piece.text)
        else:
            joined.append(piece)
    # As of nearly all: nothing was joined, and nothing left out.
    if len(joined) == len(message.content):
        return shared_key(message)
    return shared_key(Message(message.role, tuple(joined)))


def _digest_key(*texts: str) -> str:
    """Returns a hash of several texts, for keys of stored answers."""
    return _digest_texts(*texts).hexdigest()


def _digest_texts(*texts: str, after: blake2b | None = None) -> blake2b:
    """Returns the digest of several texts, for keys of stored answers. `after`: the digest of those
    that stand before them."""
    digest = after.copy() if after else blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest


_ANSWERED = msgspec.json.Decoder(Answered)


class DecodedAnswers:
    """Kept answers that were read before: a long conversation is read with each of its requests,
    and each answer is decoded once.

    They are known by a number that no other answer, and no later state of the same, ever has.
    Beyond so many bytes what was not used for the longest time goes.
    """

    def __init__(self, most_bytes: int = _MOST_DECODED) -> None:
        """Creates the cache. `most_bytes`: how many bytes of answers it holds, as JSON."""
        self._most = most_bytes
        self._bytes = 0
        self._decoded: OrderedDict[int, tuple[Answered, int]] = OrderedDict()

    def get(self, number: int) -> Answered | None:
        """Returns a decoded answer from the cache, or None. May be called from any thread."""
        entry = self._decoded.get(number)
        return None if entry is None else entry[0]

    def decode(self, number: int, data: bytes | Answered) -> Answered:
        """Decodes a stored answer and caches it. `data`: its JSON, or what `get` gave."""
        if isinstance(data, Answered):
            if number in self._decoded:
                # Marks it as used, so that it is dropped last.
                self._decoded.move_to_end(number)
            return data
        if (decoded := self.get(number)) is not None:
            self._decoded.move_to_end(number)
            return decoded
        answered = _ANSWERED.decode(data)
        self._add(number, answered, len(data))
        return answered

    def keep(self, number: int, answered: Answered, size: int) -> None:
        """Adds an answer that was stored to the cache, if a conversation goes on from it. What its
        request was asked with is then the same object in the next one, of which much is known.
        `size`: its bytes as JSON."""
        if answered.key:
            self._add(number, answered, size)

    def _add(self, number: int, answered: Answered, size: int) -> None:
        self._decoded[number] = answered, size
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._decoded.popitem(last=False)[1][1]
