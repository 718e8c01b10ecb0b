"""Wires in which agents are asked have the same rooms, and in each the same names, as far as the protocol has such a thing."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dragoman.wires
from dragoman import wires
from dragoman.wires import ProtocolWire

FOLDER = Path(dragoman.wires.__file__).parent
WIRES = wires.names("protocol")
ROOMS = {"quirks", "messages", "runs", "decode", "encode", "errors", "serving"}
"""What every one has. `decode_own` and the like are parts of their room."""
FURTHER: dict[str, set[str]] = {
    "ag_ui": {"client", "compact", "content", "events", "interrupts", "tools"},
    "a2a": {"client", "compact", "content", "interrupts", "old", "tasks", "tools"},
    "ai_sdk": set(),
}
"""What one has beside them: what its messages do not take from a format, and what no other has, by the protocol's word."""
NAMES: dict[str, set[str]] = {
    "client": {"name", "dump_request", "dump_http", "dump_cancel", "decoder", "load_error"},
    "quirks": {"NAME", "OWN", "Quirks"},
    "content": {"load_content", "dump_content"},
    "tools": {"load_tools", "load_call", "dump_call", "load_result", "dump_result"},
    "decode": {"Decoder"},
    "encode": {"Encoder"},
    "usage": {"load_usage", "dump_usage"},
    "errors": {"error_of"},
}
"""Room → names by which all that have it do the same job there."""
PUBLIC: dict[str, set[str]] = {
    "messages": {"load_messages", "dump_messages", "votes"},
    "runs": {"load_run", "dump_run", "routes"},
    "decode": {"decoder"},
    "encode": {"encoder", "envelope", "ping", "stream_type"},
    "errors": {"load_error", "dump_error"},
}
"""Room → names that the wire's package hands on: those of `ProtocolWire`."""


def rooms(wire: str) -> set[str]:
    files = {file.stem for file in (FOLDER / wire).glob("*.py")} - {"__init__"}
    parted = {file.partition("_")[0] for file in files}
    assert parted <= files, "a part of a room without the room"
    return parted


def names(wire: str, room: str) -> set[str]:
    found: set[str] = set()
    for file in (FOLDER / wire).glob(f"{room}*.py"):
        found.update(import_module(f"dragoman.wires.{wire}.{file.stem}").__all__)
    return found


def signature(of: Any) -> list[tuple[str, Any, Any]]:
    """Parameters by name, kind and default; how their types are written is free."""
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(of).parameters.values()
        if one.name != "self"
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_a_wire_has_the_rooms_that_all_have_and_those_of_its_own(wire: str) -> None:
    assert rooms(wire) == ROOMS | FURTHER[wire]


@pytest.mark.parametrize("room", NAMES)
@pytest.mark.parametrize("wire", WIRES)
def test_the_same_job_has_the_same_name_in_every_wire(wire: str, room: str) -> None:
    if room in rooms(wire):
        assert NAMES[room] - names(wire, room) == set()


@pytest.mark.parametrize("wire", WIRES)
def test_a_wires_package_hands_on_all_that_a_wire_has_by_the_same_signatures(wire: str) -> None:
    """A wire's function may take more, by name."""
    package: Any = wires.get(wire)
    public = {name for of_room in PUBLIC.values() for name in of_room}
    assert public | {"name"} == {name for name in dir(ProtocolWire) if not name.startswith("_")}
    assert public | {"name", "Quirks"} <= set(package.__all__)
    for name in public:
        if callable(wanted := getattr(ProtocolWire, name)):
            taken = signature(getattr(package, name))
            assert taken[: len(signature(wanted))] == signature(wanted), name
            more = taken[len(signature(wanted)) :]
            assert all(kind is inspect.Parameter.KEYWORD_ONLY and default is not inspect.Parameter.empty for _, kind, default in more)  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_package_hands_on_stands_in_its_room(wire: str) -> None:
    package: Any = wires.get(wire)
    for room, public in PUBLIC.items():
        module = import_module(f"dragoman.wires.{wire}.{room}")
        for name in public:
            assert getattr(module, name, None) is getattr(package, name), f"{room}: {name}"


@pytest.mark.parametrize("name", ["ag_ui", "ai_sdk"])
def test_a_wire_that_only_streams_says_so(name: str) -> None:
    wire = wires.get(name)
    assert not hasattr(wire, "dump_response")
    with pytest.raises(AttributeError, match=rf"always streamed; write it with {name}\.encoder"):
        _ = wire.dump_response
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(wire, "nothing")  # noqa: B009
