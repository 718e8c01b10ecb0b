"""Messages that hold what JSON has not: looked for when something fails, so that all others cost
nothing."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from dragoman import json_bytes
from dragoman.codec.dump_losses import map_losses_before_repair, map_losses_to_input
from dragoman.codec.dump_pieces import find_sent_messages
from dragoman.codec.native import read_signatures
from dragoman.codec.opening import count_system_messages, find_opening
from dragoman.cost import call_cost
from dragoman.errors import HistoryError, SettingsError
from dragoman.figure import Drawable, Figure
from dragoman.formats.registry import Format
from dragoman.history.lost_fields import find_lost_fields
from dragoman.history.target import Target, find_target
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.message import MarkPart, Message, ToolCallPart, ToolResultPart, Usage
from dragoman.model.keep_prefix import find_unread_thinking
from dragoman.model.tokens import estimate_tokens
from dragoman.profiles import lower
from dragoman.providers import Provider
from dragoman.repair import Source
from dragoman.request import ModelRequest

__all__ = ["Plan", "Written", "plan", "name_unwritable", "write"]

_encode = msgspec.json.Encoder(order="deterministic").encode


@contextmanager
def name_unwritable(messages: Iterable[Message]) -> Generator[None]:
    """Names the first message that JSON cannot hold if the plan within the block fails because of
    one.

    Raises:
        HistoryError: there is one.
    """
    try:
        yield
    except (
        HistoryError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        for position, message in enumerate(messages):
            if (fault := _find_encoding_fault(message)) is not None:
                raise HistoryError(
                    f"messages[{position}] cannot be written as JSON: {fault or type(fault).__name__}; arguments, results, metadata and "
                    "native hold texts, numbers, booleans, null, and lists and objects with string keys of them"
                ) from error
        raise


def _find_encoding_fault(message: Message) -> Exception | None:
    """Returns for a plan the exception that encoding a message as JSON raises, or None."""
    for value in _message_values(message):
        try:
            json.dumps(value)
            json_bytes.check_depth(_encode(value))
        except UnicodeEncodeError:  # half a pair of surrogates, which is written escaped
            continue
        except (TypeError, ValueError, RecursionError, OverflowError) as fault:
            return fault
    return None


def _message_values(message: Message) -> Iterator[Any]:
    """Yields for a plan the fields of a message that may be any JSON value and so may fail to
    encode."""
    yield from (message.metadata, message.native)
    for piece in message.content:
        yield piece.native
        if isinstance(piece, ToolCallPart):
            yield piece.arguments
        elif isinstance(piece, ToolResultPart) and not piece.is_content:
            yield piece.result


class Written(NamedTuple):
    """What was written of a conversation. Positions are those in the conversation as it was
    given."""

    payload: Any
    """As the target has it."""
    losses: tuple[Loss, ...]
    """What was left out or changed."""
    repairs: tuple[Loss, ...]
    """Results that were made up, dropped or moved to their call."""


def write(messages: Sequence[Message], target: Target, *, fields: bool = True) -> Written:
    """Writes a conversation as it would be for a target, for export and plans. `fields`: whether
    the fields that one format alone has are looked for, which takes a pass over the conversation.

    Raises:
        HistoryError: a message holds what JSON has not.
    """
    conversation = tuple(messages)
    sent_messages, positions = (
        (conversation, range(len(conversation)))
        if target.waits
        else find_sent_messages(conversation)
    )
    sent_messages, positions = _restore_changes(sent_messages, positions, target)
    mended, repairs, sources = (
        target.mended(sent_messages) if target.mended else (sent_messages, [], None)
    )
    losses: list[Loss] = []
    with name_unwritable(conversation):
        payload = target.dump(mended, losses)
        if fields:
            losses += find_lost_fields(
                mended, target, {(loss.message, loss.part, loss.what) for loss in losses}
            )
    if target.origin is not None:
        losses += find_unread_thinking(mended, target.origin, target.profile)
    return Written(
        payload,
        _sort_losses(map_losses_to_input(map_losses_before_repair(losses, sources), positions)),
        _sort_losses(map_losses_to_input((*repairs, *_find_moved(mended, sources)), positions)),
    )


def _restore_changes(
    messages: Sequence[Message], positions: Sequence[int], target: Target
) -> tuple[Sequence[Message], Sequence[int]]:
    """Returns the planned messages with the system messages that the target was sent, and the
    position of each in the conversation."""
    if target.origin is None:
        return messages, positions
    opening = find_opening(messages, target.origin)
    if not opening.changes:
        return messages, positions
    head = count_system_messages(messages)
    restored, moved = opening.restore(messages)
    return (*messages[:head], *restored), [positions[index] for index in (*range(head), *moved)]


def _find_moved(mended: Sequence[Message], sources: Sequence[Source] | None) -> Iterator[Loss]:
    """Yields for the plan the results that repair puts before something that they stood behind."""
    first: tuple[int, int] | None = None
    for message, source in zip(reversed(mended), reversed(sources or ()), strict=False):
        for piece, stood in zip(reversed(message.content), reversed(source.parts), strict=True):
            if stood is None or isinstance(piece, MarkPart):
                continue
            if first is not None and stood > first:
                yield Loss(
                    *stood,
                    Lost.order,
                    "results stand right behind their calls, in the order of these",
                )
            first = stood if first is None else min(first, stood)


def _sort_losses(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Sorts the losses of a plan by their place in the conversation, those of the whole request
    first, without repetitions."""
    unique = dict.fromkeys(losses)
    return tuple(sorted(unique, key=lambda loss: (_place(loss.message), _place(loss.part))))


def _place(place: int | None) -> int:
    return -1 if place is None else place


_SHOWN = 8  # positions of messages in a line


class Plan(Drawable, msgspec.Struct, frozen=True):
    """What would become of a conversation at a target. Positions are those in the conversation as
    it was given. `str()` says it for people."""

    target: str
    """A model string, or the name of a format."""
    losses: tuple[Loss, ...] = ()
    """What would be left out or changed."""
    repairs: tuple[Loss, ...] = ()
    """Results of tools that would be made up or dropped, since their call or result is missing, and
    those that would be moved to their call."""
    tokens: int = 0
    """Of the conversation, about."""
    settings: tuple[Loss, ...] = ()
    """Settings, tools and options of the request that the model refuses, or that would be
    changed."""
    voided: int = 0
    """Signed blocks of thinking that the model itself made and that would be left out."""
    fits: bool | None = None
    """True if the conversation and the longest answer that is asked for fit into `window`; `None`:
    the window is unknown."""
    window: int | None = None
    """The most tokens that the model takes; `None`: unknown."""
    price: Decimal | None = None
    """US dollars that the conversation costs as a prompt, about; `None`: unknown."""
    retires: date | None = None
    """The day from which the provider no longer serves the model; `None`: none is known."""

    @property
    def ok(self) -> bool:
        """True if the conversation fits the target without more than minor losses, as
        `on_loss="error"` requires."""
        losses = (*self.losses, *self.repairs, *self.settings)
        return self.fits is not False and all(loss.is_minor for loss in losses)

    def to_json(self) -> Json:
        """Returns the plan as a JSON object, with `ok`; price and day are texts."""
        fields: Json = msgspec.to_builtins(self)
        return {"ok": self.ok, **fields}

    def __figure__(self) -> Figure:
        """Returns the picture of the plan: the lines of `str()`."""
        title, *lines = str(self).splitlines()
        figures = tuple(Figure("note", text=line) for line in lines)
        return Figure(title=title, is_bad=not self.ok, figures=figures)

    def __str__(self) -> str:
        """Returns the plan as lines for people: changes, losses and cost."""
        serious = [loss for loss in self.losses if not loss.is_minor]
        minor = [loss for loss in self.losses if loss.is_minor]
        sections = (
            ("lost or changed", serious),
            ("repaired", self.repairs),
            ("settings refused or changed", self.settings),
            ("minor", minor),
        )
        counts = [f"{len(losses)} {title}" for title, losses in sections if losses] or [
            "nothing is lost"
        ]
        lines = [f"{self.target}: {', '.join(counts)}; about {self.tokens:,} tokens"]
        for title, losses in sections:
            if losses:
                lines += [f"{title}:", *_group_losses(losses)]
        if self.fits is False:
            lines.append(f"it does not fit: the model takes {self.window:,} tokens")
        if self.retires is not None:
            lines.append(f"the provider retires the model on {self.retires}")
        return "\n".join(lines)


def plan(
    messages: Iterable[Message],
    target: str | Provider | Format,
    *,
    request: ModelRequest | None = None,
) -> Plan:
    """Returns what of a conversation would be lost or changed at a target. Nothing is sent; the
    conversation is written as it would be for it.

    Args:
        messages: the conversation. What a model reads is repaired first; a user interface's or a
            library's format is written as it is.
        target: a model string (`anthropic:claude-sonnet-4-6`; `anthropic` alone is the provider
            with its default model), a provider's record, the name of a format, or a format
            (`formats.get("anthropic")`, whose name is a provider's).
        request: the tools, settings and options that the conversation is to be sent with, for a
            model; its own messages are not looked at.

    Raises:
        SettingsError: no provider and no format has that name.
    """
    conversation = tuple(messages)
    lowering: tuple[Loss, ...] = ()
    target_found = find_target(target, request)
    profile = target_found.profile
    if request is not None and target_found.wire:
        around = request.replace(model=target_found.model, messages=())
        request, lowering = lower(around, profile, wire=target_found.wire)
        target_found = find_target(target, request)
    written = write(conversation, target_found)
    with name_unwritable(conversation):
        tokens = estimate_tokens(
            conversation, provider=target_found.provider, model=target_found.model
        )
    of_request = [loss for loss in written.losses if _is_of_request(loss)]
    window = profile.window or profile.input
    answer = (request.settings.max_tokens or 0) if request and profile.window else 0
    return Plan(
        target_found.name,
        tuple([loss for loss in written.losses if not _is_of_request(loss)]),
        written.repairs,
        tokens,
        settings=tuple(dict.fromkeys((*lowering, *of_request))),
        voided=_count_voided(conversation, written.losses, target_found),
        fits=None if window is None else tokens + answer <= window,
        window=window,
        price=_find_price(target_found, tokens),
        retires=profile.retires,
    )


_REQUEST_LOSSES = (Lost.setting, Lost.option, Lost.output_schema, Lost.tool)
"""Losses of what stands around a conversation in its request."""


def _is_of_request(loss: Loss) -> bool:
    """True if something was lost that stands around a conversation, such as a field of a tool."""
    of_tool = loss.what is Lost.field and loss.message is None
    return loss.what in _REQUEST_LOSSES or of_tool


def _count_voided(messages: Sequence[Message], losses: Iterable[Loss], target: Target) -> int:
    """Counts the signed blocks of the target's own thinking among the losses of the plan."""
    voided = 0
    for loss in losses:
        if loss.what is not Lost.thinking or loss.message is None or loss.part is None:
            continue
        message = messages[loss.message]
        is_own = message.origin is not None and message.origin.provider == target.provider
        voided += is_own and bool(read_signatures(message.content[loss.part].native))
    return voided


def _find_price(target: Target, tokens: int) -> Decimal | None:
    """Returns the cost of these tokens as a prompt at the plan's target. None if the price is
    unknown or no prices are installed."""
    if target.origin is None:
        return None
    try:
        return call_cost(target.origin, Usage(input_tokens=tokens, output_tokens=0))
    except SettingsError:
        return None


def _group_losses(losses: Iterable[Loss]) -> Iterator[str]:
    """Yields a line of the plan for each kind and reason of loss, with how many there are and
    where."""
    groups: dict[tuple[Lost, str, str], list[Loss]] = {}
    for loss in losses:
        groups.setdefault((loss.what, loss.which, loss.why), []).append(loss)
    for (what, which, why), some in groups.items():
        name = f"{what} {which}" if which and which != what else str(what)
        count = f"{len(some)} × " if len(some) > 1 else ""
        yield f"  {count}{name}{_where(some)}: {why}"


def _where(losses: Sequence[Loss]) -> str:
    positions = list(dict.fromkeys([loss.message for loss in losses if loss.message is not None]))
    numbers = ", ".join(map(str, positions[:_SHOWN])) + (", …" if len(positions) > _SHOWN else "")
    return f" in message{'s' if len(positions) > 1 else ''} {numbers}" if positions else ""
