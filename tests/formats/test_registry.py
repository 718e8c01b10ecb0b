"""Formats that dragoman does not bring: registered in code, or by an entry point of a distribution.
They are detected as any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import Message, formats
from dragoman.codec.format_layout import Layout
from dragoman.errors import HistoryError, SettingsError
from dragoman.formats import registry
from dragoman.formats.detection import detect_list
from support.plug_ins import Install, installer

CODE = """
from dragoman import Message
from dragoman.codec.format_layout import Layout
name = "{name}"
layout = Layout(fields=("log", "messages"), beside=("title",), distinctive=frozenset(["title"]))

def votes(message):
    return 2 if isinstance(message, dict) and "said" in message else 0

def load_messages(payload, *, origin=None, problems=None):
    return [Message.user(each["said"]) for each in payload["log"]]

def dump_messages(messages, *, target=None, losses=None):
    return {{"log": [{{"said": message.text}} for message in messages]}}
"""
SAID = {"said": "Hi."}


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    yield from installer(registry.ENTRY_POINTS, "acme_format", tmp_path, monkeypatch)


def voting(name: str, votes: dict[str, int], **more: Any) -> Any:
    """A format whose messages have a `kind`, on which it votes; it reads nothing but its own
    name."""
    return SimpleNamespace(
        name=name,
        votes=lambda message: (
            votes.get(message.get("kind", ""), 0) if isinstance(message, dict) else 0
        ),
        load_messages=lambda payload, **_: [Message.user(name) for _ in payload],
        dump_messages=lambda messages, **_: [],
        **more,
    )


def test_a_plug_in_is_found_and_detected(install: Install) -> None:
    install("acme", CODE.format(name="acme"), "acme_format")
    assert "acme" in formats.names()
    assert "acme_format" not in sys.modules
    body = {"title": "A talk", "log": [SAID], "other": 1}
    assert detect_list(body) == [("acme", {"log": [SAID], "title": "A talk"}, 0)]
    assert detect_list({"messages": [SAID]})[0].payload == {"log": [SAID]}
    assert formats.detect([SAID]) == "acme"
    assert formats.get("acme").load_messages({"log": [SAID]}) == [Message.user("Hi.")]


@pytest.mark.parametrize("code", ["1 / 0", CODE.format(name="other")])
def test_a_broken_plug_in_harms_only_who_asks_for_it(install: Install, code: str) -> None:
    install("acme", code, "acme_format_broken")
    with pytest.raises(SettingsError, match="acme_format_broken"):
        formats.get("acme")
    assert formats.detect([{"role": "user", "parts": [{"text": "Hi."}]}]) == "google"


def test_a_format_that_declares_nothing_is_a_list_in_any_body() -> None:
    formats.register(voting("plain", {"p": 3}))
    for value in (
        [{"kind": "p"}],
        {"messages": [{"kind": "p"}]},
        {"conversations": [{"kind": "p"}], "id": 1},
    ):
        assert detect_list(value) == [("plain", [{"kind": "p"}], 0)]


def test_a_format_without_votes_is_never_detected() -> None:
    mute = voting("mute", {})
    del mute.votes
    formats.register(mute)
    assert "mute" in formats.names()
    with pytest.raises(HistoryError, match="no format has a message like that"):
        formats.detect([{"kind": "x"}])


def test_what_is_ambiguous_takes_the_format_of_its_neighbours() -> None:
    formats.register(voting("a", {"a": 3, "both": 2}))
    formats.register(voting("b", {"b": 3, "both": 2}))
    formats.register(voting("c", {"c": 3}))
    a, b, both, c = ({"kind": kind} for kind in ("a", "b", "both", "c"))
    with pytest.raises(
        HistoryError, match="they may be messages of a or b, which read them differently"
    ):
        detect_list([both])
    with pytest.raises(HistoryError, match="those from position 1 on may be messages of a or b"):
        detect_list([c, both])
    assert [each[::2] for each in detect_list([a, c, both])] == [("a", 0), ("c", 1), ("a", 2)]
    assert [each[::2] for each in detect_list([both, c, b])] == [("b", 0), ("c", 1), ("b", 2)]
    assert [each.format for each in detect_list([b, c, both, c, a])] == [
        "b",
        "c",
        "b",
        "c",
        "a",
    ]  # what went before it
    assert [each.format for each in detect_list([both], near="b")] == ["b"]
    with pytest.raises(HistoryError):
        detect_list([both], near="c")  # which cannot have it


def test_fields_beside_the_messages_are_declared_by_the_format() -> None:
    formats.register(
        voting("a", {"x": 1}, layout=Layout(fields=("talk",), distinctive=frozenset(["tone"])))
    )
    formats.register(
        voting("b", {"x": 1}, layout=Layout(fields=("talk",), of_tools=frozenset(["shape"])))
    )
    body = {"talk": [{"kind": "x"}]}
    assert formats.detect({**body, "tone": "dry"}) == "a"
    assert formats.detect({**body, "tools": [{"shape": {}}, {"shape": {}}], "tone": "dry"}) == "b"
    with pytest.raises(HistoryError, match="a or b"):
        formats.detect(body)
