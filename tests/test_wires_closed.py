"""An encoder that was closed says no more, on every wire."""

from __future__ import annotations

import pytest

from dragoman import Message, unfold, wires


@pytest.mark.parametrize("name", wires.names())
def test_an_answer_ends_once(name: str) -> None:
    encoder = wires.get(name).encoder()
    events = unfold([Message.model("hi").replace(id="m")])
    assert b"".join(map(encoder.feed, events)) + encoder.close()
    assert encoder.close() == b""
    assert b"".join(map(encoder.feed, unfold([Message.model("more").replace(id="n")]))) == b""
