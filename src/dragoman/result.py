"""Results: of a send, whole or as a chunk of a stream, and of embedding; and a model in a list.

All of them are frozen values. `ChatResult` serves whole results and chunks with the same fields:
a chunk holds only what is new, and the field docstrings say what differs. `calls` lists the model
calls; `usage` and `cost` are sums over it. Costs are computed when they are read, from the prices
of the time of each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.cost import call_cost
from dragoman.errors import SettingsError
from dragoman.figure import Drawable, Figure
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Native, Origin, Usage, draw_messages
from dragoman.model_profile import ModelProfile
from dragoman.pending_text import summarize

__all__ = [
    "BatchEmbeddingsResult",
    "ChatResult",
    "EmbeddingsResult",
    "ModelCall",
    "ModelInfo",
    "Vector",
    "find_total_cost",
    "sum_cost",
    "sum_usage",
]

T = TypeVar("T")

Vector = list[float]
"""A text as numbers. A plain list, because that is what numpy, JSON, SQLite's and Postgres' vector
types and every vector store take as it is; a number in it costs 32 bytes. To hold millions of
vectors pack them: `array("f", vector)` takes 4."""


_NO_TOKENS = Usage(input_tokens=0, output_tokens=0, total_tokens=0)

_SHOWN = 60
"""Characters of an answer that `str` of a result shows."""


class ModelCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a model that has begun to answer, also where the answer was cut or retracted."""

    origin: Origin | None = None
    """Who answered; `None`: nobody that is known, such as a middleware of yours."""
    usage: Usage | None = None
    """Tokens; `None`: the provider told none, or its answer was cut before it did."""
    run_id: str = ""
    """Id of the run that asked: the run's own, or that of an agent within one of its tools."""
    created_at: datetime | None = None
    """When the answer began."""
    cached: bool = False
    """The answer came from a response cache, and nothing was asked. `usage` is then that of the
    call which made it."""
    native: Native = None
    """What the provider said beside the tokens, as in `MessageFinished`."""

    @property
    def cost(self) -> Decimal | None:
        """Returns the cost of one model call of the result in US dollars: the provider's own figure
        if it reported one, else by the prices of that time; 0 for a cached answer. None if the
        usage or the price is unknown.

        Raises:
            SettingsError: the extra `cost` is not installed.
        """
        if self.cached:
            return Decimal(0)
        return call_cost(self.origin, self.usage, self.created_at, self.native)


def sum_usage(calls: Iterable[ModelCall]) -> Usage | None:
    """Returns the tokens of all calls of a result; answers from a cache took none. `None` if no
    provider reported any."""
    total: Usage | None = None
    for call in calls:
        usage = _NO_TOKENS if call.cached else call.usage
        if usage is not None:
            total = usage if total is None else total + usage
    return total


def sum_cost(calls: Iterable[ModelCall]) -> Decimal | None:
    """Returns the cost of all calls of a result in US dollars; `None` if the cost of one is
    unknown.

    Raises:
        SettingsError: the extra `cost` is not installed.
    """
    total = Decimal(0)
    for call in calls:
        if (cost := call.cost) is None:
            return None
        total += cost
    return total


def find_total_cost(calls: Iterable[ModelCall]) -> Decimal | None:
    """Returns what `sum_cost` does, and `None` also where the package with the prices is not
    installed: for those who show a cost if there is one."""
    try:
        return sum_cost(calls)
    except SettingsError:
        return None


class ChatResult(Drawable, msgspec.Struct, Generic[T], frozen=True, omit_defaults=True):
    """The result of one send, or one chunk of it. Chunks hold only what is new; `joined` adds
    them up."""

    output: T
    """The text of all model messages, with a newline between two that have tools between them. With
    an output schema: the text of the JSON alone. From `send_for`: the value."""
    messages: tuple[Message, ...] = ()
    """Messages that this send made, in order: user, (model with calls, user with results)*,
    model."""
    finish_reason: FinishReason = FinishReason.unspecified
    """Why the model stopped; in a chunk, for the message that it ends."""
    usage: Usage | None = None
    """Tokens of all calls; in a chunk, of the model call that it ends."""
    thinking: str | None = None
    """The model's thinking in all its messages; in a chunk, more of it. `None` if it showed
    none."""
    metadata: dict[str, Any] = {}
    """What the provider said beside its message, such as `model` and `response_id`, and
    `thinking`."""
    id: str = ""
    """Id of the last model message; in a chunk, of the current one. Empty before the model
    speaks."""
    pending: tuple[Interrupt, ...] = ()
    """What the run waits for. Answer each with `approve`, `deny`, `answer` or `cancel`, and pass
    the answers as `resume=` to the next send."""
    losses: tuple[Loss, ...] = ()
    """What the requests had to leave out because the provider cannot take it or may not read it,
    each once."""
    state: Any = None
    """The state that client and agent share, as the run left it; in a chunk, its new value if it
    changed. `None` if there is none."""
    custom: Mapping[str, Any] = {}
    """In a chunk: what a tool emitted, by its name (see `ToolContext.emit`). Empty in a whole
    result."""
    retracted: str = ""
    """In a chunk without output: the end of the streamed text, which is withdrawn. The model began
    again, or a typed answer failed validation. `joined` removes it for you."""
    calls: tuple[ModelCall, ...] = ()
    """The model calls in the order in which they ended, also cut and retracted ones, and those of
    agents within tools. In a chunk: those since the last chunk that had any. `usage` is their
    sum."""

    final: bool = False
    """In the last chunk of `send_stream_for`: True, and `output` is the validated value. In its
    other chunks `output` is a `Partial`, or an element of the list."""

    def __str__(self) -> str:
        """Returns the result as a line for people; `repr` has every field."""
        text = str(self.output)
        fields = [
            repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"),
            str(self.finish_reason),
        ]
        if self.usage is not None and self.usage.total_tokens is not None:
            fields.append(f"{self.usage.total_tokens} tokens")
        if self.messages:
            fields += [f"{len(self.messages)} messages"]
        if self.pending:
            fields += [f"waits for {len(self.pending)}"]
        if self.losses:
            fields += [f"{len(self.losses)} losses"]
        return f"ChatResult({', '.join(fields)})"

    def __figure__(self) -> Figure:
        """Returns the picture of the result: its messages, or its output if it has none, what was
        left out, and what it waits for."""
        figures = draw_messages(self.messages) or (Figure("text", text=str(self.output)),)
        notes = [f"left out or changed: {loss}" for loss in self.losses if not loss.is_minor]
        notes += map(summarize, self.pending)
        title = str(self).removeprefix("ChatResult(").removesuffix(")")
        if cost := find_total_cost(self.calls):
            title += f", ${cost:f}"
        return Figure(title=title, figures=(*figures, *[Figure("note", text=n) for n in notes]))

    @property
    def cost(self) -> Decimal | None:
        """Returns the cost in US dollars of all `calls`, also of agents within tools, or None if
        the cost of one of them is unknown. `None`: what one of them cost is unknown.

        Raises:
            SettingsError: the extra `cost` is not installed.
        """
        return sum_cost(self.calls)

    def joined(self: ChatResult[str], text: str) -> str:
        """Returns the output so far with this chunk added. `text`: the output of the chunks before
        it."""
        return text.removesuffix(self.retracted) + self.output


class EmbeddingsResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One text as a vector."""

    embeddings: Vector
    """The vector."""
    usage: Usage | None = None
    """Input tokens. Where the provider tells none: characters / 4, and
    `metadata["usage_estimated"]` is true."""
    finish_reason: FinishReason = FinishReason.stop
    """Always `stop`: a vector is whole."""
    metadata: dict[str, Any] = {}
    """What the provider said beside the vectors, such as `model`, the one that served."""
    id: str = ""
    """The provider's id of the response; `""`: it gave none."""


class BatchEmbeddingsResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Texts as vectors, in the order of the texts."""

    embeddings: list[Vector]
    """A vector for each text."""
    usage: Usage | None = None
    """As in `EmbeddingsResult`, summed over all requests that were needed."""
    finish_reason: FinishReason = FinishReason.stop
    """Always `stop`."""
    metadata: dict[str, Any] = {}
    """As in `EmbeddingsResult`. Of several requests: numbers are added, lists joined, of all else
    the last stands."""
    id: str = ""
    """Of the first request; `""`: the provider gave none."""

    @property
    def count(self) -> int:
        """Returns the number of vectors."""
        return len(self.embeddings)

    @property
    def dimensions(self) -> int:
        """Returns how many numbers each vector of the result has; 0 where there is none."""
        if self.embeddings:
            return len(self.embeddings[0])
        return 0


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that a provider offers."""

    name: str
    """The provider's name of it."""
    provider: str
    """Name of the provider."""
    kinds: tuple[str, ...] = ("chat",)
    """Any of chat, embeddings, media, image, audio, tts, count_tokens, other."""
    display_name: str | None = None
    """The name for people; `None`: the provider gives none."""
    description: str | None = None
    """What the provider says of it."""
    extra: dict[str, Any] = {}
    """What else the provider says of it, under the provider's names."""
    profile: ModelProfile | None = None
    """What the provider says that it accepts; `None`: nothing."""

    @property
    def model(self) -> str:
        """Returns the model string: `provider:name`."""
        return f"{self.provider}:{self.name}"

    @property
    def longest_prompt(self) -> int | None:
        """Returns the most tokens of a prompt, or None if nobody says."""
        return self.profile and (self.profile.input or self.profile.window)

    @property
    def longest_answer(self) -> int | None:
        """Returns the most tokens of an answer, or None if nobody says."""
        return self.profile and self.profile.output
