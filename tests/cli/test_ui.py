"""`dragoman ui`, and the page of `dragoman serve`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli import ui as module
from dragoman.cli.app import app
from dragoman.cli.serve import format_greeting


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Applications that were served, in place of serving them."""
    import dragoman.serve.server

    apps: list[Any] = []

    def run(application: Any, *, ready: Any, **options: Any) -> None:
        apps.append(application)
        ready("http://127.0.0.1:1")

    monkeypatch.setattr(dragoman.serve.server, "run_server", run)
    monkeypatch.delenv("DRAGOMAN_SERVE_KEY", raising=False)
    return apps


MODEL = ["-m", "ollama:llama3"]


def test_ui_serves_the_page_and_opens_it(
    served: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(module.webbrowser, "open", lambda url: opened.append(url) or True)
    result = CliRunner().invoke(app, ["ui", *MODEL])
    assert result.exit_code == 0, result.output
    assert opened == ["http://127.0.0.1:1"]
    assert served[0].state.service.has_page
    assert "http://127.0.0.1:1/\n" in result.stdout
    CliRunner().invoke(app, ["ui", *MODEL, "--no-open"])
    assert len(opened) == 1


def test_ui_without_a_screen_says_where(served: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module.sys, "platform", "linux")
    result = CliRunner().invoke(app, ["ui", *MODEL])
    assert result.exit_code == 0
    assert "open http://127.0.0.1:1/ in a browser" in result.stderr


@pytest.mark.parametrize(("options", "has_page"), [([], True), (["--no-page"], False)])
def test_serve_has_the_page(served: list[Any], options: list[str], has_page: bool) -> None:
    result = CliRunner().invoke(app, ["serve", *MODEL, *options])
    assert result.exit_code == 0, result.output
    assert served[0].state.service.has_page is has_page
    assert ("in a browser" in result.stdout) is has_page


def test_a_greeting_names_the_page() -> None:
    assert "in a browser" not in format_greeting(["one"], "http://h", None)
    assert format_greeting(["one"], "http://h", None, page=True).endswith("\nhttp://h/\n")
