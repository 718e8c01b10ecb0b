"""Lowers a request to what its model accepts, by the model's profile.

The order matters, since each step decides what the next ones may hold: whether and how much the
model thinks, then sampling (much of which is refused while it thinks), the choice of a tool,
`max_tokens`, the output schema. Each setting becomes the nearest value that the model accepts, or
is left out, and each change is a `Loss`. What the profile does not know is sent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.codec.efforts import EFFORTS, TOKENS, effort_for, find_allowed
from dragoman.loss import Loss, Lost
from dragoman.model_profile import EMPTY, ModelProfile
from dragoman.request import Effort, ModelRequest, Settings, ToolSpec

__all__ = ["DEFAULTS", "is_forced", "lower", "may_think"]

DEFAULTS: Mapping[str, float] = MappingProxyType(
    {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
)
"""Setting → the value that all APIs take for nothing said."""
_SAMPLING = (*DEFAULTS, "top_k", "seed", "stop")
_NOTHING = Settings()
_ANSWER = 4096
"""Tokens that thinking leaves for the answer, where the limit allows twice as many."""
_OTHER_WAYS = ("adaptive", "effort", "level", "switch")
_JSON_MODE: Mapping[str, Any] = MappingProxyType({"type": "object"})


def lower(
    request: ModelRequest, profile: ModelProfile, *, wire: str
) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """Lowers a request to a model's profile: returns it as the model accepts it, and what was
    changed or left out.

    Lowering twice is lowering once. An empty profile changes nothing. Options, content and media
    are never touched, and nothing becomes dearer unless the model accepts nothing less.

    Args:
        request: what is asked.
        profile: of the model that is asked.
        wire: name of the wire that writes the request.
    """
    if request.settings == _NOTHING and request.output_schema is None and not request.tools:
        return request, ()
    profile = profile.for_wire(wire)
    if profile == EMPTY:
        return request, ()
    lowering = _Lowering(request, profile)
    lowering.run()
    return lowering.result(), tuple(lowering.losses)


def may_think(settings: Settings, profile: ModelProfile) -> bool:
    """Returns whether a model is known to think if a lowered request has these settings."""
    match settings.reasoning:
        case None:
            return profile.thinks in ("default", "always")
        case "off":
            return profile.thinks == "always"
        case _:
            return profile.thinks != "never"


def is_forced(tool_choice: str | None) -> bool:
    """Returns whether a tool choice forces a call."""
    return tool_choice not in (None, "auto", "none")


class _Lowering:
    """The settings of one request on their way down."""

    def __init__(self, request: ModelRequest, profile: ModelProfile) -> None:
        """Starts with a request and the profile of the model that it is lowered to."""
        self._request = request
        self._profile = profile
        self._settings = request.settings
        self._schema = request.output_schema
        self.losses: list[Loss] = []

    def run(self) -> None:
        """Lowers the request step by step: thinking, sampling, tool choice, limit, schema."""
        self._lower_reasoning()
        self._free_tools()
        self._lower_sampling()
        self._part_pairs()
        self._lower_tool_choice()
        self._lower_max_tokens()
        self._lower_schema()

    def result(self) -> ModelRequest:
        """Returns the lowered request; the same object where nothing has changed."""
        request = self._request
        if self._settings == request.settings and self._schema is request.output_schema:
            return request
        return request.replace(settings=self._settings, output_schema=self._schema)

    def _lower_setting(self, name: str, value: Any, why: str | None) -> None:
        """Lowers a setting, and notes the change. `why`: the reason to tell; `None`: it asks for
        the same."""
        self._settings = msgspec.structs.replace(self._settings, **{name: value})
        if why is not None:
            self.losses.append(Loss(None, None, Lost.setting, why, name))

    # reasoning

    def _lower_reasoning(self) -> None:
        """Lowers the setting `reasoning` to an effort or a number of tokens that the model
        accepts."""
        reasoning, profile = self._settings.reasoning, self._profile
        if reasoning is None:
            return
        if profile.thinks == "never":
            silent = reasoning in ("off", 0)
            self._lower_setting("reasoning", None, None if silent else "the model does not think")
        elif reasoning in ("off", 0):
            self._switch_off(reasoning)
        elif isinstance(reasoning, int):
            self._lower_tokens(reasoning)
        else:
            self._lower_effort(reasoning)

    def _switch_off(self, reasoning: Effort | int) -> None:
        """Lowers thinking to `off`; a model that cannot stop thinks as little as it can."""
        profile = self._profile
        if profile.off != () or reasoning == 0:
            if reasoning == 0 and profile.off is not None:
                self._lower_setting("reasoning", "off", None)
                self._switch_off("off")
            return
        least = find_allowed("minimal", _efforts(profile))
        if least is not None:
            self._lower_setting(
                "reasoning", least, f"the model cannot stop thinking; {least} is sent"
            )
        elif profile.budget is not None and _takes_budget(profile):
            tokens = profile.budget[0]
            self._lower_setting(
                "reasoning", tokens, f"the model cannot stop thinking; {tokens} are sent"
            )
        else:
            self._lower_setting("reasoning", None, "the model cannot stop thinking")

    def _lower_effort(self, effort: Effort) -> None:
        """Lowers an effort to the highest below that the model takes, or to its tokens."""
        profile = self._profile
        if _takes_budget_only(profile):
            self._lower_tokens(TOKENS[effort], effort)
            return
        if profile.efforts is None:
            return
        allowed = find_allowed(effort, _efforts(profile))
        if allowed is None and "switch" in (profile.ways or ()):
            return
        if allowed is None:
            self._lower_setting("reasoning", None, "the model takes no effort")
        elif allowed != effort:
            why = f"the model takes {', '.join(profile.efforts)}; {allowed} is sent"
            self._lower_setting("reasoning", allowed, why)

    def _lower_tokens(self, tokens: int, effort: Effort | None = None) -> None:
        """Lowers a number of tokens to what the model takes, or to an effort. `effort`: what the
        tokens stand for."""
        profile = self._profile
        if profile.ways is not None and not _takes_budget(profile):
            effort = effort_for(tokens)
            self._lower_setting(
                "reasoning", effort, f"the model takes no number of tokens; {effort} is sent"
            )
            self._lower_effort(effort)
            return
        if profile.budget is None:
            return
        least, most = profile.budget
        limit = self._find_limit() if not most else most + 1
        if limit is not None and limit <= least:
            why = f"the model thinks {least} tokens at least, and the answer may have {limit}"
            self._lower_setting("reasoning", None, why)
            return
        allowed = max(least, tokens)
        if limit is not None and allowed >= limit:
            # below the limit of the answer there must be room for the answer itself
            allowed = most or max(least, limit - min(limit // 2, _ANSWER))
        if allowed != tokens:
            self._lower_setting(
                "reasoning", allowed, f"{tokens} tokens are asked for, {allowed} are sent"
            )
        elif effort is not None:
            self._lower_setting("reasoning", allowed, None)

    def _find_limit(self) -> int | None:
        """Returns the limit to lower tokens to: the most that one answer of the model may have, its
        thinking included, or None."""
        limits = (self._settings.max_tokens, self._profile.output)
        return min((limit for limit in limits if limit is not None), default=None)

    def _free_tools(self) -> None:
        """Lowers thinking to `off` where the model takes no tools beside it."""
        if not self._profile.tools_need_off or not self._profile.off:
            return
        has_tools = any(isinstance(tool, ToolSpec) for tool in self._request.tools)
        if has_tools and may_think(self._settings, self._profile):
            self._lower_setting("reasoning", "off", "the model takes no tools while it thinks")

    # sampling

    def _lower_sampling(self) -> None:
        """Drops or adjusts the sampling settings that the model refuses, fixes or bounds."""
        thinks = may_think(self._settings, self._profile)
        profile = self._profile
        refused = {*(profile.refused or ())}
        fixed = {*(profile.fixed or ())}
        ranges = dict(profile.ranges or {})
        if thinks:
            refused |= {*(profile.refused_thinking or ())}
            fixed |= {*(profile.fixed_thinking or ())}
            ranges |= profile.ranges_thinking or {}
        if self._request.stream:
            refused |= {*(profile.refused_stream or ())}
        why = "the model does not take it"
        for name in _SAMPLING:
            value = getattr(self._settings, name)
            if value is None:
                continue
            usual = value == DEFAULTS.get(name)
            if name in refused:
                if not usual or name not in (profile.default_passes or ()):
                    self._lower_setting(name, None, None if usual else why)
            elif name in fixed and not usual:
                self._lower_setting(
                    name, None, f"the model takes {DEFAULTS.get(name, 'its default')} alone"
                )
            elif name in ranges:
                self._clamp(name, value, *ranges[name])
            if name in (profile.ignored or ()) and getattr(self._settings, name) is not None:
                self._lower_setting(name, value, "the model takes it and ignores it")

    def _clamp(self, name: str, value: float, least: float, most: float) -> None:
        """Lowers or raises a number setting into the range that the model accepts, and notes the
        change."""
        allowed = max(least, min(value, most))
        if allowed != value:
            self._lower_setting(
                name, allowed, f"the model takes {least:g} to {most:g}; {allowed:g} is sent"
            )

    def _part_pairs(self) -> None:
        """Lowers a request that has two settings which the model does not take together: leaves one
        out."""
        for first, second in self._profile.together or ():
            value = getattr(self._settings, first, None)
            if value is None or getattr(self._settings, second, None) is None:
                continue
            if value == DEFAULTS.get(first):
                self._lower_setting(first, None, None)
            else:
                self._lower_setting(second, None, f"the model does not take it beside {first}")

    # tools, limits, schema

    def _lower_tool_choice(self) -> None:
        """Replaces a forced tool choice with `auto` where the model cannot be made to call a
        tool."""
        settings, profile = self._settings, self._profile
        if is_forced(settings.tool_choice):
            why: str | None = None
            thinks = may_think(settings, profile)
            if profile.forced == "no":
                why = "the model cannot be made to call a tool"
            elif profile.forced == "unless-thinking" and thinks:
                why = "the model cannot be made to call a tool while it thinks"
            elif profile.forced == "unless-budget" and isinstance(settings.reasoning, int):
                why = "the model cannot be made to call a tool while it thinks by a budget"
            if why is not None:
                self._lower_setting("tool_choice", None, why)
        if settings.parallel_tool_calls and profile.parallel is False:
            self._lower_setting("parallel_tool_calls", None, "the model calls one tool at a time")

    def _lower_max_tokens(self) -> None:
        most, asked = self._profile.output, self._settings.max_tokens
        if asked is not None and most is not None and asked > most:
            self._lower_setting("max_tokens", most, f"the model answers with at most {most} tokens")

    def _lower_schema(self) -> None:
        """Leaves the output schema out where the model takes none, or none beside tools."""
        profile, schema = self._profile, self._schema
        if schema is None or schema == _JSON_MODE:
            return
        why: str | None = None
        if profile.schema is False:
            why = "the model takes no output schema"
        elif profile.schema_tools is False and self._request.tools:
            why = "the model takes no output schema beside tools"
        if why is None:
            return
        self._schema = dict(_JSON_MODE) if profile.json and profile.schema is False else None
        self.losses.append(Loss(None, None, Lost.output_schema, why))


def _efforts(profile: ModelProfile) -> list[Effort]:
    """Returns the neutral efforts of thinking that a profile lists, without `off`."""
    return [effort for effort in EFFORTS[1:] if effort in (profile.efforts or ())]


def _takes_budget(profile: ModelProfile) -> bool:
    return "budget" in (profile.ways or ())


def _takes_budget_only(profile: ModelProfile) -> bool:
    return _takes_budget(profile) and not any(way in (profile.ways or ()) for way in _OTHER_WAYS)
