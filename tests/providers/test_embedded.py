"""The servers of one owner, with the library replaced by one that counts: started once, stopped,
and not shared by a fork."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dragoman.errors import SettingsError
from dragoman.providers.embedded import CONTEXT, SLOTS, EmbeddedServers

running: list[str] = []


class Server:
    def __init__(self, params: Any) -> None:
        if "broken" in params.model.path:
            raise RuntimeError("Failed to init server")
        self.params = params
        self.listening_address = f"http://127.0.0.1:{5000 + len(running)}"
        running.append(self.listening_address)

    def __del__(self) -> None:
        if hasattr(self, "listening_address"):
            running.remove(self.listening_address)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    running.clear()
    module: Any = ModuleType("xllamacpp")
    module.Server = Server
    module.CommonParams = lambda: SimpleNamespace(
        model=SimpleNamespace(path=""),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", module)


def test_a_model_is_started_once_whoever_asks() -> None:
    servers = EmbeddedServers()
    with ThreadPoolExecutor(8) as threads:
        urls = set(threads.map(servers.start, [Path("a.gguf")] * 16))
    assert urls == {"http://127.0.0.1:5000"} == set(running)
    assert servers.find_url(Path("a.gguf")) == "http://127.0.0.1:5000"
    assert servers.find_url(Path("b.gguf")) is None
    assert servers.start(Path("b.gguf")) != servers.start(Path("a.gguf"))
    servers.close()


def test_close_stops_them_and_the_next_use_starts_again() -> None:
    servers = EmbeddedServers()
    servers.start(Path("a.gguf"))
    servers.close()
    assert running == []
    assert servers.find_url(Path("a.gguf")) is None
    servers.close()
    servers.start(Path("a.gguf"))
    assert len(running) == 1
    servers.close()


def test_it_is_reached_on_loopback_only_and_says_nothing() -> None:
    servers = EmbeddedServers()
    servers.start(Path("/models/small.Q4_1.gguf"))
    params = servers._servers[Path("/models/small.Q4_1.gguf"), False].params
    assert params.hostnames == ["127.0.0.1"]
    assert params.port == 0
    assert params.api_keys == [servers.key]
    assert len(servers.key) > 30
    assert servers.key != EmbeddedServers().key
    assert params.verbosity < 0
    assert (params.n_parallel, params.n_ctx) == (SLOTS, SLOTS * CONTEXT)
    assert 1 <= params.cpuparams.n_threads <= max(1, (os.cpu_count() or 1) - 1)
    assert params.model_alias == {"small.Q4_1"}
    assert not params.embedding
    servers.close()


def test_vectors_come_from_a_server_of_their_own_for_the_same_file() -> None:
    servers = EmbeddedServers()
    chats = servers.start(Path("a.gguf"))
    assert servers.find_url(Path("a.gguf"), embeddings=True) is None
    embeds = servers.start(Path("a.gguf"), embeddings=True)
    assert embeds != chats
    assert servers.find_url(Path("a.gguf")) == chats
    params = servers._servers[Path("a.gguf"), True].params
    assert params.embedding
    assert (
        params.n_batch == params.n_ubatch == CONTEXT
    )  # a text that is too long is refused as the request's fault
    servers.close()
    assert running == []


def test_what_cannot_be_loaded_says_so_and_leaves_nothing() -> None:
    servers = EmbeddedServers()
    with pytest.raises(
        SettingsError, match=r"cannot load broken\.gguf: is it a whole GGUF file"
    ) as caught:
        servers.start(Path("broken.gguf"))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert servers.find_url(Path("broken.gguf")) is None
    assert running == []


def test_without_the_library_the_error_names_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(
        SettingsError,
        match=r"library xllamacpp .*; install it with `.* install (--python \S+ )?'xllamacpp",
    ):
        EmbeddedServers().start(Path("a.gguf"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_has_servers_of_its_own() -> None:
    servers = EmbeddedServers()
    servers.start(Path("a.gguf"))
    child = os.fork()
    if not child:
        own = (
            servers.find_url(Path("a.gguf")) is None
            and len(running) == 1
            and bool(servers.start(Path("a.gguf")))
        )
        os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert servers.find_url(Path("a.gguf")) is not None
    servers.close()
