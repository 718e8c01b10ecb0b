"""Finds Google Cloud credentials as Google's own libraries do (application default credentials),
and the base URLs of Vertex AI.

A file of credentials is that of GOOGLE_APPLICATION_CREDENTIALS, else the one of `gcloud auth
application-default login`. A service account's key signs a statement (RFC 7523), for which Google
gives a token; a user's file holds a token for tokens.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.providers.auth import Auth, Flow, load_grant, make_form
from dragoman.providers.hints import install_command
from dragoman.request import HttpRequest

__all__ = ["vertex_auth", "vertex_url"]

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - a URL
_LIFETIME = 3600
_TOKENS = ("ya29.", "eyJ", "Bearer ")
_METADATA = "http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
_FILE = "GOOGLE_APPLICATION_CREDENTIALS"


def vertex_auth(
    environment: Mapping[str, str], key: str | None, *, express: bool = True
) -> Auth | None:
    """Returns how requests to Vertex AI are authorized and where they go, or None for an API key or
    if nothing is set up. `express`: an API key works without a project.

    Raises:
        SettingsError: the file of credentials cannot be used.
    """
    project, location = (
        _first_value(environment, "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"),
        _find_location(environment),
    )
    if key:
        # An access token needs a project's URL; an API key works at the record's URL.
        if express and (not project or not key.startswith(_TOKENS)):
            return None
        return Auth(base_url=_find_url(project, location))
    if path := _find_file(environment):
        account = _read_account(path)
        project = (
            project
            or if_text(account.get("project_id"))
            or if_text(account.get("quota_project_id"))
        )
        match account.get("type"):
            case "service_account":
                return Auth(lambda now: _grant_by_key(account, now), _find_url(project, location))
            case "authorized_user":
                return Auth(
                    lambda now: _grant_by_refresh_token(account, now), _find_url(project, location)
                )
            case other:
                raise SettingsError(
                    f'credentials of type "{other}" in {path} are not supported: '
                    "use a service account's key; or, in Python, api_key= takes a function that gives an access token, "
                    "which google-auth makes from any credentials"
                )
    if host := environment.get("GCE_METADATA_HOST"):
        return Auth(lambda now: _grant_by_metadata(host, now), _find_url(project, location))
    return None


def vertex_url(project: str, location: str) -> str:
    """Returns the base URL of a Google project's models at a location such as `europe-west4`,
    `global`, or `eu` (several regions)."""
    host = {
        "global": "aiplatform.googleapis.com",
        "us": "aiplatform.us.rep.googleapis.com",
        "eu": "aiplatform.eu.rep.googleapis.com",
    }.get(location, f"{location}-aiplatform.googleapis.com")
    return f"https://{host}/v1/projects/{project}/locations/{location}"


def _grant_by_key(account: JsonMap, now: float) -> Flow:
    """Exchanges at Google a statement signed with a service account's key for a token (RFC
    7523)."""
    url = if_text(account.get("token_uri")) or _TOKEN_URI
    who = if_text(account.get("client_email"))
    claims = {"iss": who, "scope": _SCOPE, "aud": url, "iat": int(now), "exp": int(now) + _LIFETIME}
    head = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id")}
    text = b".".join(_encode_base64(msgspec.json.encode(part)) for part in (head, claims))
    assertion = text + b"." + _encode_base64(_sign_rs256(if_text(account.get("private_key")), text))
    answer = yield make_form(
        url,
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": assertion.decode(),
        },
    )
    return load_grant(answer, now, who=who)


def _grant_by_refresh_token(account: JsonMap, now: float) -> Flow:
    """Exchanges at Google the refresh token in a user's credentials file for a token."""
    fields = {
        name: if_text(account.get(name)) for name in ("client_id", "client_secret", "refresh_token")
    }
    answer = yield make_form(
        if_text(account.get("token_uri")) or _TOKEN_URI, {"grant_type": "refresh_token", **fields}
    )
    # The project that Google bills, since a user's credentials belong to none.
    pays = if_text(account.get("quota_project_id"))
    return load_grant(
        answer,
        now,
        who="the user of gcloud's login",
        headers={"x-goog-user-project": pays} if pays else {},
    )


def _grant_by_metadata(host: str, now: float) -> Flow:
    """Fetches a token from the metadata server of a machine in Google's cloud."""
    answer = yield HttpRequest(
        _METADATA.format(host=host), {"metadata-flavor": "Google"}, method="GET", secret=True
    )
    return load_grant(answer, now, who="the service account of this machine")


def _sign_rs256(key: str, text: bytes) -> bytes:
    """Returns for Google the RS256 signature of a text (RFC 7518, 3.3)."""
    try:
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise SettingsError(
            f"a service account's key signs with a library that is not installed; install it with `{install_command('cryptography')}`"
        ) from error
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError) as error:
        raise SettingsError(
            "the private_key of the service account's file is no key in PEM: download it again"
        ) from error
    if not isinstance(private, RSAPrivateKey):
        raise SettingsError(
            "the private_key of the service account's file is no RSA key: download it again"
        )
    return private.sign(text, PKCS1v15(), SHA256())


def _encode_base64(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _find_file(environment: Mapping[str, str]) -> Path | None:
    """Returns the path of Google's credentials file, or None."""
    if named := environment.get(_FILE, "").strip():
        return Path(named).expanduser()
    folder = f"{environment.get('HOME', '~')}/.config/gcloud"
    if os.name == "nt":
        folder = f"{environment.get('APPDATA', '')}/gcloud"
    path = Path(
        environment.get("CLOUDSDK_CONFIG") or folder, "application_default_credentials.json"
    ).expanduser()
    return path if path.is_file() else None


def _read_account(path: Path) -> Json:
    """Reads a Google credentials file."""
    try:
        return if_object(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise SettingsError(
            f"the credentials of Google Cloud in {path} cannot be read ({error}): {_FILE} must name a JSON file"
        ) from error


def _find_url(project: str, location: str) -> str | SettingsError:
    """Returns the base URL for a Google project, or the error that it is missing."""
    if not project:
        return SettingsError(
            "the credentials of Google Cloud name no project: set GOOGLE_CLOUD_PROJECT"
        )
    return vertex_url(project, location)


def _find_location(environment: Mapping[str, str]) -> str:
    return _first_value(environment, "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION") or "global"


def _first_value(environment: Mapping[str, str], *names: str) -> str:
    return next((value for name in names if (value := environment.get(name, "").strip())), "")
