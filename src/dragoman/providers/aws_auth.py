"""Credentials of AWS for Amazon Bedrock: the region, which decides the base URL, and signatures
(Signature Version 4), which botocore makes.

Keys in the environment are used as they are; all other credentials (profiles, single sign-on, roles
of machines and containers) botocore finds, and renews, as AWS's own tools do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dragoman.errors import AuthenticationError, SettingsError
from dragoman.providers.auth import Auth
from dragoman.providers.hints import install_command
from dragoman.request import HttpRequest

__all__ = ["BEDROCK_KEY", "bedrock_auth", "bedrock_url", "make_region_auth"]

BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"
"""Environment variable of an API key of Bedrock."""
_REGION = "us-east-1"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEY, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_SIGNS = (
    _KEY,
    *_PROFILES,
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    # All that a machine with a role may need.
    *_REGIONS,
)
"""Environment variables that say that there are credentials."""
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"}
_SERVICE = "bedrock"


def bedrock_auth(environment: Mapping[str, str], key: str | None) -> Auth | None:
    """Returns how requests to Amazon Bedrock are authorized and where they go: with an API key by
    that, else by a signature; None if the environment names neither."""
    region = _find_region(environment)
    if key:
        return Auth(base_url=bedrock_url(region or _REGION))
    if not _first_value(environment, _SIGNS) and not _find_files(environment):
        return None
    profile = _first_value(environment, _PROFILES) or None
    region = region or _read_region(profile) or _REGION

    def sign(request: HttpRequest, now: float) -> Mapping[str, str]:  # noqa: ARG001 botocore reads the clock itself
        """Returns the headers that sign a request. May ask for new credentials, which blocks."""
        return _sign(request, _load_credentials(environment, profile), region)

    return Auth(base_url=bedrock_url(region), sign=sign)


def bedrock_url(region: str) -> str:
    """Returns the base URL of Bedrock's models in a region such as `eu-central-1`."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://bedrock-runtime.{region}.{suffix}"


def make_region_auth(url: str) -> Callable[[Mapping[str, str], str | None], Auth | None]:
    """Returns the `Provider.auth` of an endpoint. `url`: its base URL, with `{region}` for the
    region."""

    def find(environment: Mapping[str, str], key: str | None) -> Auth | None:
        """Returns where requests with a Bedrock API key go, or None without one."""
        if not key:
            return None
        if region := _find_region(environment):
            return Auth(base_url=url.format(region=region))
        return Auth(base_url=SettingsError("Amazon Bedrock needs a region: set AWS_REGION"))

    return find


def _find_region(environment: Mapping[str, str]) -> str:
    """Returns the region of AWS that the environment names, or an empty text."""
    return _first_value(environment, _REGIONS)


def _sign(request: HttpRequest, credentials: Any, region: str) -> Mapping[str, str]:
    """Returns the headers by which botocore signs a request of Bedrock's."""
    auth, awsrequest = _import("botocore.auth"), _import("botocore.awsrequest")
    headers = {name: text for name, text in request.headers.items() if name == "content-type"}
    unsigned = awsrequest.AWSRequest(request.method, request.path, headers, request.body or b"")
    auth.SigV4Auth(credentials, _SERVICE, region).add_auth(unsigned)
    return {name.lower(): text for name, text in unsigned.headers.items()}


def _load_credentials(environment: Mapping[str, str], profile: str | None) -> Any:
    """Returns the AWS credentials to sign with now.

    Raises:
        SettingsError: botocore is not installed.
        AuthenticationError: there are no credentials, or they cannot be renewed.
    """
    if environment.get(_KEY):
        token = environment.get(_TOKEN) or None
        credentials = _import("botocore.credentials").Credentials
        return credentials(environment[_KEY], environment.get(_SECRET, ""), token)
    failures = _import("botocore.exceptions").BotoCoreError
    try:
        credentials = _open_session(profile).get_credentials()
        if credentials is not None:
            return credentials.get_frozen_credentials()
    except failures as error:
        raise AuthenticationError(f"the credentials of AWS cannot be used: {error}") from error
    raise AuthenticationError(
        "no credentials of AWS were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID "
        "and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    )


@cache
def _open_session(profile: str | None) -> Any:
    """Returns botocore's session for an AWS profile, which keeps and renews its credentials."""
    return _import("botocore.session").Session(profile=profile)


def _import(module: str) -> Any:
    """Returns a module of botocore.

    Raises:
        SettingsError: botocore is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(
            "requests to Amazon Bedrock without AWS_BEARER_TOKEN_BEDROCK are signed by a library that is not installed; "
            f"install it with `{install_command('botocore')}`"
        ) from error


def _read_region(profile: str | None) -> str:
    """Returns the region of an AWS profile, or an empty text if nothing names one."""
    try:
        return _open_session(profile).get_config_variable("region") or ""
    # Without botocore, or with an unknown profile: signing says so.
    except Exception:  # noqa: BLE001
        return ""


def _find_files(environment: Mapping[str, str]) -> bool:
    """True if AWS's tools keep credentials on this machine."""
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    return any(
        Path(environment.get(name) or home / file).is_file() for name, file in _FILES.items()
    )


def _first_value(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environment.get(name, "").strip())), "")
