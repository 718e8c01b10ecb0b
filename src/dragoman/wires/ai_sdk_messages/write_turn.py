"""Writes a turn as one UI message: the calls of the model's messages with their results, and a mark where a
step begins.

`Writing` goes through the messages of the turn once. A call takes the result of its id that comes
next behind it; a result that no call takes is a loss, as is the order of what a dialect cannot
write where it stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence

from dragoman.codec.marks import INTERRUPT
from dragoman.codec.turns import make_inner_ids
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.dragoman_metadata import EMPTY, Expected, extras_of
from dragoman.wires.ai_sdk_messages.message_groups import MessageGroup
from dragoman.wires.ai_sdk_messages.notes import (
    CORE,
    MODEL,
    OLD,
    OURS,
    OWN,
    UI,
    Fields,
    Part,
    Parts,
)
from dragoman.wires.ai_sdk_messages.provider_metadata import first_provider, origin_of
from dragoman.wires.ai_sdk_messages.read_parts import (
    ATTACHMENT,
    IMPLIED,
    STEP,
    Envelope,
    UIDialect,
    says_behind_answers,
)
from dragoman.wires.ai_sdk_messages.steering import dump_steering, has_step_behind, is_steering
from dragoman.wires.ai_sdk_messages.ui_messages import filler, restrict

__all__ = ["dump_group", "lose_orphans"]

_NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
_ALONE = "no call stands before it, and a result is a part of its call"
"""Why a result is not written."""
_WAITS = "what a call waits for is sealed, and stands in a run's own history alone"
"""Why an interrupt is not written."""
_Result = tuple[int, int, ToolResultPart]
"""Index of a message in the turn, index in that message, and the result there."""


class Writing:
    """Writes the messages of one turn."""

    def __init__(
        self,
        group: MessageGroup,
        dialect: UIDialect,
        losses: list[Loss],
    ) -> None:
        """Creates the writer of a turn as an AI SDK UI message."""
        self.group, self.dialect, self.losses = group, dialect, losses
        self.parts: Parts = []
        self.providers: list[str | None] = []
        """The provider of each model message, as a reader will see it."""
        messages = (*group.messages, *group.behind)
        self.is_one_step = dialect.name in OLD and says_behind_answers(messages)
        """True if a reader of the dialect would find more steps than there are."""
        self._step = 0
        self._last_result = (-1, -1)
        self._is_reordered = False
        self._results: dict[str, deque[_Result]] = {}
        for index, message in enumerate(messages):
            for piece_index, piece in enumerate(message.content):
                if isinstance(piece, ToolResultPart):
                    self._results.setdefault(piece.id, deque()).append((index, piece_index, piece))

    def write(self) -> Parts:
        """Returns the parts of the AI SDK UI message for a turn."""
        messages = self.group.messages
        for index, message in enumerate(messages):
            if message.role is not Role.USER or not index:
                before = None
                if index:
                    before = messages[index - 1]
                self._write_message(index, message, before)
            elif is_steering(message):
                self.parts += dump_steering(
                    message,
                    lambda index=index, message=message: self._dump_user_steering(index, message),
                )
            else:  # results, which stand with their calls
                self._note_lost_interrupts(index, message)
        self._lose_order()
        return self.parts

    def _lose_order(self) -> None:
        """Notes the losses that show when the turn is written to its end: results without their
        call, and a changed order."""
        if self._is_reordered:
            why = "a result stands with its call, an attachment last"
            self.losses.append(Loss(self.group.positions[0], None, Lost.order, why))
        for queue in self._results.values():
            for index, piece_index, _ in queue:
                self.lose(index, piece_index, Lost.tool_result, _ALONE)
        for message in self.group.behind:
            if (piece_index := _place_behind_words(message)) is not None:
                why = "results stand with their calls, before what stood before them"
                self.lose(len(self.group.messages), piece_index, Lost.order, why)

    def lose(
        self,
        index: int,
        piece_index: int,
        what: Lost,
        why: str,
        which: str = "",
    ) -> None:
        """Notes the loss of a piece of one of the AI SDK messages."""
        position, piece_index = self.group.locate(index, piece_index)
        self.losses.append(Loss(position, piece_index, what, why, which))

    def _write_message(
        self,
        index: int,
        message: Message,
        before: Message | None,
    ) -> None:
        """Writes the pieces of a message, with an AI SDK step before it if one begins there."""
        if before is not None and _begins_behind(before, message):
            self.parts.append({"type": STEP})
            self._step += 1
        begun = len(self.parts)
        thinking: list[ThinkingPart] = []
        is_model = message.role is Role.MODEL
        for piece_index, piece in enumerate(message.content):
            if not isinstance(piece, ThinkingPart):
                self._flush_thinking(thinking)
                self._write_piece(piece, index, piece_index, is_model)
            elif piece.text or piece.native or self.dialect.silent:
                thinking.append(piece)
            else:
                self.lose(index, piece_index, Lost.thinking, "nothing of it can be read")
        self._flush_thinking(thinking)
        written = self.parts[begun:]
        self._is_reordered |= _has_attachment_before_part(written)
        self.providers.append(first_provider(written) if is_model else None)

    def _flush_thinking(self, thinking: list[ThinkingPart]) -> None:
        """Writes a turn's adjacent thinking as AI SDK parts, and empties the list."""
        if thinking:
            self.parts += self.dialect.dump_thinking(thinking, self.dialect)
            thinking.clear()

    def _dump_user_steering(self, index: int, message: Message) -> Parts:
        """Returns the AI SDK parts of what a user said within the turn."""
        # The pieces are written like any others, and then taken out of the turn's parts.
        begun = len(self.parts)
        for piece_index, piece in enumerate(message.content):
            self._write_piece(piece, index, piece_index, False)
        spoken_parts = self.parts[begun:]
        del self.parts[begun:]
        return spoken_parts

    def _write_piece(
        self,
        piece: Content,
        index: int,
        piece_index: int,
        is_model: bool,
    ) -> None:
        """Writes a piece other than thinking as a part of the AI SDK UI message."""
        if type(piece) is TextPart:
            self.parts.append(self.dialect.dump_text(piece, self.dialect, is_model))
        elif isinstance(piece, ToolCallPart):
            self._write_call(piece, index, piece_index)
        elif isinstance(piece, (DataPart, LinkPart, FilePart)):
            self.parts.append(self.dialect.dump_file(piece, self.dialect, is_model))
        elif isinstance(piece, MarkPart):
            self._write_mark(piece, index, piece_index)
        elif isinstance(piece, ProviderPart):
            self._write_block(piece, index, piece_index)

    def _write_mark(
        self,
        mark: MarkPart,
        index: int,
        piece_index: int,
    ) -> None:
        """Writes a mark of the turn as an AI SDK part. An interrupt is a loss."""
        if mark.kind == INTERRUPT:
            self.lose(index, piece_index, Lost.field, _WAITS, INTERRUPT)
        if mark.kind == STEP:
            self._step += bool(self.parts)
        # Where words stand behind an answered call in one message, only an explicit mark tells the
        # steps apart.
        if self.is_one_step and OWN.form(mark.native).get(IMPLIED):
            self.parts.append({"type": STEP})
        elif OWN.is_ours(mark.native) or mark.kind == STEP:
            part = self.dialect.dump_mark(mark, self.dialect)
            self.parts += [part] if part else []

    def _write_block(
        self,
        block: ProviderPart,
        index: int,
        piece_index: int,
    ) -> None:
        """Writes a provider's block that was read from an AI SDK UI message. Any other is a
        loss."""
        is_of_model = OWN.form(block.native).get("in") in (MODEL, CORE)
        part: Part = {}
        if OWN.is_ours(block.native) and not is_of_model:
            part = self.dialect.dump_mark(block, self.dialect)
        if "type" in part:
            self.parts.append(part)
        else:
            why = "a block that only its provider understands"
            self.lose(index, piece_index, Lost.provider, why, block.kind)

    def _write_call(
        self,
        call: ToolCallPart,
        index: int,
        piece_index: int,
    ) -> None:
        """Writes a call with the next result of its id that does not stand before its AI SDK
        message."""
        # Ids may repeat: a result before the call's own message is of a call that came before.
        queue = self._results.get(call.id)
        while queue and queue[0][0] < index:
            result_index, result_piece, _ = queue.popleft()
            self.lose(result_index, result_piece, Lost.tool_result, _ALONE)
        part = self.dialect.dump_call(call, self.dialect, bool(queue), self._step)
        if not queue:
            self.parts.append(part)
            return
        result_index, result_piece, result = queue.popleft()
        is_within = result_index == index
        self._is_reordered |= (result_index, result_piece) < self._last_result
        self._is_reordered |= is_within and self._is_apart(index, piece_index, result_piece)
        if not is_within:
            self._last_result = (result_index, result_piece)
        self.parts.append(self.dialect.add_result(part, result, call, self.dialect))

    def _is_apart(
        self,
        index: int,
        piece_index: int,
        result_piece: int,
    ) -> bool:
        """True if in the turn to write a result stands before its call, or if more than marks is
        between them."""
        between = self.group.messages[index].content[piece_index + 1 : result_piece]
        return result_piece < piece_index or not all(
            isinstance(piece, MarkPart) for piece in between
        )

    def _note_lost_interrupts(self, index: int, message: Message) -> None:
        """Notes a loss for each interrupt in a message of results. AI SDK UI messages hold none."""
        for piece_index, piece in enumerate(message.content):
            if isinstance(piece, MarkPart) and piece.kind == INTERRUPT:
                self.lose(index, piece_index, Lost.field, _WAITS, INTERRUPT)


def lose_orphans(group: MessageGroup, losses: list[Loss]) -> None:
    """Notes as lost the results without a call before them in the turn that is written, and the
    interrupts behind them."""
    content = group.messages[0].content
    for piece_index, piece in enumerate(content):
        if isinstance(piece, ToolResultPart):
            losses.append(Loss(*group.locate(0, piece_index), Lost.tool_result, _ALONE))
    for piece_index, piece in enumerate(content):
        if isinstance(piece, MarkPart):
            losses.append(Loss(*group.locate(0, piece_index), Lost.field, _WAITS, INTERRUPT))


def dump_group(
    group: MessageGroup,
    id_: str,
    dialect: UIDialect,
    taken: Collection[str],
    losses: list[Loss],
    version: str | None = None,
    *,
    carries: bool = True,
) -> Part:
    """Returns the AI SDK UI message of a turn.

    Args:
        group: the turn.
        id_: its id.
        dialect: table of the dialect.
        taken: ids of all messages.
        losses: grows with what the dialect cannot hold.
        version: release of the library that reads it; None for any.
        carries: True to carry what a message has no field for; the older dialects always do.
    """
    first = group.messages[0]
    writing = Writing(group, dialect, losses)
    parts = writing.write()
    form = OWN.form(first.native) if first.native else {}
    written_id: str | None = id_
    if form.get("id") == "absent" or (first.id is None and "id" in OWN.fields(first.native)):
        written_id = None
    # What a release lacks is cut from the parts, since what stands in for it depends on the whole
    # part.
    if version is not None:
        parts = restrict(parts, version, lambda what, why: writing.lose(0, 0, what, why))
    is_read_empty = form.get("parts") == EMPTY and _takes_none(first.role, version)
    is_empty = not parts and dialect.name == UI and not is_read_empty
    if is_empty:
        parts = [filler(first.role)]
    extras: Part = {}
    if carries or dialect.name != UI:
        extras = extras_of(
            group.messages,
            _expected_reading(group, written_id, form, taken, writing.providers),
            joined=group.joined,
            empty=is_empty,
            one_step=writing.is_one_step and form.get("parts") != "absent",
            metadata=dialect.metadata_first or OURS in first.metadata,
            time=not dialect.times,
        )
    return dialect.envelope(Envelope(written_id, _NAMES[first.role], parts, first, extras))


def _takes_none(role: Role, version: str | None) -> bool:
    """True if a release accepts a message without parts."""
    return version is None or (role is Role.MODEL and version in ("v6", "v7"))


def _expected_reading(
    group: MessageGroup,
    id_: str | None,
    form: Fields,
    taken: Collection[str],
    providers: Sequence[str | None],
) -> list[Expected]:
    """Returns what a reader gives the AI SDK messages of a turn.

    Args:
        group: the turn.
        id_: its id.
        form: note of how it was read.
        taken: ids of all messages.
        providers: who answered in each model message, as its parts tell.
    """
    named = iter(providers)
    minted_turn = None
    if form.get("turn") == "made":
        minted_turn = group.messages[0].turn
    if len(group.messages) == 1 and not group.behind:
        return [Expected(id_, minted_turn, origin_of(next(named, None), None))]
    ids: Iterator[str | None] = iter(lambda: None, 0)
    if id_ is not None:
        ids = make_inner_ids(id_, taken)
    expected: list[Expected] = []
    for index, message in enumerate(group.messages):
        if index and is_steering(message):
            expected.append(Expected(message.id or "", id_, None))
            continue
        provider = None
        if message.role is Role.MODEL:
            provider = next(named, None)
        expected.append(Expected(next(ids), minted_turn or id_, origin_of(provider, None)))
    return expected


def _begins_behind(before: Message, message: Message) -> bool:
    """True if a step must be written before an AI SDK model message."""
    if is_steering(before):
        return has_step_behind(before)
    first = None
    if message.content:
        first = message.content[0]
    return not (isinstance(first, MarkPart) and first.kind == STEP)


def _place_behind_words(message: Message) -> int | None:
    """Returns the index of the first result behind something else in an AI SDK message, or None."""
    is_behind = False
    for piece_index, piece in enumerate(message.content):
        if is_behind and isinstance(piece, ToolResultPart):
            return piece_index
        is_behind |= not isinstance(piece, MarkPart | ToolResultPart)
    return None


def _has_attachment_before_part(parts: Parts) -> bool:
    """True if a part stands behind an attachment."""
    types = [part["type"] for part in parts]
    return ATTACHMENT in types and set(types[types.index(ATTACHMENT) :]) != {ATTACHMENT}
