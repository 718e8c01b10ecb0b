"""State: what was said. `Message` is a frozen value with a role and ordered content.

A message's `content` is the whole, ordered record. Its `parts` are what was *said* (text, data,
links, files, tool calls and results). The rest is hidden: thinking, blocks that only a provider
understands, and marks for people. `to_json` and `from_json` are the stored form of one message,
`dump_messages` and `load_messages` that of a whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Literal, Self, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.content import (
    NOTES,
    OURS,
    Citation,
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Native,
    Part,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    read_unknown_piece,
    upgrade_stored,
)
from dragoman.content_figures import draw_content
from dragoman.errors import HistoryError
from dragoman.figure import Drawable, Figure

__all__ = [
    "Citation",
    "Content",
    "DataPart",
    "FilePart",
    "FinishReason",
    "LinkPart",
    "MarkPart",
    "Message",
    "NOTES",
    "Native",
    "OURS",
    "Origin",
    "Part",
    "ProviderPart",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultPart",
    "Usage",
    "draw_messages",
    "dump_messages",
    "load_messages",
]


T = TypeVar("T")

_MOST_DRAWN = 100
"""Messages that a picture of a conversation shows."""


class Role(StrEnum):
    """Who speaks. There is no tool role: results of tools stand in a user message."""

    SYSTEM = "system"
    USER = "user"
    MODEL = "model"


class FinishReason(StrEnum):
    """Why the model stopped."""

    stop = "stop"
    """It had said what it wanted to say, or met a stop sequence."""
    length = "length"
    """The token limit cut it."""
    tool_calls = "tool_calls"
    """It waits for the results of its tool calls."""
    content_filter = "content_filter"
    """The provider's filter cut it."""
    refusal = "refusal"
    """The model declined; its text says so."""
    recitation = "recitation"
    """The provider saw protected text."""
    pause = "pause"
    """The provider paused a long turn; sending the history again goes on with it."""
    error = "error"
    """The call failed half-way."""
    cancelled = "cancelled"
    """The caller stopped it, or the connection was cut."""
    unspecified = "unspecified"
    """The provider did not say."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one model call, or a sum of several. `None` means that the provider did not
    tell."""

    input_tokens: int | None = None
    """All tokens of the prompt, cached ones included."""
    output_tokens: int | None = None
    """All tokens of the answer, reasoning included."""
    total_tokens: int | None = None
    """As the provider tells it, else input + output."""
    cache_read_tokens: int | None = None
    """Part of `input_tokens`: read from the prompt cache."""
    cache_write_tokens: int | None = None
    """Part of `input_tokens`: written to the prompt cache."""
    reasoning_tokens: int | None = None
    """Part of `output_tokens`: spent on thinking."""

    def __add__(self, other: Usage) -> Usage:
        """Returns the sum of two usages. A count that neither knows stays None."""

        def plus(a: int | None, b: int | None) -> int | None:
            """Returns the sum of one count of two usages."""
            if a is None:
                return b
            if b is None:
                return a
            return a + b

        return Usage(
            **{
                name: plus(getattr(self, name), getattr(other, name))
                for name in self.__struct_fields__
            }
        )


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a model message came from. It decides which provider may read the signed content."""

    provider: str
    """The provider's name, such as `anthropic`."""
    endpoint: str | None = None
    """The base URL that answered."""
    model: str | None = None
    """The model asked for."""
    served_model: str | None = None
    """The model that answered, as the provider names it."""
    response_id: str | None = None
    """The provider's id of the response; providers repeat them."""
    prefix: str | None = None
    """Digest of the messages before this one (see `digest.py`)."""
    system: str | None = None
    """Digest of the system text that the model was asked with, where signed thinking is bound to
    it."""
    tools: str | None = None
    """Digest of the tools that the model was asked with, where signed thinking is bound to them."""
    binds: Literal["block", "messages", "prefix"] | None = None
    """What the message's signed thinking is bound to; `None`: unknown. See
    `ModelProfile.binds`."""


class Message(
    Drawable,
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    weakref=True,
    tag_field="v",
    tag=2,
):
    """One message of a conversation: a role and an ordered content.

    `content` takes any sequence of pieces; a string stands for a `TextPart`. `metadata["thinking"]`
    is derived from the content, there exactly when `thinking` is, and never stored."""

    role: Role
    """Whose it is."""
    content: tuple[Content, ...] = ()
    """All of it, in order: what was said, thinking, blocks of providers."""
    id: str | None = None
    """Minted once, the same in stream, store and every protocol."""
    created_at: datetime | None = None
    """When it was made."""
    origin: Origin | None = None
    """Of a model's message: where it came from."""
    metadata: dict[str, Any] = {}
    """The application's own notes, and `thinking`; never anything that a part says."""
    finish_reason: FinishReason | None = None
    """Of a model's message: why the model stopped."""
    usage: Usage | None = None
    """Of the model call that made this message."""
    native: Native = None
    """What concerns the message as a whole: a name, a developer role, …"""
    turn: str | None = None
    """Id of the turn in which a user interface shows it, with others, as one message; no model is
    told."""

    def __post_init__(self) -> None:
        """Checks a message's content and freezes it."""
        # The struct is frozen for callers; what they passed is brought into its form once, here.
        if type(self.content) is not tuple:
            msgspec.structs.force_setattr(self, "content", _content(self.content))
        has_texts, thinks = False, "thinking" in self.metadata
        for piece in self.content:
            if isinstance(piece, str):
                has_texts = True
            elif isinstance(piece, ThinkingPart):
                thinks = True
        if has_texts:
            msgspec.structs.force_setattr(self, "content", _content(self.content))
        if type(self.role) is not Role:
            msgspec.structs.force_setattr(self, "role", Role(self.role))
        if thinks:
            if thinking := self.thinking:
                derived = {"thinking": thinking}
            else:
                derived = {}
            msgspec.structs.force_setattr(self, "metadata", {**self.own_metadata, **derived})

    @classmethod
    def system(cls, *content: Content | str) -> Self:
        """Returns a system message; a string stands for a `TextPart`."""
        return cls(Role.SYSTEM, _content(content))

    @classmethod
    def user(cls, *content: Content | str) -> Self:
        """Returns a user message; a string stands for a `TextPart`."""
        return cls(Role.USER, _content(content))

    @classmethod
    def model(cls, *content: Content | str) -> Self:
        """Returns a model message; a string stands for a `TextPart`."""
        return cls(Role.MODEL, _content(content))

    @property
    def parts(self) -> tuple[Part, ...]:
        """Returns the parts that the message shows: its content without thinking, provider blocks,
        marks and tools that the provider ran."""
        return tuple(
            piece
            for piece in self.content
            if not isinstance(piece, (ThinkingPart, ProviderPart, MarkPart))
            and getattr(piece, "run_by", "agent") != "provider"
        )

    @property
    def text(self) -> str:
        """Returns all text, joined without a separator."""
        return "".join([piece.text for piece in self.content if isinstance(piece, TextPart)])

    @property
    def thinking(self) -> str | None:
        """Returns all thinking of the message, joined, or None if there is none to read."""
        return (
            "".join([piece.text for piece in self.content if isinstance(piece, ThinkingPart)])
            or None
        )

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """Returns the message's calls that need an answer, cut and invalid ones included."""
        return tuple(
            [p for p in self.content if isinstance(p, ToolCallPart) and p.run_by != "provider"]
        )

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        """Returns the message's results of calls that the agent or its client ran."""
        return tuple(
            [p for p in self.content if isinstance(p, ToolResultPart) and p.run_by != "provider"]
        )

    @property
    def own_metadata(self) -> dict[str, Any]:
        """Returns the metadata without what is derived from the content."""
        return {key: value for key, value in self.metadata.items() if key != "thinking"}

    def __figure__(self) -> Figure:
        """Returns the picture of the message: what it says, with thinking, calls and results
        folded, and who answered with how many tokens."""
        figures = draw_content(self.content)
        facts: list[str] = []
        if self.origin is not None:
            facts.append(f"{self.origin.provider}:{self.origin.model or ''}")
        if (usage := self.usage) is not None:
            facts.append(f"{usage.input_tokens or 0:,} → {usage.output_tokens or 0:,} tokens")
        if facts:
            figures += (Figure("note", text=", ".join(facts)),)
        if self.role is Role.MODEL:
            return Figure(title="model", figures=figures)
        # Nobody said it: a message of results alone.
        if self.content and all(isinstance(piece, ToolResultPart) for piece in self.content):
            return Figure(title="results", figures=figures)
        return Figure("user", self.role.value, figures=figures)

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    def to_json(self) -> bytes:
        """Returns the message's stored form: versioned JSON, read again by `from_json`.

        Raises:
            HistoryError: it holds what JSON cannot, such as half a character of a text that was cut in UTF-16.
        """
        stored = copy(self)
        msgspec.structs.force_setattr(stored, "metadata", self.own_metadata)
        if any(isinstance(piece, ProviderPart) for piece in self.content):
            msgspec.structs.force_setattr(stored, "content", tuple(map(_as_stored, self.content)))
        try:
            return msgspec.json.encode(stored)
        except (TypeError, ValueError, RecursionError) as error:
            raise HistoryError(f"a message cannot be stored as JSON: {error}") from error

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Reads a message from the JSON that `to_json` wrote.

        Raises:
            HistoryError: not a message, or of a version that this release does not read.
        """
        try:
            # Each piece may nest as deep as any JSON, within the message's own levels.
            json_bytes.check_depth(data, 2 * json_bytes.MOST_DEPTH)
            try:
                return msgspec.json.decode(data, type=cls)
            except msgspec.ValidationError:
                return msgspec.convert(upgrade_stored(msgspec.json.decode(data)), cls)
        except (TypeError, ValueError) as error:
            raise HistoryError(
                f"not a stored message: {error}. Write it with Message.to_json()."
            ) from error

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        """Lets pydantic take `Message` as the type of a field: a message, or its stored form as
        JSON's values."""
        from pydantic_core import core_schema

        def load(value: object) -> Message:
            """Loads a message from what pydantic validates."""
            if isinstance(value, cls):
                return value
            try:
                return cls.from_json(msgspec.json.encode(value))
            except (HistoryError, TypeError, UnicodeEncodeError, RecursionError) as error:
                raise ValueError(str(error)) from error

        return core_schema.no_info_plain_validator_function(
            load,
            json_schema_input_schema=core_schema.dict_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda message: msgspec.json.decode(message.to_json()),
                return_schema=core_schema.dict_schema(),
                when_used="json",
            ),
        )


def _content(content: Sequence[Content | str] | str) -> tuple[Content, ...]:
    """Returns a message's content with its strings as text parts."""
    if isinstance(content, str):
        pieces = (content,)
    else:
        pieces = content
    return tuple(TextPart(piece) if isinstance(piece, str) else piece for piece in pieces)


def _as_stored(piece: Content) -> Any:
    """Returns the stored form of a piece of a message. Unknown kinds are stored as they were
    read."""
    if isinstance(piece, ProviderPart):
        stored = read_unknown_piece(piece.kind, piece.native)
    else:
        stored = None
    return stored or piece


def draw_messages(messages: Sequence[Message]) -> tuple[Figure, ...]:
    """Returns pictures of messages, of many the last ones."""
    figures = tuple(message.__figure__() for message in messages[-_MOST_DRAWN:])
    if hidden := len(messages) - len(figures):
        return (Figure("note", text=f"… {hidden:,} earlier messages"), *figures)
    return figures


def dump_messages(messages: Iterable[Message]) -> bytes:
    """Returns a JSON list of the messages' stored forms.

    Raises:
        HistoryError: a message holds what JSON cannot; the error names its position.
    """
    stored = [_at(position, message.to_json) for position, message in enumerate(messages)]
    return b"[" + b",".join(stored) + b"]"


def load_messages(data: bytes | str) -> list[Message]:
    """Reads what `dump_messages` wrote. Versions of the stored form may be mixed.

    Raises:
        HistoryError: the data is no list, or a message cannot be read; the error names its position.
    """
    try:
        json_bytes.check_depth(data, 1 + 2 * json_bytes.MOST_DEPTH)
        stored = msgspec.json.decode(data, type=list[msgspec.Raw])
    except ValueError as error:
        raise HistoryError(
            f"not a saved history: {error}. Write it with dump_messages()."
        ) from error
    return [
        _at(position, partial(Message.from_json, bytes(message)))
        for position, message in enumerate(stored)
    ]


def _at(position: int, convert: Callable[[], T]) -> T:
    """Loads the stored message at a position of a list. An error names the position."""
    try:
        return convert()
    except HistoryError as error:
        raise HistoryError(f"messages[{position}]: {error.message}") from error
