"""Endpoints of Amazon Bedrock that take its API keys. Their URL names the region."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.errors import SettingsError
from dragoman.providers.auth import Auth

__all__ = ["BEDROCK_KEY", "make_region_auth"]

BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"


def make_region_auth(url: str) -> Callable[[Mapping[str, str], str | None], Auth | None]:
    """Returns the `Provider.auth` of an endpoint. `url`: its base URL, with `{region}` for the
    region."""

    def find(environment: Mapping[str, str], key: str | None) -> Auth | None:
        """Returns where requests with a Bedrock API key go, or None without one."""
        if not key:
            return None
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        if region:
            return Auth(base_url=url.format(region=region.strip()))
        return Auth(base_url=SettingsError("Amazon Bedrock needs a region: set AWS_REGION"))

    return find
