"""llama.cpp inside this process: one HTTP server on a free loopback port for each model file and
use (to speak, or to turn texts into vectors), started on first use.

It needs the library `xllamacpp` (extra `local`). Nothing of llama.cpp's log reaches the terminal.
"""

from __future__ import annotations

import atexit
import os
import threading
from importlib import import_module
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from dragoman.errors import SettingsError
from dragoman.providers.hints import install_command

__all__ = ["SERVERS", "EmbeddedServers"]

SLOTS = 2
"""Requests that one server works on at once; more wait for their turn."""
CONTEXT = 8192
"""Tokens of each slot: prompt and answer together. What a model cannot hold, llama.cpp takes back
to what it can."""
ANSWER = 512
"""Most tokens of an answer whose request does not say how long it may be, since a small model may
not find its end."""
FIT_BYTES = 1 << 30
"""Bytes of a model file from which on llama.cpp looks first how much of it a graphics card can
hold. It reads the file twice for that, which is more than half a second for the default model."""


class EmbeddedServers:
    """The llama.cpp servers of one owner, by model file and use. Threads and event loops may share
    it.

    A process that is forked off starts servers of its own: threads do not live on in it. Nobody
    uses them but who has the key, which is random: no other user of this machine, and no page in a
    browser, whatever host it takes them for.
    """

    def __init__(self) -> None:
        """Starts without servers of embedded models."""
        self.key = token_urlsafe(32)
        """Bearer token of the servers' requests."""
        self._lock = threading.Lock()
        self._servers: dict[tuple[Path, bool], Any] = {}
        self._inherited: dict[tuple[Path, bool], Any] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def find_url(self, model: Path, *, embeddings: bool = False) -> str | None:
        """Returns the URL of a running server of an embedded model, or None. Never waits."""
        server = self._servers.get((model, embeddings))
        if server is None:
            return None
        return str(server.listening_address)

    def start(self, model: Path, *, embeddings: bool = False) -> str:
        """Returns the URL of the server for an embedded model's file, and starts it if needed.
        Takes as long as the model loads.

        `embeddings`: it gives vectors and nothing else.

        Raises:
            SettingsError: the library is missing, or llama.cpp cannot load the file.
        """
        with self._lock:
            if (model, embeddings) not in self._servers:
                server = _start_server(model, self.key, embeddings)
                if not self._servers:
                    atexit.register(self.close)
                self._servers[model, embeddings] = server
            return str(self._servers[model, embeddings].listening_address)

    def close(self) -> None:
        """Stops all servers of embedded models; answers that are still being given are cut. The
        next use starts a server again."""
        atexit.unregister(self.close)
        with self._lock:
            # The library has no method for it: a server stops with its last reference.
            self._servers.clear()

    def _after_fork(self) -> None:
        # Kept alive: a server's destructor waits for its threads, which do not exist here.
        """Forgets the parent's servers of embedded models in a forked process, whose threads do not
        exist there."""
        self._inherited = self._servers
        self._servers = {}
        self._lock = threading.Lock()


def _start_server(model: Path, key: str, embeddings: bool) -> Any:
    """Starts a server for an embedded model's file."""
    try:
        library: Any = import_module("xllamacpp")
    except ImportError as error:
        raise SettingsError(
            f"the embedded model needs the library xllamacpp ({error}); install it with `{install_command('xllamacpp')}`",
            provider="local",
        ) from error
    params = library.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT
    params.n_predict = ANSWER
    # llama.cpp's threads wait for each other in busy loops: one more than there are free cores
    # makes it ten times slower.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(
        1, (os.cpu_count() or 1) // 2
    )
    params.embedding = embeddings
    # a text is read in one go; one that is too long for the model is refused only where this is
    # longer still
    if embeddings:
        params.n_batch = params.n_ubatch = CONTEXT
    params.use_jinja = True
    params.ui = False
    params.warmup = False
    params.fit_params = model.is_file() and model.stat().st_size >= FIT_BYTES
    params.endpoint_slots = False
    # no page in a browser reads what is said here
    params.cors_origins = "http://127.0.0.1"
    # In the middle of an answer a server notices a stop only with its next ping.
    params.sse_ping_interval = 1
    params.verbosity = -1
    try:
        return library.Server(params)
    except RuntimeError as error:
        raise SettingsError(
            f"llama.cpp cannot load {model}: is it a whole GGUF file, and is there memory for it?",
            provider="local",
        ) from error


SERVERS = EmbeddedServers()
"""The process's own servers, which the provider `local` uses. The one value that is shared on
purpose: a model takes hundreds of megabytes and a second to load, so there is one of each in a
process, whoever asks for it."""
