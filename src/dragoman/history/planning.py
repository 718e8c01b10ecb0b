"""What a conversation would lose or change at a target, before it is sent there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.formats.registry import Format
from dragoman.history.target import find_target
from dragoman.history.unwritable import unwritable_named
from dragoman.history.writing import write
from dragoman.loss import Loss, Lost
from dragoman.message import Message
from dragoman.model.tokens import estimated_tokens
from dragoman.providers import Provider

__all__ = ["Plan", "plan"]

_SHOWN = 8  # positions of messages in a line


class Plan(msgspec.Struct, frozen=True):
    """What would become of a conversation at a target. Positions are those in the conversation as it was given. `str()` says it for people."""

    target: str
    """A model string, or the name of a format."""
    losses: tuple[Loss, ...] = ()
    """What would be left out or changed."""
    repairs: tuple[Loss, ...] = ()
    """Results of tools that would be made up or dropped, since their call or result is missing, and those that would be moved to their call."""
    tokens: int = 0
    """Of the conversation, about."""

    @property
    def ok(self) -> bool:
        """Whether nothing but minor things would be lost, and nothing made up or dropped: what `on_loss="error"` lets pass."""
        return all(loss.is_minor for loss in (*self.losses, *self.repairs))

    def __str__(self) -> str:
        serious = [loss for loss in self.losses if not loss.is_minor]
        minor = [loss for loss in self.losses if loss.is_minor]
        sections = (("lost or changed", serious), ("repaired", self.repairs), ("minor", minor))
        counts = [f"{len(losses)} {title}" for title, losses in sections if losses] or [
            "nothing is lost"
        ]
        lines = [f"{self.target}: {', '.join(counts)}; about {self.tokens:,} tokens"]
        for title, losses in sections:
            if losses:
                lines += [f"{title}:", *_grouped(losses)]
        return "\n".join(lines)


def plan(messages: Iterable[Message], target: str | Provider | Format) -> Plan:
    """What of a conversation would be lost or changed at a target. Nothing is sent; the conversation is written as it would be for it.

    `target`: a model string (`anthropic:claude-sonnet-4-6`; `anthropic` alone is the provider with its default model), a provider's
    record, the name of a format, or a format (`formats.get("anthropic")`, whose name is a provider's). What a model reads is repaired first; a user interface's or a library's format is written as it is.

    Raises:
        SettingsError: no provider and no format has that name.
    """
    given = tuple(messages)
    found = find_target(target)
    written = write(given, found)
    with unwritable_named(given):
        tokens = estimated_tokens(given, provider=found.provider, model=found.model)
    return Plan(found.name, written.losses, written.repairs, tokens)


def _grouped(losses: Iterable[Loss]) -> Iterator[str]:
    """A line for each kind and reason, with how many there are and where."""
    groups: dict[tuple[Lost, str, str], list[Loss]] = {}
    for loss in losses:
        groups.setdefault((loss.what, loss.which, loss.why), []).append(loss)
    for (what, which, why), some in groups.items():
        name = f"{what} {which}" if which and which != what else str(what)
        count = f"{len(some)} × " if len(some) > 1 else ""
        yield f"  {count}{name}{_where(some)}: {why}"


def _where(losses: Sequence[Loss]) -> str:
    positions = list(dict.fromkeys([loss.message for loss in losses if loss.message is not None]))
    shown = ", ".join(map(str, positions[:_SHOWN])) + (", …" if len(positions) > _SHOWN else "")
    return f" in message{'s' if len(positions) > 1 else ''} {shown}" if positions else ""
