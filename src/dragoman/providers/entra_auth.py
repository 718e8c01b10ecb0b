"""Microsoft Entra ID for Azure: an application's secret is exchanged for a token (OAuth 2.0 client
credentials, RFC 6749, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.providers.auth import Auth, Flow, load_grant, make_form

__all__ = ["NAMES", "entra_auth"]

NAMES = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
_AUTHORITY = "https://login.microsoftonline.com"
_SCOPE = "https://cognitiveservices.azure.com/.default"


def entra_auth(environment: Mapping[str, str], key: str | None, scope: str = _SCOPE) -> Auth | None:
    """Returns the Microsoft Entra authorization of the application in AZURE_TENANT_ID,
    AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or None to use a key. `scope`: what the token is
    for."""
    tenant, client, secret = (environment.get(name, "").strip() for name in NAMES)
    if key or not (tenant and client and secret):
        return None
    authority = environment.get("AZURE_AUTHORITY_HOST", "").strip().rstrip("/") or _AUTHORITY

    def flow(now: float) -> Flow:
        """Asks Microsoft Entra for a token."""
        answer = yield make_form(
            f"{authority if '://' in authority else f'https://{authority}'}/{tenant}/oauth2/v2.0/token",
            {
                "grant_type": "client_credentials",
                "client_id": client,
                "client_secret": secret,
                "scope": scope,
            },
        )
        return load_grant(answer, now, who=f"the application {client}")

    return Auth(flow)
