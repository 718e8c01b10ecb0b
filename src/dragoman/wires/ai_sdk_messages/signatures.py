"""`providerMetadata` (of model messages `providerOptions`) ↔ `native` of the wire whose provider wrote it, so that what is signed goes back
there as it came, and who answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.codec.json_values import if_object
from dragoman.codec.native import Own
from dragoman.message import NOTES, Native, Origin
from dragoman.wires.ai_sdk_messages.own import NAME, OURS, OWN

__all__ = ["RESPONSES", "Lifted", "foreign", "lifted", "lowered", "origin_of"]

_ANTHROPIC, _GOOGLE, RESPONSES = Own("anthropic"), Own("google"), Own("openai_responses")
_REDACTED = "redacted_thinking"
_PROVIDERS = {
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "vertex",
    "openai": "openai",
    "azure": "azure",
    "mistral": "mistral",
    "cohere": "cohere",
    "groq": "groq",
    "xai": "xai",
    "deepseek": "deepseek",
    "openrouter": "openrouter",
    "togetherai": "together",
    "bedrock": "bedrock",
}
"""Key of the metadata → our name of the provider."""
_ITEMS = {"openai": "openai-responses", "azure": "azure-responses"}
"""Key of the metadata → the provider's name where it speaks of items, which only the Responses API has."""
_GOOGLES = ("google", "vertex")
_UNMARKED = ("message", "reference")
"""Kinds of which it does not matter that they came through a wire that noted nothing else."""
_SIGNED = frozenset(["text", "reasoning", "tool"])
"""Kinds of pieces that Gemini signs."""


class Lifted(NamedTuple):
    """What metadata says."""

    native: dict[str, Any]
    """Of the providers' wires."""
    left: dict[str, Any]
    """The metadata that no wire has."""
    form: dict[str, Any]
    """Where it stood, if that is not the usual."""
    provider: str | None
    """Who answered, by our name."""
    ours: Any
    """What stands under our own key; `None`: nothing."""


def lifted(kind: str, metadata: Mapping[str, Any]) -> Lifted:
    """The metadata of a piece. `kind`: `text`, `reasoning`, `tool`, `file`, …"""
    native: dict[str, Any] = {}
    left: dict[str, Any] = {}
    form: dict[str, Any] = {}
    provider, ours = None, None
    for key, value in metadata.items():
        if key == OURS:
            ours = value
            continue
        fields = if_object(value)
        provider = provider or provider_of(key, fields)
        rest = dict(fields)
        if key == "anthropic":
            own: dict[str, Any] = {}
            if kind == "reasoning" and isinstance(rest.get("signature"), str):
                own["signature"] = rest.pop("signature")
            elif kind == "reasoning" and isinstance(rest.get("redactedData"), str):
                own |= {"type": _REDACTED, "data": rest.pop("redactedData")}
            elif kind != "reasoning" and isinstance(rest.get("cacheControl"), dict):
                own["cache_control"] = rest.pop("cacheControl")
            native |= {key: own} if own else {}
        elif key in _GOOGLES and kind in _SIGNED and "google" not in native:
            if isinstance(rest.get("thoughtSignature"), str):
                native |= _GOOGLE.note({"thoughtSignature": rest.pop("thoughtSignature")}) or {}
                form |= {} if key == "google" else {"google": key}
        elif (
            key in _ITEMS
            and isinstance(rest.get("itemId"), str)
            and "openai_responses" not in native
        ):
            found = _load_item(kind, rest)
            native |= found
            form |= {} if key == "openai" or not found else {"openai": key}
        if rest or not fields:
            left[key] = rest if fields else value
    return Lifted(native, left, form, provider, ours)


def lowered(kind: str, native: Native) -> dict[str, Any]:
    """The inverse: the metadata of a piece, without our own key."""
    if not native:
        return {}
    made: dict[str, Any] = {}
    form = OWN.form(native)
    anthropic = if_object(native.get("anthropic"))
    if kind == "reasoning":
        if anthropic.get("type") == _REDACTED and isinstance(anthropic.get("data"), str):
            made["anthropic"] = {"redactedData": anthropic["data"]}
        elif isinstance(anthropic.get("signature"), str):
            made["anthropic"] = {"signature": anthropic["signature"]}
    elif isinstance(anthropic.get("cache_control"), dict):
        made["anthropic"] = {"cacheControl": anthropic["cache_control"]}
    if kind in _SIGNED and isinstance(
        signature := _GOOGLE.fields(native).get("thoughtSignature"), str
    ):
        made["vertex" if form.get("google") == "vertex" else "google"] = {
            "thoughtSignature": signature
        }
    if item := _dump_item(kind, native):
        made["azure" if form.get("openai") == "azure" else "openai"] = item
    left = if_object(OWN.notes(native).get("left"))
    for key, value in left.items():
        made[key] = {**made[key], **if_object(value)} if key in made else value
    return made


def foreign(kind: str, native: Native) -> dict[str, Any]:
    """The fields of other formats that `lowered` does not say."""
    held: dict[str, Any] = {}
    for key, value in (native or {}).items():
        if key == NAME or NOTES[0] in key:
            continue
        own = dict(if_object(value))
        is_mark = not own and kind not in _UNMARKED
        if key == "anthropic" and kind == "reasoning":
            for name in ("signature", *(("type", "data") if own.get("type") == _REDACTED else ())):
                own.pop(name, None)
        elif key == "anthropic" and isinstance(own.get("cache_control"), dict):
            del own["cache_control"]
        elif key == "google" and kind in _SIGNED and isinstance(own.get("thoughtSignature"), str):
            del own["thoughtSignature"]
        elif (
            key == "openai_responses"
            and kind in ("reasoning", "tool")
            and isinstance(own.get("id"), str)
        ):
            del own["id"]
            if kind == "reasoning":
                own.pop("encrypted_content", None)
        if own or is_mark:
            held[key] = own
    return held


def provider_of(key: str, fields: Mapping[str, Any]) -> str | None:
    """Who wrote metadata under this key; `None`: nobody that is known, or a caller's options."""
    if not fields or (len(fields) == 1 and "cacheControl" in fields):
        return None
    return _ITEMS[key] if key in _ITEMS and "itemId" in fields else _PROVIDERS.get(key)


def origin_of(provider: str | None, given: Origin | None) -> Origin | None:
    """Where a model's message came from; `given`: where nothing names it."""
    if provider is None:
        return given
    return given if given is not None and given.provider == provider else Origin(provider)


def _load_item(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    """What OpenAI says of an item, taken out of `rest` → native of the Responses API."""
    if kind == "reasoning":
        encrypted = rest.get("reasoningEncryptedContent")
        if "reasoningEncryptedContent" not in rest or not isinstance(encrypted, str | None):
            return {}
        del rest["reasoningEncryptedContent"]
        return {
            "openai_responses": {
                "id": rest.pop("itemId"),
                **({"encrypted_content": encrypted} if encrypted else {}),
            }
        }
    if kind == "tool":
        return {"openai_responses": {"id": rest.pop("itemId")}}
    if kind == "text":
        phase = {"phase": rest.pop("phase")} if isinstance(rest.get("phase"), str) else {}
        item = {"type": "message", "id": rest.pop("itemId"), "status": "completed", **phase}
        return dict(RESPONSES.with_notes(None, item=item) or {})
    return {}


def _dump_item(kind: str, native: Native) -> dict[str, Any]:
    """The inverse."""
    if kind == "text":
        item = if_object(RESPONSES.notes(native).get("item"))
        if not isinstance(item.get("id"), str):
            return {}
        return {
            "itemId": item["id"],
            **({"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}),
        }
    if kind not in ("reasoning", "tool"):
        return {}
    fields = RESPONSES.fields(native)
    if not isinstance(fields.get("id"), str):
        return {}
    encrypted = fields.get("encrypted_content")
    more = {"reasoningEncryptedContent": encrypted if isinstance(encrypted, str) else None}
    return {"itemId": fields["id"], **(more if kind == "reasoning" else {})}
