"""The embedded model: llama.cpp in this process, no key, no network. `local`, or `local:/path/to/any.gguf`.

The default model's chat template knows no tools, so tools go through constrained decoding (`model/constrained.py`).
"""

from __future__ import annotations

from anyio import to_thread

from dragoman.capability import Capability
from dragoman.providers.embedded import SERVERS
from dragoman.providers.local_models import DEFAULT, find_model, installed_models
from dragoman.providers.provider import Provider

__all__ = ["PROVIDER", "base_url"]


async def base_url(model: str) -> str:
    """Starts what serves this model, if it is not running → its base URL.

    Loading takes place in a worker thread; the library keeps Python's lock while it maps the file, one second for the
    default model.

    Raises:
        SettingsError: the model or the library is missing; the message names the command that mends it.
    """
    file = find_model(model)
    return (SERVERS.running(file) or await to_thread.run_sync(SERVERS.start, file)) + "/v1"


PROVIDER = Provider(
    name="local",
    display_name="Embedded model",
    wire="openai_chat",
    base_url=base_url,
    chat_model=DEFAULT,
    models=lambda: list(installed_models()),
    capabilities=frozenset({Capability.chat, Capability.typed_output, Capability.models}),
)
