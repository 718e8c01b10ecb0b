"""The models that a provider offers (D-80): one request or several, in whichever of the usual shapes it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from dragoman.errors import DecodeError, SettingsError
from dragoman.model.kinds import kinds_of
from dragoman.model.whole import fetch
from dragoman.providers.address import find_base_url
from dragoman.providers.keys import request_headers
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest
from dragoman.result import ModelInfo
from dragoman.transport.base import Transport

__all__ = ["list_models", "load_models", "next_page"]


async def list_models(
    provider: Provider,
    transport: Transport,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[ModelInfo]:
    """The models of a provider, in its order, from all pages of its answer.

    Raises:
        SettingsError: the provider lists no models, or has no base URL.
        ProviderError: it refused; which subclass tells why.
        DecodeError: it answered something else than a list of models.
    """
    if provider.models is not None:
        return [ModelInfo(name, provider.name, kinds_of(name, {})) for name in provider.models()]
    if provider.models_path is None:
        raise SettingsError(f"{provider.display_name} provider does not list its models", provider=provider.name)
    sent = request_headers(provider, api_key=api_key, headers=headers, environment=environment)
    root = await find_base_url(provider, base_url, model=provider.chat_model or "", environment=environment)
    url: str | None = root + provider.models_path
    seen: set[str] = set()
    models: list[ModelInfo] = []
    while url and url not in seen:
        seen.add(url)
        body = await _get(provider, transport, HttpRequest(url, sent, method="GET"))
        models += load_models(provider.name, body)
        url = next_page(url, body)
    return models


def load_models(provider: str, body: Any) -> list[ModelInfo]:
    """One page of models: `{"data": […]}` (OpenAI and most), `{"models": […]}` or a bare list (Together).

    Raises:
        DecodeError: it is none of these.
    """
    page: Any = body
    if isinstance(body, dict):
        page = cast("dict[str, Any]", body).get("data", cast("dict[str, Any]", body).get("models"))
    try:
        return [_model(provider, item) for item in msgspec.convert(page, list[dict[str, Any]])]
    except (msgspec.ValidationError, KeyError) as error:
        raise DecodeError(
            f"the answer holds no list of models: {error}", provider=provider, body=msgspec.json.encode(body)
        ) from error


def next_page(url: str, body: Any) -> str | None:
    """The URL of the page after this one; `None`: it was the last. Only the query is the provider's to choose."""
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, Any]", body)
    parts = urlsplit(url)
    if fields.get("has_more") and fields.get("last_id"):  # Anthropic
        query = urlencode(dict(parse_qsl(parts.query)) | {"after_id": str(fields["last_id"])})
    elif isinstance(links := fields.get("links"), dict) and cast("dict[str, Any]", links).get("next"):  # OpenRouter
        query = urlsplit(str(cast("dict[str, Any]", links)["next"])).query
    else:
        return None
    return urlunsplit(parts._replace(query=query))


def _model(provider: str, item: dict[str, Any]) -> ModelInfo:
    extra = dict(item)
    own_name = extra.pop("name", None)
    name = str(extra.pop("id") if own_name is None else extra.pop("id", own_name))
    display_name = extra.pop("display_name", None) or own_name
    return ModelInfo(
        name=name,
        provider=provider,
        kinds=kinds_of(name, item),
        display_name=display_name if display_name != name else None,
        description=extra.pop("description", None) or None,
        extra=extra,
    )


async def _get(provider: Provider, transport: Transport, request: HttpRequest) -> Any:
    answer = await fetch(provider, transport, request)
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(
            f"the list of models at {request.path} is no JSON: {error}; is the base URL right?",
            provider=provider.name,
            status=answer.status,
            body=answer.body,
        ) from error
