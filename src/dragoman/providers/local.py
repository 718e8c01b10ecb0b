"""The embedded model: llama.cpp in this process, no key, no network. `local`, or
`local:/path/to/any.gguf`.

The default model's chat template knows no tools, so tools go through constrained decoding
(`model/constrained_calls.py`). Texts are turned into vectors by a model of its own, in a server of its
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from threading import Thread
from urllib.parse import urlsplit

from anyio import to_thread

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.providers.auth import Auth, Flow, Grant
from dragoman.providers.embedded import SERVERS
from dragoman.providers.local_models import (
    DEFAULT,
    EMBEDDINGS,
    embeddings_wheel,
    find_embeddings_model,
    find_model,
    installed_models,
)
from dragoman.providers.provider import Provider, TokenRates

__all__ = ["PROVIDER", "base_url", "embeddings_url", "preload_model"]

_EMPTY_REQUEST = b'{"messages": [{"role": "user", "content": ""}], "max_tokens": 1}'


async def base_url(model: str) -> str:
    """Returns the base URL of the local server for an embedded model, and starts it if needed.

    Loading takes place in a worker thread; the library keeps Python's lock while it maps the file,
    one second for the default model.

    Raises:
        SettingsError: the model or the library is missing; the message names the command that mends it.
    """
    file = find_model(model)
    return (SERVERS.find_url(file) or await to_thread.run_sync(SERVERS.start, file)) + "/v1"


async def embeddings_url(model: str) -> str:
    """Returns the base URL of the local server for an embeddings model, and starts it if needed.
    The default model is converted to llama.cpp's format first, once.

    Raises:
        SettingsError: as `base_url`.
    """
    return await to_thread.run_sync(_embeddings_url, model)


def preload_model(model: str | None) -> None:
    """Loads the local model in a thread and lets it read the start of every prompt, for a program
    that does other things first. Errors appear when the model is used."""

    def load() -> None:
        """Loads the local model and lets it read a first prompt."""
        with suppress(SettingsError):
            url = urlsplit(SERVERS.start(find_model(model or DEFAULT)))
            # not before: they would be waited for
            from http.client import HTTPConnection, HTTPException

            with suppress(OSError, HTTPException), closing(HTTPConnection(url.netloc)) as server:
                headers = {
                    "content-type": "application/json",
                    "authorization": f"Bearer {SERVERS.key}",
                }
                server.request("POST", "/v1/chat/completions", _EMPTY_REQUEST, headers)
                server.getresponse().read()

    Thread(target=load, name="dragoman-load").start()


def _local_auth(_environment: Mapping[str, str], _key: str | None) -> Auth:
    """Authorizes requests with the key of this process's own servers."""
    return Auth(_grant_own_key)


def _grant_own_key(_now: float) -> Flow:
    yield from ()
    return Grant({"authorization": f"Bearer {SERVERS.key}"})


def _embeddings_url(model: str) -> str:
    file = find_embeddings_model(model)
    return (SERVERS.find_url(file, embeddings=True) or SERVERS.start(file, embeddings=True)) + "/v1"


def _list_models() -> list[str]:
    return list(dict.fromkeys([*installed_models(), *([EMBEDDINGS] if embeddings_wheel() else [])]))


PROVIDER = Provider(
    name="local",
    display_name="Embedded model",
    wire="openai_chat",
    base_url=base_url,
    auth=_local_auth,
    chat_model=DEFAULT,
    embeddings_model=EMBEDDINGS,
    embeddings_url=embeddings_url,
    embeddings_batch=32,
    models=_list_models,
    repeats_itself=True,
    capabilities=frozenset(
        {Capability.chat, Capability.embeddings, Capability.typed_output, Capability.models}
    ),
    token_rates=TokenRates(0, 9.9, 0.94, 69, 0, 1.08, 17),
    free="always",
)
