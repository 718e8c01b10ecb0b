"""A turn → its UI message: the calls of the model's messages with their results, and a mark where a step begins."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dragoman.codec.marks import INTERRUPT
from dragoman.codec.turns import inner_ids
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
from dragoman.wires.ai_sdk_messages.dialect import ATTACHMENT, Dialect, Envelope
from dragoman.wires.ai_sdk_messages.envelope import EMPTY, Expected, extras_of
from dragoman.wires.ai_sdk_messages.grouping import Group
from dragoman.wires.ai_sdk_messages.named import named_in
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, UI
from dragoman.wires.ai_sdk_messages.reading import IMPLIED, OLD, STEP, says_behind_answers
from dragoman.wires.ai_sdk_messages.signatures import origin_of
from dragoman.wires.ai_sdk_messages.steering import dump_steering, is_steering, step_behind
from dragoman.wires.ai_sdk_messages.ui import filler
from dragoman.wires.ai_sdk_messages.versions import restricted

__all__ = ["ALONE", "WAITS", "Writing", "dump_group"]

ROLES = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
ALONE = "no call stands before it, and a result is a part of its call"
"""Why a result is not written."""
WAITS = "what a call waits for is sealed, and stands in a run's own history alone"
"""Why an interrupt is not written."""


class Writing:
    """The messages of one turn on their way out."""

    def __init__(self, group: Group, dialect: Dialect, losses: list[Loss]) -> None:
        self.group, self.dialect, self.losses = group, dialect, losses
        self._number = 0  # of the step
        self._last = (-1, -1)  # where the result before stood
        self._moved = False
        self.is_one_step = dialect.name in OLD and says_behind_answers(
            (*group.messages, *group.behind)
        )
        """Whether a reader of the dialect would find more steps than there are."""
        self.parts: list[dict[str, Any]] = []
        self.providers: list[str | None] = []
        """Of each of the model's messages: who answered, as the reader will see it."""
        self._results: dict[str, deque[tuple[int, int, ToolResultPart]]] = {}
        for at, message in enumerate((*group.messages, *group.behind)):
            for place, piece in enumerate(message.content):
                if isinstance(piece, ToolResultPart):
                    self._results.setdefault(piece.id, deque()).append((at, place, piece))

    def write(self) -> list[dict[str, Any]]:
        """The parts."""
        for at, message in enumerate(self.group.messages):
            if message.role is Role.USER and at:
                if is_steering(message):
                    self.parts += dump_steering(
                        message, lambda at=at, one=message: self._pieces(at, one)
                    )
                else:  # results, which stand with their calls
                    self._lose_waits(at, message)
                continue
            if at and self._begins_behind(self.group.messages[at - 1], message):
                self.parts.append({"type": STEP})
                self._number += 1
            begun = len(self.parts)
            content = message.content
            thinking: list[ThinkingPart] = []
            for place, piece in enumerate(content):
                if isinstance(piece, ThinkingPart):
                    if piece.text or piece.native or self.dialect.silent:
                        thinking.append(piece)
                    else:
                        self.lose(at, place, Lost.thinking, "nothing of it can be read")
                    continue
                if thinking:
                    self.parts += self.dialect.thinking(thinking)
                    thinking = []
                self._write(piece, at, place, message)
            if thinking:
                self.parts += self.dialect.thinking(thinking)
            self._moved |= _is_out_of_order(self.parts[begun:])
            self.providers.append(self._provider(begun) if message.role is Role.MODEL else None)
        if self._moved:
            self.losses.append(
                Loss(
                    self.group.positions[0],
                    None,
                    Lost.order,
                    "a result stands with its call, an attachment last",
                )
            )
        for queue in self._results.values():
            for at, place, _ in queue:
                self.lose(at, place, Lost.tool_result, ALONE)
        for behind in self.group.behind:
            if (place := _behind_words(behind)) is not None:
                self.lose(
                    len(self.group.messages),
                    place,
                    Lost.order,
                    "results stand with their calls, before what stood before them",
                )
        return self.parts

    def lose(self, at: int, place: int, what: Lost, why: str, which: str = "") -> None:
        """Notes a loss of a piece of one of the messages."""
        group = self.group
        position = group.positions[at] if at < len(group.positions) else group.positions[-1] + 1
        position, place = group.places.get((at, place), (position, place))
        self.losses.append(Loss(position, place, what, why, which))

    def _pieces(self, at: int, message: Message) -> list[dict[str, Any]]:
        """What a user said within the turn, as parts."""
        begun = len(self.parts)
        for place, piece in enumerate(message.content):
            self._write(piece, at, place, message)
        made = self.parts[begun:]
        del self.parts[begun:]
        return made

    def _begins_behind(self, before: Message, message: Message) -> bool:
        """Whether a step is to be written before a message of the model's."""
        return step_behind(before) if is_steering(before) else not _begins_a_step(message)

    def _lose_waits(self, at: int, message: Message) -> None:
        for place, piece in enumerate(message.content):
            if isinstance(piece, MarkPart) and piece.kind == INTERRUPT:
                self.lose(at, place, Lost.field, WAITS, INTERRUPT)

    def _write(self, piece: Content, at: int, place: int, message: Message) -> None:
        is_model = message.role is Role.MODEL
        if type(piece) is TextPart:
            self.parts.append(self.dialect.text(piece, is_model))
        elif isinstance(piece, ToolCallPart):
            self._call(piece, at, place)
        elif isinstance(piece, (DataPart, LinkPart, FilePart)):
            self.parts.append(self.dialect.file(piece, is_model))
        elif isinstance(piece, MarkPart):
            if piece.kind == INTERRUPT:
                self.lose(at, place, Lost.field, WAITS, INTERRUPT)
            if piece.kind == STEP:
                self._number += bool(self.parts)
            if self.is_one_step and OWN.form(piece.native).get(IMPLIED):
                self.parts.append({"type": STEP})
            elif (OWN.is_ours(piece.native) or piece.kind == STEP) and (
                part := self.dialect.mark(piece)
            ):
                self.parts.append(part)
        elif isinstance(piece, ProviderPart):
            of_model = OWN.form(piece.native).get("in") in ("model", "core")
            if (
                OWN.is_ours(piece.native)
                and not of_model
                and "type" in (part := self.dialect.mark(piece))
            ):
                self.parts.append(part)
            else:
                self.lose(
                    at,
                    place,
                    Lost.provider,
                    "a block that only its provider understands",
                    piece.kind,
                )

    def _call(self, call: ToolCallPart, at: int, place: int) -> None:
        queue = self._results.get(call.id)
        while queue and queue[0][0] < at:
            before, where, _ = queue.popleft()
            self.lose(before, where, Lost.tool_result, ALONE)
        part = self.dialect.call(call, bool(queue), self._number)
        if not queue:
            self.parts.append(part)
            return
        where, result_place, result = queue.popleft()
        self._moved |= (where, result_place) < self._last or (
            where == at and self._is_apart(at, place, result_place)
        )
        self._last = self._last if where == at else (where, result_place)
        self.parts.append(self.dialect.result(part, result, call))

    def _is_apart(self, at: int, place: int, result_place: int) -> bool:
        """Whether a result stands before its call, or behind more than that and marks."""
        between = self.group.messages[at].content[place + 1 : result_place]
        return result_place < place or not all(isinstance(piece, MarkPart) for piece in between)

    def _provider(self, begun: int) -> str | None:
        """Who answered, as the metadata of the parts tells it."""
        named = (provider for part in self.parts[begun:] if (provider := named_in(part)))
        return next(named, None)


def dump_group(
    group: Group,
    id_: str,
    dialect: Dialect,
    taken: Collection[str],
    losses: list[Loss],
    version: str | None = None,
) -> dict[str, Any]:
    """A turn → its UI message. `id_`: its id; `taken`: those of all messages."""
    first = group.messages[0]
    writing = Writing(group, dialect, losses)
    parts = writing.write()
    form = OWN.form(first.native) if first.native else {}
    named = (
        None
        if form.get("id") == "absent" or (first.id is None and "id" in OWN.fields(first.native))
        else id_
    )
    if version is not None:
        parts = restricted(parts, version, lambda what, why: writing.lose(0, 0, what, why))
    empty = (
        not parts
        and dialect.name == UI
        and not (form.get("parts") == EMPTY and _takes_none(first.role, version))
    )
    parts = [filler(first.role)] if empty else parts
    extras = _extras(
        group,
        dialect,
        named,
        form,
        taken,
        writing.providers,
        empty=empty,
        one_step=writing.is_one_step,
    )
    return dialect.envelope(Envelope(named, ROLES[first.role], parts, first, extras))


def _takes_none(role: Role, version: str | None) -> bool:
    """Whether a release takes a message without parts; one that was read so is written so."""
    return version is None or (role is Role.MODEL and version in ("v6", "v7"))


def _extras(
    group: Group, dialect: Dialect, id_: str | None, form: Any, taken: Collection[str], providers: Sequence[str | None],
    *, empty: bool, one_step: bool,
) -> dict[str, Any]:  # fmt: skip
    first = group.messages[0]
    sources = iter(providers)
    made = first.turn if form.get("turn") == "made" else None
    if len(group.messages) == 1 and not group.behind:
        expected = [Expected(id_, made, origin_of(next(sources, None), None))]
    else:
        ids: Iterator[str | None] = (
            inner_ids(id_, taken) if id_ is not None else iter(lambda: None, 0)
        )
        expected = [
            Expected(one.id or "", id_, None)
            if at and is_steering(one)
            else Expected(
                next(ids),
                made or id_,
                origin_of(next(sources, None), None) if one.role is Role.MODEL else None,
            )
            for at, one in enumerate(group.messages)
        ]
    return extras_of(
        group.messages,
        expected,
        joined=group.joined,
        empty=empty,
        one_step=one_step and form.get("parts") != "absent",
        metadata=dialect.metadata_first or OURS in first.metadata,
        time=not dialect.times,
    )


def _begins_a_step(message: Message) -> bool:
    first = message.content[0] if message.content else None
    return isinstance(first, MarkPart) and first.kind == STEP


def _behind_words(message: Message) -> int | None:
    """The place of the first result that stands behind something else in a message; `None`: results stand first."""
    is_behind = False
    for place, piece in enumerate(message.content):
        if is_behind and isinstance(piece, ToolResultPart):
            return place
        is_behind |= not isinstance(piece, MarkPart | ToolResultPart)
    return None


def _is_out_of_order(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether something stands behind what is to be an attachment."""
    kinds = [part["type"] for part in parts]
    return ATTACHMENT in kinds and kinds[kinds.index(ATTACHMENT) :] != [ATTACHMENT] * kinds.count(
        ATTACHMENT
    )
