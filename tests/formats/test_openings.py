"""The system text that an answer notes of its request goes to no client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Message, formats, wires
from dragoman.codec.opening import Began, Note
from dragoman.event import MessageStarted
from dragoman.message import Origin, Role
from dragoman.request import ToolSpec

SECRET = "The password is swordfish."
NOTE: Any = Note(began=Began((Message.system(SECRET),), (ToolSpec("dig", SECRET),))).add_to(None)
ANSWER = Message(
    Role.MODEL, ("Yes.",), id="m1", turn="m1", origin=Origin("anthropic", None, "m"), native=NOTE
)


@pytest.mark.parametrize("name", [name for name in formats.names() if name != "dragoman"])
def test_no_format_but_our_own_writes_it(name: str) -> None:
    payload = formats.get(name).dump_messages([Message.user("Dig?").replace(id="u1"), ANSWER])
    assert "swordfish" not in json.dumps(payload, default=str)


@pytest.mark.parametrize("name", wires.names("protocol"))
def test_no_protocol_streams_it(name: str) -> None:
    encoder = wires.protocol(name).encoder()
    data = encoder.feed(MessageStarted("m1", Role.MODEL, origin=ANSWER.origin, native=NOTE))
    assert b"swordfish" not in data + encoder.close()


def test_the_stored_form_keeps_it() -> None:
    stored = formats.get("dragoman")
    assert stored.load_messages(stored.dump_messages([ANSWER])) == [ANSWER]
