"""A bare machine is asked whether to fetch the embedded model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.cli.fetch_model import offer_model
from dragoman.providers import local_pull
from support.cli import Stdin


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were fetched, on a machine that has none."""
    names: list[str] = []

    def pull(progress: Callable[[str], None], model: str) -> Path:
        progress("fetching")
        names.append(model)
        return Path()

    monkeypatch.setattr(local_pull, "pull", pull)
    monkeypatch.setattr("dragoman.providers.local_models.installed_models", dict)
    monkeypatch.setattr("dragoman.cli.fetch_model.find_spec", lambda _: object())
    monkeypatch.setattr(sys, "stdin", Stdin(None))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return names


@pytest.mark.parametrize(("answer", "count"), [("", 1), ("y", 1), ("n", 0)])
def test_it_is_fetched_if_one_says_so(
    pulled: list[str], monkeypatch: pytest.MonkeyPatch, answer: str, count: int
) -> None:
    asked: list[str] = []

    def confirm(question: str, *, default: bool, err: bool) -> bool:
        asked.append(question)
        assert err
        return {"": default, "y": True, "n": False}[answer]

    monkeypatch.setattr("typer.confirm", confirm)
    offer_model("")
    assert asked == ["The embedded model is not here yet: fetch it now (98 MB)?"]
    assert len(pulled) == count


def test_nothing_is_asked_without_a_terminal_or_for_another_model(
    pulled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("it asked"))
    offer_model("/my/model.gguf")
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    offer_model("")
    assert pulled == []
