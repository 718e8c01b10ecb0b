"""Learns from a refusal: a setting that the provider's error names is left out, once.

A 400 that names a setting which dragoman wrote from `Settings` tells more than any table. It is
kept for 24 hours for this endpoint, wire and model (`profiles.learn`), and the request is sent again
without the setting. Ranges, tools and content are the caller's own, and raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.logs import logger
from dragoman.loss import Loss, Lost
from dragoman.message import Origin
from dragoman.model_profile import ModelProfile
from dragoman.profiles.lower import lower
from dragoman.profiles.registry import REGISTRY
from dragoman.request import ModelRequest, Settings

__all__ = ["MOST_LESSONS", "Lesson", "learn_refusal"]

MOST_LESSONS = 2
"""Settings that are left out of one request at most."""
_FIELDS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topp": "top_p",
    "top_k": "top_k",
    "topk": "top_k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
    "stop": "stop",
    "stop_sequences": "stop",
    "stopsequences": "stop",
    "reasoning_effort": "reasoning",
    "reasoning.effort": "reasoning",
    "output_config.effort": "reasoning",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "thinking_level": "reasoning",
    "thinkinglevel": "reasoning",
    "think": "reasoning",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
    "response_format": "output_schema",
    "text.format": "output_schema",
    "output_config.format": "output_schema",
}
"""Field of an API, in lower case → the setting that dragoman writes into it."""
_CODES = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
_NAME = r"['\"`]?(?P<name>[a-z_.]{3,30})['\"`]?"
_PHRASES = [
    re.compile(phrase.replace("NAME", _NAME), re.IGNORECASE)
    for phrase in (
        r"unsupported (?:parameter|value):? NAME",
        r"NAME (?:is|are) (?:not supported|unsupported|not available|deprecated|not allowed)",
        r"does ?n[o']t support (?:the )?(?:parameters?|setting|argument)?:? ?NAME",
        r"unknown (?:parameter|field|name):? NAME",
        r"(?:parameter|argument|setting|field) NAME (?:is|are) (?:not|un)",
        r"unrecognized request arguments? supplied: NAME",
        r"NAME: extra inputs are not permitted",
        r"NAME (?:may|can|must) (?:not be|only be unset)",
    )
]
_VALUES = re.compile(r"supported (?:values|levels)(?: are)?:? ([^.\n]{3,200})", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_LOG = logger("profiles")


class Lesson(NamedTuple):
    """What a refusal taught."""

    request: ModelRequest
    """The request without the setting."""
    loss: Loss
    """Says what was left out."""


def learn_refusal(
    request: ModelRequest, error: DragomanError, target: Origin, wire: str
) -> Lesson | None:
    """Returns the request to send in place of one whose setting was refused; `None`: the error
    names none that dragoman wrote.

    Args:
        request: what was sent.
        error: the provider's.
        target: the model, at its endpoint.
        wire: name of the wire that wrote the request.
    """
    is_clients_own = request.as_sent or request.verbatim is not None
    if not isinstance(error, InvalidRequestError) or error.status not in (400, 422):
        return None
    if is_clients_own or request.on_loss == "error":
        return None
    setting = _find_setting(error)
    if setting is None or not _is_set(request, setting):
        return None
    profile = _make_profile(setting, error.message)
    if target.endpoint is not None and target.model is not None:
        REGISTRY.learn(target.endpoint, wire, target.model, profile)
    _LOG.warning(
        "%s:%s at %s refuses %s; it is left out for 24 hours. Say so in a profile: "
        'profiles.register("%s:%s", ModelProfile(%s))',
        target.provider,
        target.model,
        target.endpoint,
        setting,
        target.provider,
        target.model,
        ", ".join(f"{name}={value!r}" for name, value in profile.known().items()),
    )
    what = Lost.output_schema if setting == "output_schema" else Lost.setting
    loss = Loss(None, None, what, "the provider refused it", setting)
    return Lesson(_leave_out(request, setting, profile, wire), loss)


def _find_setting(error: InvalidRequestError) -> str | None:
    """Returns the refused setting that a provider's error names, or None."""
    try:
        body = if_object(json_bytes.decode(error.body or b""))
    except ValueError:
        body = {}
    fields = if_object(body.get("error")) or body
    if if_text(fields.get("code")) in _CODES:
        named = _FIELDS.get(if_text(fields.get("param")).lower())
        if named is not None:
            return named
    for phrase in _PHRASES:
        for match in phrase.finditer(error.message):
            named = _FIELDS.get(match["name"].strip(".").lower())
            if named is not None:
                return named
    return None


def _is_set(request: ModelRequest, setting: str) -> bool:
    """True if dragoman wrote the refused setting from the request's neutral fields."""
    if setting == "output_schema":
        return request.output_schema is not None
    return getattr(request.settings, setting) is not None


def _make_profile(setting: str, message: str) -> ModelProfile:
    """Returns the profile that a provider's refusal of a setting implies."""
    if setting == "output_schema":
        return ModelProfile(schema=False)
    if setting == "tool_choice":
        return ModelProfile(forced="no")
    if setting != "reasoning":
        return ModelProfile(refused=(setting,))
    values = _VALUES.search(message)
    efforts = _WORD.findall(values[1].lower()) if values is not None else []
    allowed = tuple([effort for effort in efforts if effort in _EFFORTS])
    return ModelProfile(efforts=allowed) if allowed else ModelProfile(thinks="never")


def _leave_out(
    request: ModelRequest, setting: str, profile: ModelProfile, wire: str
) -> ModelRequest:
    """Returns the request without the refused setting, or with an effort that the error names as
    supported."""
    if profile.efforts:
        return lower(request, profile, wire=wire)[0]
    if setting == "output_schema":
        return request.replace(output_schema=None)
    changes: dict[str, None] = {setting: None}
    settings: Settings = msgspec.structs.replace(request.settings, **changes)
    return request.replace(settings=settings)
