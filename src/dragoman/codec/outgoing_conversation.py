"""What the dump of a conversation must know beside its messages: where they go, by which quirks,
under which ids and names, and what could not be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeGuard, TypeVar, overload

import msgspec

from dragoman.codec.fit_ids import fit_names, map_call_ids
from dragoman.codec.json_values import if_object
from dragoman.codec.marks import Places, strip_all_marks
from dragoman.codec.signature_check import find_unreadable
from dragoman.loss import Loss, Lost
from dragoman.message import (
    NOTES,
    OURS,
    Content,
    Message,
    Origin,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest, ToolSpec

__all__ = [
    "Outgoing",
    "is_provider_tool",
    "read_sole_text",
    "drop_foreign_options",
    "prepare_named_outgoing",
    "prepare_outgoing",
]

Q = TypeVar("Q")
O = TypeVar("O", bound="Outgoing[Any]")  # noqa: E741 the letter of its bound


_SCHEMA_FIELD = "response_format"
_UNFINISHED = {"cut": "cut off", "invalid": "no JSON object"}


class Outgoing(msgspec.Struct, Generic[Q], frozen=True, kw_only=True, gc=False):
    """One conversation on its way out. A wire that must know more has a subclass of its own."""

    messages: Sequence[Message]
    """All of it, in order."""
    target: Origin | None
    """Who will read it; `None`: nobody yet, so that each message goes as if to its own origin."""
    quirks: Q
    """What its reader does differently."""
    losses: list[Loss]
    """Grows with what is left out or changed."""
    unreadable: Sequence[str | None]
    """For each message why what its provider signed may not go along; `None`: it may."""
    ids: Mapping[tuple[int, int], str]
    """Place of a call or result → the id to send."""
    names: Mapping[str, str]
    """Name of a tool → the one to send."""
    part_indexes: Places = {}
    """Where pieces stood in messages that had marks, which `messages` are without."""
    before: int = 0
    """How many messages of the conversation stand before these, and are dumped already."""

    def lose(
        self, position: int | None, part: int | None, what: Lost, why: str, which: str = ""
    ) -> None:
        """Notes something of the outgoing conversation that is left out or changed; see `Loss`."""
        if part is not None and position is not None and position in self.part_indexes:
            part = self.part_indexes[position][part]
        self.losses.append(
            Loss(None if position is None else self.before + position, part, what, why, which)
        )

    def lose_unfinished(
        self, position: int, part: int, call: ToolCallPart, sent_arguments: Any
    ) -> None:
        """Notes of an outgoing call that was cut or is invalid that it is sent as one without
        arguments, where that is so. `sent`: its arguments as they are written."""
        if call.state != "complete" and sent_arguments in ({}, "{}"):
            self.lose(
                position,
                part,
                Lost.arguments,
                f"they are {_UNFINISHED[call.state]}; the call is sent without",
            )

    def returns_to_origin(self, position: int) -> bool:
        """True if a message goes to its own origin, which understands whatever was unusual about
        it."""
        origin = self.messages[position].origin
        return self.target is None or (
            origin is not None and origin.provider == self.target.provider
        )

    def id(self, position: int, index: int, piece: ToolCallPart | ToolResultPart) -> str:
        """Returns the id under which a call or result is sent."""
        return self.ids.get((position, index), piece.id)

    def name(self, name: str) -> str:
        """Returns the name under which a tool is sent."""
        return self.names.get(name, name)


def prepare_outgoing(
    of: type[O],
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    **fields: Any,
) -> O:
    """Prepares a conversation, without its marks (`codec.marks.strip_all_marks`), for its dump.
    `quirks.reads` names providers whose signatures the target takes; `fields`: `ids`, `names`,
    `part_indexes` and the fields of the subclass."""
    messages = tuple(messages)
    return of(
        messages=messages,
        target=target,
        quirks=quirks,
        losses=[] if losses is None else losses,
        unreadable=_Unreadable(
            lambda: find_unreadable(messages, target, quirks.reads), len(messages)
        ),
        **fields,
    )


def prepare_named_outgoing(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec],
    *,
    keeps_id: Callable[[ToolCallPart | ToolResultPart], bool],
) -> Outgoing[Any]:
    """Prepares a conversation for its dump, with ids and names that fit `quirks.ids` and
    `quirks.names`. Without a target names stay as they are, however odd, and so do the ids of the
    pieces that `keeps_id` tells. `tools`: the request's."""
    messages, places = strip_all_marks(messages)
    calls = [call for message in messages for call in message.tool_calls]
    names = list(dict.fromkeys([tool.name for tool in (*tools, *calls)]))
    return prepare_outgoing(
        Outgoing[Any],
        messages,
        target,
        quirks,
        losses,
        part_indexes=places,
        ids=map_call_ids(messages, quirks.ids, as_is=None if target else keeps_id),
        names=fit_names(names, quirks.names) if target else {name: name for name in names},
    )


class _Unreadable(Sequence[str | None]):
    """What `find_unreadable` gives, found out when it is first asked for: a model that remembers knows the
    digests that this takes."""

    def __init__(self, find: Callable[[], Sequence[str | None]], length: int) -> None:
        self._find, self._length = find, length

    @cached_property
    def _found(self) -> Sequence[str | None]:
        return self._find()

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str | None]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str | None] | None:
        return self._found[index]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._found)

    def __len__(self) -> int:
        return self._length


def drop_foreign_options(request: ModelRequest, wire: str, losses: list[Loss]) -> ModelRequest:
    """Returns the outgoing request without options of another wire. Notes each as a loss, and each
    field that another wire kept for itself and that says anything."""
    owned = _list_kept_fields(request, wire)
    is_foreign = request.wire not in (None, wire) and bool(request.options)
    if is_foreign:
        owned = [*[(str(request.wire), name) for name in request.options], *owned]
    losses += [
        Loss(None, None, Lost.option, f"it is a field of {owner}", name) for owner, name in owned
    ]
    if is_foreign:
        return request.replace(options={}, wire=None)
    return request


def _list_kept_fields(request: ModelRequest, wire: str) -> list[tuple[str, str]]:
    """Returns the fields that other wires than this one kept for themselves in a request, each with
    its wire."""
    return [
        (owner, name)
        for owner, fields in (request.native or {}).items()
        if owner not in (wire, OURS) and not owner.endswith(NOTES)
        for name, field in if_object(fields).items()
        if _says(name, field)
    ]


def _says(name: str, field: object) -> bool:
    """True if a field of a request says anything, alone or within, beside how a schema is called
    and written."""
    if name == _SCHEMA_FIELD or not isinstance(field, dict):
        return bool(field) and name != _SCHEMA_FIELD
    return any(inner for key, inner in if_object(field).items() if key != "format")


def is_provider_tool(piece: Content) -> TypeGuard[ToolCallPart | ToolResultPart]:
    """True if a piece is the call or the result of a tool that a provider ran."""
    return isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider"


def read_sole_text(message: Message) -> str | None:
    """Returns the text of an outgoing message that is one text, not blank and without native
    fields, as nearly all are; None for any other message."""
    content = message.content
    if (
        message.native is None
        and len(content) == 1
        and type(piece := content[0]) is TextPart
        and piece.native is None
        and not piece.citations
    ):
        return piece.text if piece.text.strip() else None
    return None
