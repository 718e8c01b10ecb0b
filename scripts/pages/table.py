"""`docs/formats/table.md`: what survives the way from one format to another, found by trying it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from dragoman import formats
from dragoman.codec.native import read_signatures
from dragoman.formats.registry import Format
from dragoman.loss import Loss
from dragoman.message import Message, Native, ThinkingPart, ToolCallPart, ToolResultPart
from pages.switching import PROBES

__all__ = ["SAMPLES", "markdown", "tried"]

_ASK, _MORE = Message.user("?"), Message.user("And?")


def _thinking(native: Native = None) -> tuple[Message, ...]:
    return _ASK, Message.model(ThinkingPart("Hm.", native), "So."), _MORE


SAMPLES: Mapping[str, tuple[Message, ...]] = {
    **PROBES,
    "thinking": _thinking(),
    "thinking that Anthropic signed": _thinking({"anthropic": {"signature": "c2ln"}}),
    "thinking that OpenAI signed": _thinking(
        {"openai_responses": {"id": "rs_1", "encrypted_content": "c2ln"}}
    ),
    "calls that Google signed": (
        _ASK,
        Message.model(
            ToolCallPart("c1", "look", {"at": 1}, native={"google": {"thoughtSignature": "c2ln"}})
        ),
        Message.user(ToolResultPart("c1", "look", "a")),
    ),
    "cut calls": (
        _ASK,
        Message.model(ToolCallPart("c1", "look", raw='{"at', state="cut")),
        Message.user(ToolResultPart("c1", "look", {"error": "cut"}, is_error=True)),
    ),
    "tools of the provider": (
        _ASK,
        Message.model(
            ToolCallPart("s1", "search", {"q": "cat"}, run_by="provider"),
            ToolResultPart("s1", "search", "a cat", run_by="provider"),
            "So.",
        ),
        _MORE,
    ),
}
"""What a conversation may hold → one that holds it."""


class Tried(NamedTuple):
    """What became of a conversation."""

    lost: bool
    """Something that a model would miss."""
    minor: bool
    """Something else."""
    why: tuple[str, ...]
    """In words."""


@cache
def _names() -> tuple[str, ...]:
    return tuple(formats.names())


def tried(format_: Format, messages: Sequence[Message]) -> tuple[Tried, list[Message]]:
    """A conversation, written in a format → what became of it, and what is read of it."""
    losses: list[Loss] = []
    read = format_.load_messages(format_.dump_messages(messages, losses=losses))
    unsigned = _seals(messages) - _seals(read)
    why = [loss.why for loss in losses] + (
        ["it has no place for what another provider signed"] if unsigned else []
    )
    lost = bool(unsigned) or any(not loss.is_minor for loss in losses)
    return Tried(lost, bool(losses) and not lost, tuple(dict.fromkeys(why))), read


def _seals(messages: Sequence[Message]) -> set[str]:
    return {
        seal
        for message in messages
        for piece in message.content
        for seal in read_signatures(piece.native).values()
    }


@cache
def _held(name: str) -> Mapping[str, Sequence[Message]]:
    """The samples that a format holds itself, as it has them."""
    found: dict[str, Sequence[Message]] = {}
    for kind, messages in SAMPLES.items():
        came, read = tried(formats.get(name), messages)
        if not came.lost:
            found[kind] = read
    return found


_INTRODUCTION = """\
# Conversion losses

The table shows what survives if you convert a conversation from one format (row) to another (column). Each cell counts kinds of content, such as pictures or signed thinking:

- ✓ survives
- ~ changes, but no model would miss it: the name of a picture, the order of pieces, texts that are joined
- ✗ is lost

A row counts only the kinds that its own format holds. [Metadata](README.md#metadata) has its own table. What a particular model accepts is in
[switching providers](../switching.md).

`make pages` generates this page by converting a conversation of each kind, and a test compares the page with the code.
"""


def markdown() -> str:
    """`docs/formats/table.md`."""
    names = _names()
    return "\n".join(
        [
            _INTRODUCTION,
            _line(("from \\ to", *(f"`{name}`" for name in names))),
            _line(["---"] * (len(names) + 1)),
            *(_line((f"`{first}`", *(_cell(first, then) for then in names))) for first in names),
            "",
            "## Losses by format",
            *(line for name in names for line in _reasons(name)),
            "",
        ]
    )


def _cell(first: str, then: str) -> str:
    if first == then:
        return "="
    came = [tried(formats.get(then), messages)[0] for messages in _held(first).values()]
    lost, minor = sum(each.lost for each in came), sum(each.minor for each in came)
    counts = (("✓", len(came) - lost - minor), ("~", minor), ("✗", lost))
    return " ".join(f"{mark} {count}" for mark, count in counts if count)


def _reasons(name: str) -> Iterator[str]:
    """What of the samples a format does not keep, and why."""
    yield from ("", f"### {name}", "")
    nothing = True
    for kind, messages in SAMPLES.items():
        came, _ = tried(formats.get(name), messages)
        if came.lost or came.minor:
            nothing = False
            yield f"- {'~' if came.minor else '✗'} {kind}: {'; '.join(came.why)}"
    if nothing:
        yield "It keeps all of it."


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
