"""The pytest plugin: it refuses requests unless the test allows them, records and replays
exchanges, and makes scripted models.

A project loads it in its `conftest.py` or on the command line. It is not active merely because
dragoman is installed:

    pytest_plugins = ["dragoman.testing.pytest_plugin"]        # or: pytest -p
        dragoman.testing.pytest_plugin
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.providers import REGISTRY, Provider
from dragoman.providers.keys import placeholder_keys
from dragoman.request import HttpRequest
from dragoman.testing.network import ANY, Network, Recordings, folder_name
from dragoman.testing.scripted import Answers, ScriptedModel
from dragoman.transport.aiohttp import AiohttpTransport
from dragoman.transport.base import Response

__all__ = ["ScriptedModels", "scripted_model"]

_MARKERS = (
    "dragoman_network(*hosts): requests to models may go to these hosts; without any, to all; loopback is this machine",
    "dragoman_record(path=None, normalize=None): requests to models are recorded and replayed, see --dragoman-record",
)


class _Session:
    """The settings of a pytest session and the network of its current test, which models in any
    thread use."""

    def __init__(self, config: pytest.Config) -> None:
        """Creates dragoman's state of a pytest session."""
        self.record: str = (
            config.getoption("--dragoman-record") or config.getini("dragoman_record") or "none"
        )
        self.hosts: list[str] = config.getini("dragoman_network")
        self.network = Network(self.hosts)
        self.recorded: set[Path] = set()
        self.patch = pytest.MonkeyPatch()


_SESSION = pytest.StashKey[_Session]()
_PASSED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the command line and the configuration file."""
    text = "requests of tests that are marked with dragoman_record: none: replay; once: record where nothing is; all: record anew"
    parser.getgroup("dragoman").addoption(
        "--dragoman-record", choices=("none", "once", "all"), help=text
    )
    parser.addini("dragoman_record", "as --dragoman-record", default="none")
    parser.addini(
        "dragoman_network",
        "hosts to which tests may send; loopback is this machine",
        type="args",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Puts the plugin between every agent and the network."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    session, real = _Session(config), AiohttpTransport.send
    config.stash[_SESSION] = session

    async def send(transport: AiohttpTransport, request: HttpRequest) -> Response:
        # Looked up per request: the network changes with each test.
        return await session.network.send(request, partial(real, transport))

    session.patch.setattr(AiohttpTransport, "send", send)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restores the transport's own `send`."""
    if (session := config.stash.get(_SESSION, None)) is not None:
        session.patch.undo()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Sets the network of a test, from its first fixture to its last."""
    session = item.config.stash[_SESSION]
    hosts, recordings = session.hosts, _find_recordings(item, session)
    if (marker := item.get_closest_marker("dragoman_network")) is not None:
        hosts = marker.args or (ANY,)
    session.network = Network(hosts, recordings)
    with pytest.MonkeyPatch.context() as patch:
        if recordings is not None and not recordings.records:
            _set_variables(patch, placeholder_keys(REGISTRY.providers(), os.environ))
        try:
            return (yield)
        finally:
            session.network = Network(session.hosts)
            if recordings is not None:
                recordings.discard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails a test whose requests were refused, even if the tested code swallowed the error, and
    saves the recordings of a test that passed."""
    result = yield
    session = item.config.stash[_SESSION]
    network = session.network
    # After the test: the application may have swallowed the error.
    network.check()
    item.stash[_PASSED] = True
    if network.recordings is not None and network.recordings.save():
        session.recorded.add(network.recordings.folder)
    return result


class ScriptedModels:
    """Makes scripted models for a test and remembers them, so that the fixture can check that all
    answers were used."""

    def __init__(self, network: Network, patch: pytest.MonkeyPatch) -> None:
        self.models: list[ScriptedModel] = []
        self._network = network
        self._patch = patch

    def __call__(
        self, answers: Answers | Mapping[Any, Answers] = (), **fields: Any
    ) -> ScriptedModel:
        """Makes a scripted model for `Agent(…)` or `send(model=…)`, with the arguments of
        `ScriptedModel`."""
        self.models.append(model := ScriptedModel(answers, **fields))
        return model

    def replace(
        self, model: str | Provider, answers: Answers | Mapping[Any, Answers], **fields: Any
    ) -> ScriptedModel:
        """Makes a scripted model that answers all requests to a provider, of any agent, also in the
        tested code. No key is needed.

        Raises:
            SettingsError: the model string is malformed, or no provider has that name.
        """
        _set_variables(self._patch, placeholder_keys(REGISTRY.providers(), os.environ))
        self.models.append(scripted := ScriptedModel.like(model, answers, **fields))
        self._network.scripted.append(scripted)
        return scripted


@pytest.fixture
def scripted_model(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Generator[ScriptedModels]:
    """Makes scripted models, and fails a passing test that leaves answers unused."""
    models = ScriptedModels(request.config.stash[_SESSION].network, monkeypatch)
    yield models
    if request.node.stash.get(_PASSED, False):
        for model in models.models:
            model.assert_exhausted()


def _find_recordings(item: pytest.Item, session: _Session) -> Recordings | None:
    """Returns the recordings of a test marked with `dragoman_record`, or None."""
    marker = item.get_closest_marker("dragoman_record")
    if marker is None:
        return None
    path = marker.args[0] if marker.args else marker.kwargs.get("path")
    name = item.nodeid.partition("::")[2].replace("::", ".") or item.name
    folder = item.path.parent / (path or Path("recordings", item.path.stem, folder_name(name)))
    # Parametrized tests may share a folder: only the first one replaces what was there.
    started = folder in session.recorded
    record = session.record == "all" or (
        session.record == "once" and (started or not any(folder.glob("*.json")))
    )
    return Recordings(
        folder, record=record, fresh=not started, normalize=marker.kwargs.get("normalize")
    )


def _set_variables(patch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        patch.setenv(name, value)
