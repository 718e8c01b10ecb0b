"""Wires that dragoman does not bring: registered in code, or by an entry point of a
distribution."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import Agent, Capability, Message, Provider, testing, wires
from dragoman.errors import SettingsError
from support.plug_ins import Install, installer

LIKE = """
from dragoman.wires.openai_chat import *
from dragoman.wires.openai_chat import __all__
name = "{name}"
"""


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "_REGISTERED", {})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    yield from installer(wires.ENTRY_POINTS, "acme_wire", tmp_path, monkeypatch)


def own(name: str = "mine") -> Any:
    like = wires.get("openai_chat")
    return SimpleNamespace(**{**vars(like), "name": name})


def test_a_registered_wire_is_found_and_a_provider_can_speak_it() -> None:
    wires.register(own())
    assert wires.get("mine").name == "mine"
    assert "mine" in wires.names()
    provider = Provider(
        name="acme", display_name="Acme", wire="mine", base_url="https://a.example", chat_model="m",
        capabilities=frozenset({Capability.chat}),
    )  # fmt: skip
    server = testing.ScriptedServer(wires.get("mine"), lambda _: Message.model("Hello."))
    assert Agent(provider, transport=server).send_sync("Hi.").output == "Hello."


def test_a_name_that_is_taken_is_not_taken_away() -> None:
    wires.register(own())
    for name in ("mine", "anthropic"):
        with pytest.raises(SettingsError, match=f"a wire named '{name}' exists already"):
            wires.register(own(name))
    with pytest.raises(SettingsError, match="already"):
        wires.register(own("anthropic"), replace=True)
    other = own()
    wires.register(other, replace=True)
    assert wires.get("mine") is other


def test_a_plug_in_is_found_by_the_name_of_its_entry_point(install: Install) -> None:
    install("acme_format", LIKE.format(name="acme_format"), "acme_wire")
    assert "acme_format" in wires.names()
    assert "acme_wire" not in sys.modules
    assert wires.get("acme_format").dump_messages([Message.user("Hi.")]) == [
        {"role": "user", "content": "Hi."}
    ]
    assert wires.get("acme_format") is wires.get("acme_format")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        (LIKE.format(name="other"), "must have this name"),
    ],
)
def test_a_broken_plug_in_names_its_distribution(install: Install, code: str, why: str) -> None:
    install("acme_format", code, "acme_wire_broken")
    with pytest.raises(SettingsError, match=why) as caught:
        wires.get("acme_format")
    assert "acme_wire_broken" in caught.value.message
    assert wires.get("openai_chat").name == "openai_chat"


def test_an_unknown_name_lists_the_known_ones() -> None:
    wires.register(own())
    with pytest.raises(
        SettingsError, match=r"no wire is named 'nonsense'; there are openai_chat, .*, mine"
    ):
        wires.get("nonsense")
