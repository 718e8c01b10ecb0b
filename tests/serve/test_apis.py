"""What a wire has for a server is what several wires have; what one API alone has stands in its
room."""

from __future__ import annotations

import pytest

from dragoman import wires
from dragoman.codec.serving import PURPOSES
from dragoman.serve.endpoint import api_of, is_offered
from dragoman.wires.serving import Serving


@pytest.mark.parametrize("hook", Serving._fields)
def test_each_hook_of_the_server_has_two_wires_at_least(hook: str) -> None:
    having = [name for name in wires.names() if hasattr(wires.get(name), hook)]
    assert len(having) > 1, f"{hook} is {having}'s alone: it belongs in the room of that API"


@pytest.mark.parametrize("name", wires.names())
def test_each_place_of_a_wire_has_a_handler(name: str) -> None:
    wire = wires.get(name)
    assert [route for route in wire.routes if not is_offered(wire, route.purpose)] == []
    assert set(api_of(wire).handlers) <= set(PURPOSES)
