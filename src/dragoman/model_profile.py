"""What one model accepts, and does: `ModelProfile`. Where profiles come from is in
`dragoman.profiles`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Literal

import msgspec

__all__ = ["EMPTY", "ModelProfile"]

Names = tuple[str, ...]
Ranges = Mapping[str, tuple[float, float]]


class ModelProfile(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a model accepts. Every field is `None` where it is unknown, which never means no: nothing
    is refused and nothing is changed for it. An empty tuple is known to be empty.

    Settings are named as in `Settings` (`temperature`, `top_k`, `stop`, …), and as in the API where
    `Settings` has none (`logprobs`, `logit_bias`, `n`).
    """

    # thinking
    thinks: Literal["never", "asked", "default", "always"] | None = None
    """When it thinks: only if asked to, by default, or always."""
    ways: tuple[Literal["adaptive", "budget", "effort", "level", "switch"], ...] | None = None
    """How it is asked to think: `adaptive` (Anthropic), a `budget` of tokens, an `effort` (OpenAI),
    a `level` (Gemini), or a `switch` that is on or off."""
    off: Names | None = None
    """The API's words that switch thinking off; empty: it cannot be switched off."""
    efforts: Names | None = None
    """The efforts that it takes, in the API's words."""
    efforts_off: Names | None = None
    """The efforts that it takes while thinking is switched off."""
    budget: tuple[int, int] | None = None
    """Least and most tokens of thinking; 0 as the most: anything below `max_tokens`."""
    omits_thinking: bool | None = None
    """Whether it leaves out the text of its thinking unless it is asked for a summary."""
    signed_calls: bool | None = None
    """Whether it refuses a round of calls whose first has no signature."""
    binds: Literal["block", "messages", "prefix"] | None = None
    """What its signed thinking is bound to: the block itself, all messages before it, or system
    text, tools and all messages before it."""
    reads: Names | None = None
    """Beginnings of the names of the models whose signed thinking it reads beside its own."""
    account: bool | None = None
    """Whether its signed thinking is bound to the account as well."""

    # settings
    refused: Names | None = None
    """Settings that are an error."""
    refused_thinking: Names | None = None
    """Settings that are an error while it thinks."""
    refused_stream: Names | None = None
    """Settings that are an error in a streamed request."""
    fixed: Names | None = None
    """Settings of which only the API's default value is taken."""
    fixed_thinking: Names | None = None
    """Settings of which only the API's default value is taken while it thinks."""
    default_passes: Names | None = None
    """Settings of `refused` whose default value is taken."""
    ranges: Ranges | None = None
    """Setting → the least and the greatest value that is taken."""
    ranges_thinking: Ranges | None = None
    """Setting → the least and the greatest value that is taken while it thinks."""
    ignored: Names | None = None
    """Settings that are taken and have no effect; `midsys`: so has a system message in the middle
    of a conversation."""
    together: tuple[tuple[str, str], ...] | None = None
    """Pairs of settings that are an error in one request."""
    refused_fields: Names | None = None
    """Fields of the body that are an error, such as `max_tokens` where the API has another."""

    # tools and output
    tools: bool | None = None
    """Takes function tools."""
    tools_need_off: bool | None = None
    """Takes function tools only while thinking is switched off."""
    forced: Literal["yes", "no", "unless-thinking", "unless-budget"] | None = None
    """When a tool can be forced: always, never, not while it thinks, or not while it thinks by a
    budget."""
    parallel: bool | None = None
    """Calls several tools in one answer."""
    schema: bool | None = None
    """Answers by a JSON Schema."""
    schema_tools: bool | None = None
    """Answers by a JSON Schema in a request that has tools as well."""
    json: bool | None = None
    """Answers in JSON without a schema."""
    server: Mapping[str, str] | None = None
    """Tool that the provider runs → the version to ask for."""
    refused_server: Names | None = None
    """Tools that the provider runs, or their fields, that are an error."""
    server_and_tools: bool | None = None
    """Takes function tools beside tools that the provider runs."""
    result_media: bool | None = None
    """Takes media inside the result of a function."""
    tool_search: bool | None = None
    """Finds tools itself whose definitions are deferred."""
    betas: Mapping[str, str] | None = None
    """Something in a request (a type of tool or block, a field) → the beta header that it needs."""

    # conversation
    midsys: bool | None = None
    """Takes and heeds a system message in the middle of a conversation."""
    prefill: bool | None = None
    """Goes on with a conversation that ends with the model's own message."""
    roles: Names | None = None
    """The roles that it takes."""
    inputs: Names | None = None
    """Kinds of media that it takes: `image`, `pdf`, `audio`, `video`, `file`."""
    no_inputs: Names | None = None
    """Kinds of media that are an error."""

    # limits
    input: int | None = None
    """Most tokens of a prompt."""
    output: int | None = None
    """Most tokens of an answer."""
    window: int | None = None
    """Most tokens of prompt and answer together."""
    input_plus_output: bool | None = None
    """Whether the prompt and `max_tokens` together must fit into `input`."""
    cache_min: int | None = None
    """Least tokens of a prompt that the provider caches."""
    cache_marks: int | None = None
    """Most cache marks of one request."""
    cache_ttl: Names | None = None
    """How long the provider can keep a prompt, in its words."""
    retires: date | None = None
    """The day from which the provider no longer serves it."""
    retired: bool | None = None
    """Whether the provider has ceased to serve it."""

    on: Mapping[str, ModelProfile] | None = None
    """Wire → what differs where the model is asked by it. Names of refused settings are added to
    those of the model; all other fields replace the model's."""
    sources: Mapping[str, str] | None = None
    """Field → where its value comes from."""

    def __repr__(self) -> str:
        cells = ", ".join(f"{name}={value!r}" for name, value in self.known().items())
        return f"ModelProfile({cells})"

    def over(self, other: ModelProfile) -> ModelProfile:
        """Returns this profile, with `other`'s value in each field that is unknown here."""
        known = self.known()
        if not known:
            return other
        if "sources" in known and other.sources:
            # the source of a replaced value says nothing of the new one
            kept = {name: source for name, source in other.sources.items() if name not in known}
            known["sources"] = {**kept, **(self.sources or {})}
        return msgspec.structs.replace(other, **known)

    def known(self) -> dict[str, object]:
        """Returns the fields that are known, by their names."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not None}

    def for_wire(self, wire: str) -> ModelProfile:
        """Returns the profile as it is where the model is asked by this wire; it has no `on`."""
        if self.on is None:
            return self
        common = msgspec.structs.replace(self, on=None)
        special = self.on.get(wire)
        return common if special is None else common.changed_by(special)

    def changed_by(self, special: ModelProfile) -> ModelProfile:
        """Returns this profile with `special`'s known fields. Names of refused, fixed and ignored
        settings are added to those here; all other fields replace those here."""
        joined = {
            name: tuple(dict.fromkeys((*(getattr(self, name) or ()), *names)))
            for name in _ADDED
            if (names := getattr(special, name)) is not None
        }
        return msgspec.structs.replace(special, **joined).over(self)


_ADDED = ("refused", "refused_thinking", "refused_stream", "fixed", "fixed_thinking", "ignored")
"""Fields that `ModelProfile.changed_by` adds to."""

EMPTY = ModelProfile()
"""The profile of an unknown model."""
