"""`MessageList`: a conversation that takes messages in any format, keeps them in order, and writes
them in any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from dragoman import formats
from dragoman.codec.memos import is_memo
from dragoman.codec.serving import Problem
from dragoman.history import edit, list_json, sources, turn_updates
from dragoman.history.add import Addition, ReplacedBranch
from dragoman.history.client_copy import Changes, put
from dragoman.history.copy_rows import place_copy, place_system
from dragoman.history.exchanges import Prompts
from dragoman.history.new_messages import Digests
from dragoman.history.plans import Plan, name_unwritable, plan, write
from dragoman.history.read_messages import LoadedMessages, read, unreadable_error
from dragoman.history.rows import NOWHERE, Row
from dragoman.history.sources import NOT_SAVED, Mint, Source, find_source
from dragoman.history.system_messages import ConversationView, check_system
from dragoman.history.target import format_target
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import Content, Message, Origin, Role, TextPart, ToolResultPart
from dragoman.providers import Provider
from dragoman.request import ModelRequest
from dragoman.runtime import new_id, now

if TYPE_CHECKING:
    from dragoman.history.edit import Summary
    from dragoman.history.turn_updates import Boundary

__all__ = ["MessageList"]

_log = logger("history")


class MessageList(ConversationView):
    """A conversation: what was loaded, what was asked, what was answered.

    As a sequence it is the whole of it, system messages included, and goes into `history=` as it
    is. What it gives are the same `Message` objects each time, until they change.
    """

    def __init__(
        self,
        messages: object = (),
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Creates the list of messages. `messages`: as `add` takes them. `thread_id`,
        `resource_id`: which conversation it is, and whose. `id_factory` and `clock` make the ids
        and times that messages do not have."""
        self.thread_id, self.resource_id = thread_id, resource_id
        self.problems: list[Problem] = []
        """What could not be read of what was added with `errors="collect"`."""
        self._mint = Mint(id_factory, clock)
        super().__init__()
        self._digests, self._prompts = Digests(), Prompts()
        self._branches: list[ReplacedBranch] = []
        self._apart: str | bool = False
        self._format: str | None = None
        self.add(messages)

    # taking in

    def add(
        self,
        messages: object,
        source: Source | Literal["user"] = "input",
        format: str | None = None,  # noqa: A002 what it is called everywhere
        errors: Literal["raise", "skip", "collect"] = "raise",
        merge: bool = True,
        ordered: bool = False,
    ) -> Self:
        """Adds a string, a `Message`, a message or a request's body as any format has it, or a list
        of them all.

        `source`: where they come from: `input` (asked now), `response` (answered now), `memory`
        (loaded), `context` (not to be saved), `system`. `format`: the JSON's, else it is found out.
        `errors`: what cannot be read is raised, left out (`skip`), or left out and noted in
        `problems` (`collect`). `merge`: what is there already, by its id, becomes one with what is
        added, and an answer goes on with the turn before it. `ordered`: what is loaded is in order
        already; else it is put in the order of its times.

        Raises:
            HistoryError: something cannot be read, or is of another conversation; nothing was added then.
        """
        source_name = find_source(source)
        reading = read(
            messages,
            format,
            self._format,
            Message.system if source_name == "system" else Message.user,
        )
        if reading.problems and errors == "raise":
            raise unreadable_error(reading.problems)
        if source_name == "system":
            check_system(reading.messages)
        if source_name != "memory":
            sources.check_threads(reading.messages, self.thread_id, self.resource_id)
        if errors == "collect":
            self.problems += reading.problems
        self._format = reading.format
        with name_unwritable(reading.messages):
            self._place_messages(reading, source_name, merge=merge, ordered=ordered)
        return self

    def _place_messages(
        self, reading: LoadedMessages, source: Source, *, merge: bool = True, ordered: bool = False
    ) -> None:
        """Adds messages that were read to the list: system messages apart from the others."""
        talk = [message for message in reading.messages if message.role is not Role.SYSTEM]
        adding = Addition(
            self._placed, source, self._mint, self._digests, merge=merge, apart=self._apart
        )
        adding.add(talk, is_lone=reading.is_lone, ordered=ordered)
        self._apart = adding.apart
        self._branches += adding.branches
        if len(talk) < len(reading.messages):
            behind = -1
            for message in reading.messages:
                if message.role is Role.SYSTEM:
                    self._systems.add(message, None, behind)
                behind = adding.orders.get(id(message), behind)

    def put(
        self,
        format: str,  # noqa: A002 what it is called everywhere
        payload: object,
        *,
        system: bool = False,
        results: bool = False,
        answers: bool = False,
        signatures: bool = False,
        whole: bool = False,
    ) -> Changes:
        """Merges into the list a client's copy of the conversation, its end, or the body of a
        request that holds it. What the client added, edited or removed changes here, too; the rest
        stays as it is stored. Replaced messages become a branch. See `dragoman.history.put` for the
        options, which say what else than the user's messages the client may change.

        Raises:
            HistoryError: the payload is not of the format; nothing has changed.
            SettingsError: no format has that name.
        """
        allowed = {
            "system": system,
            "results": results,
            "answers": answers,
            "signatures": signatures,
            "whole": whole,
        }
        changes = put(tuple(self), format, payload, **allowed)
        sources.check_threads(changes.added, self.thread_id, self.resource_id)
        changes, branch = place_copy(self._rows, changes, self._mint)
        if branch is not None:
            self._branches += [branch]
        if system:
            place_system(self._systems, changes)
        return changes

    # reading

    def get(self, source: Source | None = None, *, saved: bool = False) -> list[Message]:
        """Returns the list's conversation without system messages.

        Args:
            source: return only unsaved messages from this source.
            saved: with `source`, return saved messages, too.
        """
        if source is None:
            return [row.message for row in self._rows]
        name = find_source(source)
        return [row.message for row in self._rows if name in (row.origins if saved else row.live)]

    def get_messages(self) -> list[Message]:
        """Returns the conversation, without system messages: as `get`."""
        return self.get()

    def latest_user_content(self) -> str | None:
        """Returns the text of the newest user message in the list that has one."""
        for position in range(len(self._rows) - 1, -1, -1):
            message = self._rows[position].message
            if message.role is not Role.USER or is_memo(message):
                continue
            if any(isinstance(piece, TextPart) for piece in message.content):
                return message.text
        return None

    # writing

    def export(
        self,
        format: str,  # noqa: A002 what it is called everywhere
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
        **how: Any,
    ) -> Any:
        """Returns the list's whole conversation in a format. Formats that a model reads are
        repaired, so that each call has its result.

        Args:
            format: name of the format.
            target: the provider that reads it, if it is known.
            losses: gets what the format cannot hold, as `plan` lists it.
            how: `version`, for formats that have several.

        Raises:
            SettingsError: no format has that name.
        """
        target_format = formats.get(format)
        written = write(
            self, format_target(target_format, target, **how), fields=losses is not None
        )
        if losses is not None:
            losses += (*written.repairs, *written.losses)
        return sources.with_threads(
            written.payload, target_format, self.thread_id, self.resource_id
        )

    def to_ui_messages(self, version: str | None = None, *, metadata: bool = False) -> list[Json]:
        """Returns the conversation as UI messages of the AI SDK, a turn each, without system
        messages.

        Args:
            version: `v4` to `v7`; left out, as it came, else the newest.
            metadata: write what the format has no room for (endpoints, digests, times, ids of inner messages) into
                `metadata.dragoman`, so that the messages can be read back whole. Browsers need none of it.
        """
        return formats.ui_formats().dump_shown(self.get(), version=version, metadata=metadata)

    def plan(self, target: str | Provider, *, request: ModelRequest | None = None) -> Plan:
        """Returns what a model or a format would lose of the conversation, or get changed: see
        `dragoman.history.plan`.

        Raises:
            SettingsError: no provider and no format has that name.
        """
        return plan(self, target, request=request)

    def prompt(self) -> list[Message]:
        """Returns the messages to send to a model: system messages first, then the conversation
        with each call answered, without marks and blank texts."""
        systems, talk = self.all_system_messages(), self._prompts.repair_rows(self._rows)
        if systems and not talk:
            _log.warning("the conversation holds system messages and nothing else")
        return [*systems, *talk]

    # saving

    def unsaved(self) -> tuple[Message, ...]:
        """Returns the messages that are not saved yet, in order."""
        return tuple([row.message for row in self._rows if row.live & NOT_SAVED])

    def drain_unsaved(self, saved: Sequence[Message] | None = None) -> list[Message]:
        """Marks messages of the list as saved, and returns them. `saved`: only these, as
        `unsaved` returned them before they were stored. A message that has changed meanwhile
        stays unsaved."""
        drained: list[Message] = []
        for message in self.unsaved() if saved is None else saved:
            if message.id is None:
                position = None
            else:
                position = self._rows.position(message.id)
            if position is not None and self._rows[position].message is message:
                self._rows.put(position, self._rows[position]._replace(live=NOWHERE))
                drained.append(message)
        return drained

    def remove(
        self, ids: str | Sequence[str] | None = None, *, source: Source | None = None
    ) -> list[Message]:
        """Removes messages from the list and returns them. They may be added again.

        Args:
            ids: ids of messages, or of turns.
            source: what came from there and was not saved since. Without ids and a source the whole conversation is removed.
        """
        name = None if source is None else find_source(source)
        wanted = None
        if ids is not None:
            wanted = frozenset([ids] if isinstance(ids, str) else ids)

        def is_removed(row: Row) -> bool:
            message = row.message
            is_named = wanted is None or message.id in wanted or message.turn in wanted
            return is_named and (name is None or name in row.live)

        return edit.remove_rows(self._rows, is_removed)

    # tools and steps

    def update_tool(self, result: ToolResultPart, *, name: str | None = None) -> bool:
        """Adds to the list the result of the newest call with its id, in whatever turn; the call
        stays as it is. Returns False if there is no such call. `name`: of the tool, for the result
        of a provider that gives no id."""
        if turn_updates.put_result(self._rows, result, name, self._mint):
            return True
        _log.warning("no call has the id %r: its result is not kept", result.id)
        return False

    def update_metadata(self, call_id: str, metadata: JsonMap) -> bool:
        """Adds metadata to the message with the newest call of that id. Returns False if there is
        none."""
        return turn_updates.put_metadata(self._rows, call_id, metadata, self._mint)

    def start_step(self) -> bool:
        """Marks that a step begins behind the model's last message. Returns False if there is none
        that may change, or if it is marked already."""
        return turn_updates.start_step(self._rows, self._mint)

    def describe_step(self, model: str) -> bool:
        """Notes which model makes the last step. Returns False if the last turn has no marked
        step."""
        return turn_updates.describe_step(self._rows, model, self._mint)

    def step_content(self, number: int = -1) -> list[Content]:
        """Returns the pieces of a step of the last turn, from 1 on; -1 is the last. Results stand
        behind their calls."""
        return turn_updates.step_content(self._rows, number)

    def open_step(self) -> Boundary:
        """Returns the place behind all that there is, for `rollback`."""
        return turn_updates.last_boundary(self._rows)

    def rollback(self, boundary: Boundary) -> list[Message] | None:
        """Drops everything behind a place in the last turn, and returns it; `None` if the place is
        in another turn."""
        return turn_updates.roll_back(self._rows, boundary, self._mint)

    def new_response(self, id: str | None = None) -> None:  # noqa: A002 what it is
        """Lets the next answer begin its own turn. `id`: the turn's id; else it gets the id of its
        first message."""
        self._apart = id or True

    def seal(self, message_id: str) -> bool:
        """Freezes the turn of a message: what a later copy adds to it becomes a new turn. Returns
        False if there is no such message."""
        return turn_updates.seal_turn(self._rows, message_id, self._mint)

    # editing

    @property
    def branches(self) -> tuple[ReplacedBranch, ...]:
        """Returns the branches that edits, new answers, replacements and summaries took out of the
        conversation. Nothing is deleted."""
        return tuple(self._branches)

    def fork(self, at: str | int | None = None) -> MessageList:
        """Returns a list that begins as this one and goes on by itself; what they have in common is
        held once. `at`: the first message that it has not, by id or position in `get()`; left out:
        it has all.

        Raises:
            HistoryError: there is no such message.
        """
        if at is None:
            stop = len(self._rows)
        else:
            stop = edit.find_position(self._rows, at)
        forked = MessageList(
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            id_factory=self._mint.new_id,
            clock=self._mint.clock,
        )
        forked._rows, forked._systems, forked._format = (
            self._rows.fork(stop),
            self._systems.fork(),
            self._format,
        )
        return forked

    def edit(self, message_id: str, message: object) -> Self:
        """Puts another message in the place of one of the list. It keeps the id; what stood there
        and behind it becomes a branch.

        Raises:
            HistoryError: there is no such message, or the new one cannot be read.
        """
        reading = read(message, None, self._format)
        if reading.problems or len(reading.messages) != 1:
            raise (
                unreadable_error(reading.problems)
                if reading.problems
                else edit.ambiguous_range_error(len(reading.messages))
            )
        position = edit.find_position(self._rows, message_id)
        self._cut(position)
        edited = reading.messages[0].replace(id=message_id, turn=None)
        self._place_messages(LoadedMessages([edited], [], None, is_lone=True), "input")
        return self

    def regenerate(self, message_id: str | None = None) -> Self:
        """Takes an answer back, so that the list ends in its question; it becomes a branch with all
        behind it. `message_id`: the answer's or the question's; left out, the last.

        Raises:
            HistoryError: there is no such message.
        """
        self._cut(edit.find_answer(self._rows, message_id))
        return self

    def _cut(self, position: int) -> None:
        if position < len(self._rows):
            self._branches.append(edit.cut_rows(self._rows, position))

    def trim(
        self,
        messages: int | None = None,
        tokens: int | None = None,
        exchanges: int | None = None,
        *,
        tokens_of: Callable[[Message], int] | None = None,
    ) -> list[Message]:
        """Removes from the list the oldest exchanges until what is left is within the limits, and
        returns them; the last exchange always stays. `tokens_of`: a message → its tokens; left out,
        they are estimated.

        Raises:
            HistoryError: a limit is below 0.
        """
        return edit.trim_rows(self._rows, messages, tokens, exchanges, tokens_of)

    async def summarize(
        self, summary: Summary, *, exchanges: int = 1, tag: str = "summary"
    ) -> Message | None:
        """Puts a summary in the place of all but the last exchanges: a system message under a tag,
        which replaces that of the time before. What is summarised becomes a branch. `summary`: a
        function of messages, plain or async, that returns a text, or an agent. `None`: there is
        nothing to be summarised."""
        summarized = await edit.summarize_rows(
            self._rows, self.system_messages(tag), summary, exchanges
        )
        if summarized is None:
            return None
        message, branch = summarized
        self._branches.append(branch)
        self.clear_system(tag)
        self.add_system(message, tag)
        return message

    # storing

    def dump(self) -> bytes:
        """Returns all of the list as JSON, which `load` reads."""
        return list_json.dump(
            list_json.ListContents(
                self._rows, self._systems, self._branches, self.thread_id, self.resource_id
            )
        )

    @classmethod
    def load(
        cls,
        data: bytes | str,
        *,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> Self:
        """Loads a list from what `dump` wrote.

        Raises:
            HistoryError: it is something else.
        """
        contents = list_json.load(data)
        loaded = cls(
            thread_id=contents.thread_id,
            resource_id=contents.resource_id,
            id_factory=id_factory,
            clock=clock,
        )
        loaded._rows, loaded._systems, loaded._branches = (
            contents.rows,
            contents.systems,
            contents.branches,
        )
        return loaded
