"""What a model would refuse of a request, by its profile: of its settings as of its content."""

from __future__ import annotations

from collections.abc import Iterator
from mimetypes import guess_type
from typing import cast

import msgspec

from dragoman.codec.json_values import if_list, if_object
from dragoman.message import Content, DataPart, FilePart, LinkPart, Role, ToolResultPart
from dragoman.model_profile import ModelProfile
from dragoman.profiles.lower import lower
from dragoman.request import ModelRequest, ServerTool, ToolSpec

__all__ = ["find_refusals"]

_EXTRA = ("logprobs", "top_logprobs", "logit_bias", "n")
"""Options that a profile knows as settings."""
_GOOGLE_LOGPROBS = ("responseLogprobs", "logprobs")
_RESPONSES_LOGPROBS = "message.output_text.logprobs"


def find_refusals(request: ModelRequest, profile: ModelProfile, *, wire: str) -> tuple[str, ...]:
    """Returns by the profile the names of what the model is known to refuse: settings,
    `output_schema`, `tools`, a tool that the provider runs, a kind of media, a role, `prefill`;
    empty: nothing is known against it.

    Args:
        request: as it would be sent.
        profile: of the model.
        wire: name of the wire that writes it.
    """
    profile = profile.for_wire(wire)
    # what is ignored is taken
    profile = msgspec.structs.replace(profile, ignored=None)
    refused = [loss.which or str(loss.what) for loss in lower(request, profile, wire=wire)[1]]
    refused += _find_options(request, profile)
    refused += _find_tools(request, profile)
    refused += _find_content(request, profile)
    return tuple(dict.fromkeys(refused))


def _find_options(request: ModelRequest, profile: ModelProfile) -> Iterator[str]:
    """Yields as refusals the options without a neutral name that the model's profile refuses."""
    refused = {*(profile.refused or ())}
    if request.stream:
        refused |= {*(profile.refused_stream or ())}
    options = request.options
    asked = {name for name in _EXTRA if options.get(name) not in (None, False)}
    if "top_logprobs" in asked:
        asked.add("logprobs")
    config = if_object(options.get("generationConfig"))
    if any(config.get(name) for name in _GOOGLE_LOGPROBS):
        asked.add("logprobs")
    if _RESPONSES_LOGPROBS in if_list(options.get("include")):
        asked.add("logprobs")
    yield from sorted(asked & refused)


def _find_tools(request: ModelRequest, profile: ModelProfile) -> Iterator[str]:
    """Yields as refusals the tools of a request that the model's profile refuses."""
    if profile.tools is False and any(isinstance(tool, ToolSpec) for tool in request.tools):
        yield "tools"
    names = [tool.name for tool in request.tools if isinstance(tool, ServerTool)]
    names += [name for name in profile.refused_server or () if name in request.options]
    for name in names:
        if profile.server == {} or name in (profile.refused_server or ()):
            yield name


def _find_content(request: ModelRequest, profile: ModelProfile) -> Iterator[str]:
    """Yields as refusals the media kinds, roles and endings of a conversation that the model's
    profile refuses."""
    refused = {*(profile.no_inputs or ())}
    roles = profile.roles
    for message in request.messages:
        if message.role is Role.SYSTEM and roles is not None and "system" not in roles:
            yield "system"
        for part in message.content:
            yield from sorted(refused & {*_media_types(part)})
    ends_with_answer = bool(request.messages) and request.messages[-1].role is Role.MODEL
    if profile.prefill is False and ends_with_answer:
        yield "prefill"


def _media_types(part: Content) -> Iterator[str]:
    """Yields the kinds of media in a part of a message that a profile may refuse, as profiles name
    them."""
    if isinstance(part, ToolResultPart) and part.is_content:
        for piece in cast("tuple[Content, ...]", part.result):
            yield from _media_types(piece)
    if not isinstance(part, DataPart | LinkPart | FilePart):
        return
    mime_type = part.mime_type
    if mime_type is None and isinstance(part, LinkPart):
        mime_type = guess_type(part.url)[0]
    main, _, sub = (mime_type or "").partition("/")
    if main in ("image", "audio", "video"):
        yield main
    elif sub == "pdf":
        yield "pdf"
