"""What a client of a server may read of an error, on every wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import errors, wires
from dragoman.errors import public

SECRETS = ("sk-proj-abcd1234", "https://up.example/v1", "OPENAI_API_KEY", "/srv/app/settings.toml")
WORDS = f"bad field: {' '.join(SECRETS)}; shorten it"
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.DragomanError)
]
CLIENT = (
    errors.InvalidRequestError,
    errors.HistoryError,
    errors.ContentRefusedError,
    errors.RateLimitError,
)
WIRES = [name for name in wires.names() if hasattr(wires.get(name), "dump_error")]


class OddError(errors.InvalidRequestError):
    """Made in a way of its own."""

    def __init__(self, *, field: str) -> None:
        super().__init__(f"{field} is wrong")


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_upstreams_error_keeps_its_class_of_status_and_no_secret(
    name: str, kind: type[errors.DragomanError]
) -> None:
    where: dict[str, Any] = {
        "provider": "up",
        "status": 418,
        "body": WORDS.encode(),
        "request_id": "req_secret",
    }
    response = wires.get(name).dump_error(public(kind(WORDS, **where)))
    clients = issubclass(kind, CLIENT) and (name, kind) != (
        "ollama",
        errors.ContentRefusedError,
    )  # its API has no status for one
    assert response.status // 100 == (4 if clients else 5)
    written = msgspec.json.encode([response.headers, response.body]).decode()
    assert [each for each in (*SECRETS, "req_secret") if each in written] == []


@pytest.mark.parametrize("name", WIRES)
def test_an_exception_says_nothing(name: str) -> None:
    response = wires.get(name).dump_error(public(RuntimeError(WORDS)))
    assert response.status in {500, 502}  # Chat's wires answer a fault of the provider with 502
    assert "bad field" not in msgspec.json.encode(response.body).decode()


def test_words_about_the_request_stay() -> None:
    shown = public(errors.ContextLengthError(WORDS, provider="up", status=400))
    assert type(shown) is errors.ContextLengthError
    assert shown.message.startswith("bad field: ")
    assert shown.message.endswith("shorten it")


def test_a_wait_stays() -> None:
    shown = public(errors.RateLimitError(WORDS, provider="up", status=429, retry_after=7.0))
    assert isinstance(shown, errors.RateLimitError)
    assert shown.retry_after == 7.0


def test_a_subclass_is_shown_as_the_class_that_is_known() -> None:
    shown = public(OddError(field="n"))
    assert (type(shown), shown.message) == (errors.InvalidRequestError, "n is wrong")


@pytest.mark.parametrize(
    "kind", [errors.AuthenticationError, errors.InvalidRequestError, errors.ProviderError]
)
def test_nobodys_words_hold_a_secret(kind: type[errors.DragomanError]) -> None:
    """Errors without a provider are the server's own, or those of a tool, which raises what it
    likes."""
    shown = public(kind("key sk-live-0123456789 at https://int.corp.example/v1 of MY_API_KEY"))
    secrets = (
        "sk-live",
        "MY_API_KEY",
        *(["int.corp"] if kind is not errors.InvalidRequestError else []),
    )
    assert not any(secret in shown.message for secret in secrets)


@pytest.mark.parametrize(
    "known", [{"provider": "up"}, {"status": 401}, {"body": b"{}"}, {"request_id": "req_1"}]
)
@pytest.mark.parametrize(
    "kind", [errors.AuthenticationError, errors.PermissionDeniedError, errors.ModelNotFoundError]
)
def test_any_sign_of_an_upstream_makes_an_error_none_of_the_servers(
    kind: type[errors.DragomanError], known: dict[str, Any]
) -> None:
    """What an upstream says of our key is not what the client's key may do."""
    shown = public(kind("the key of tenant 7 may not", **known))
    assert type(shown) is errors.ProviderError
    assert "tenant" not in shown.message
