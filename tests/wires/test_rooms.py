"""All twelve wires have the same rooms, and in each room the same names: who knows one finds any job
in another.

Six rooms are those of every wire. Wires of models have rooms for requests, wires of protocols one
for runs; what is in them has the same names within each of the two. A dialect of the Chat family is
counted together with its family, whose rooms it shares.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dragoman.wires
from dragoman import wires
from dragoman.wires import EmbeddingsWire, FileWire, ProtocolWire, Wire

FOLDER = Path(dragoman.wires.__file__).parent
FAMILY = "chat"
MESSAGES = "ai_sdk_messages"
"""Messages of a protocol and of formats that keep to it; no wire."""
DIALECTS = ("openai_chat", "mistral")
ALONE = (
    "openai_responses",
    "anthropic",
    "google",
    "ollama",
    "cohere",
    "google_interactions",
    "bedrock_converse",
)
WIRES = (*DIALECTS, *ALONE)
PROTOCOLS = wires.names("protocol")

SHARED = {"quirks", "messages", "decode", "encode", "errors", "serving"}
"""What all have. `decode_parts` and the like are parts of their room."""
ROOMS = SHARED | {"content", "tools", "settings", "request", "usage"}
"""What every wire of models has."""
PROTOCOL_ROOMS = SHARED | {"runs"}
"""What every wire of protocols has."""
AGENT_ROOMS = {"client", "content", "tools", "interrupts", "compact"}
"""What those have in which an agent is asked like a model. The AI SDK is no such protocol, and its
messages are those of a format."""
FURTHER: dict[str, set[str]] = {
    "openai_responses": {"approvals", "citations", "files", "items", "linking"},
    "anthropic": {"citations", "files"},
    "google": {"citations", "embeddings", "images", "keys", "schema", "speech", "transcription"},
    "ollama": {"embeddings", "generate"},
    "cohere": {"citations", "embeddings"},
    "google_interactions": {"citations", "steps"},
    "bedrock_converse": {"citations"},
    FAMILY: {"citations", "embeddings", "images", "dialect", "record", "speech", "transcription"},
    "ag_ui": AGENT_ROOMS | {"events"},
    "a2a": AGENT_ROOMS | {"version03", "tasks"},
    "ai_sdk": set(),
}
"""What one has beside them: embeddings and files where its provider has those, and what no other
wire has, by the provider's word."""
NAMES: dict[str, set[str]] = {
    "quirks": {"NAME", "OWN", "Quirks"},
    "content": {"load_content", "dump_content", "load_block", "dump_block"},
    "tools": {"load_tools", "dump_tools", "load_call", "dump_call", "load_result", "dump_result"},
    "messages": {"load_conversation", "dump_conversation", "prepare_conversation"},
    "settings": {"load_settings", "dump_settings", "load_schema", "dump_schema"},
    "decode": {"Decoder"},
    "encode": {"Encoder"},
    "usage": {"load_usage", "dump_usage", "load_finish", "dump_finish"},
    "errors": {"error_of"},
    "serving": {"dump_model", "dump_models"},
}
"""Room → names by which all wires do the same job there."""
PUBLIC: dict[str, set[str]] = {
    "messages": {"load_messages", "dump_messages", "votes"},
    "request": {"load_request", "dump_request", "dump_http", "routes"},
    "decode": {"load_response", "decoder"},
    "encode": {"dump_response", "encoder", "envelope", "ping", "stream_type"},
    "errors": {"load_error", "dump_error"},
}
"""Room → names that the wire's package hands on: those of `Wire`."""
PROTOCOL_NAMES: dict[str, set[str]] = {
    "quirks": {"NAME", "OWN", "Quirks"},
    "content": {"load_content", "dump_content"},
    "tools": {"load_tools", "load_call", "dump_call", "load_result", "dump_result"},
    "decode": {"Decoder"},
    "encode": {"Encoder"},
    "errors": {"error_of"},
    "client": {"name", "dump_request", "dump_http", "dump_cancel", "decoder", "load_error"},
}
"""The names of protocols' rooms, as far as they have them."""
PROTOCOL_PUBLIC: dict[str, set[str]] = {
    "messages": {"load_messages", "dump_messages", "votes"},
    "runs": {"load_run", "dump_run", "routes"},
    "decode": {"decoder"},
    "encode": {"encoder", "envelope", "ping", "stream_type"},
    "errors": {"load_error", "dump_error"},
}
"""Room → names that the package of a protocol hands on: those of `ProtocolWire`."""


def rooms(package: str) -> set[str]:
    """The rooms of a package, each once."""
    files = {file.stem for file in (FOLDER / package).glob("*.py")} - {"__init__"}
    parted = {file.partition("_")[0] for file in files}
    assert parted <= files, "a part of a room without the room"
    return parted


def names(package: str, room: str) -> set[str]:
    """What the modules of a room export, those of the family among them."""
    found: set[str] = set()
    for folder in (package, FAMILY) if package in DIALECTS else (package,):
        for file in (FOLDER / folder).glob(f"{room}*.py"):
            found.update(import_module(f"dragoman.wires.{folder}.{file.stem}").__all__)
    return found


def signature(of: Any) -> list[tuple[str, Any, Any]]:
    """Parameters by name, kind and default; how their types are written is free."""
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(of).parameters.values()
        if one.name != "self"
    ]


def test_every_built_in_wire_is_held_to_its_rooms() -> None:
    assert set(WIRES) == {name for name in wires.names("model") if (FOLDER / name).is_dir()}
    folders = {file.parent.name for file in FOLDER.glob("*/__init__.py")}
    assert folders == {*WIRES, FAMILY, MESSAGES, *PROTOCOLS}
    assert len([*WIRES, *PROTOCOLS]) == 12


@pytest.mark.parametrize("package", [*ALONE, FAMILY])
def test_a_wire_has_the_rooms_that_all_have_and_those_of_its_own(package: str) -> None:
    assert rooms(package) == ROOMS | FURTHER[package]


@pytest.mark.parametrize("package", PROTOCOLS)
def test_a_protocol_has_the_rooms_that_all_have_and_those_of_its_own(package: str) -> None:
    assert rooms(package) == PROTOCOL_ROOMS | FURTHER[package]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_has_rooms_of_its_family_alone(dialect: str) -> None:
    assert {"dialect", "quirks"} <= rooms(dialect) <= rooms(FAMILY)


@pytest.mark.parametrize("room", NAMES)
@pytest.mark.parametrize("wire", WIRES)
def test_the_same_job_has_the_same_name_in_every_wire(wire: str, room: str) -> None:
    assert NAMES[room] - names(wire, room) == set()


@pytest.mark.parametrize("room", PROTOCOL_NAMES)
@pytest.mark.parametrize("wire", PROTOCOLS)
def test_the_same_job_has_the_same_name_in_every_protocol(wire: str, room: str) -> None:
    if room in rooms(wire):
        assert PROTOCOL_NAMES[room] - names(wire, room) == set()


@pytest.mark.parametrize("wire", WIRES)
def test_a_wires_package_hands_on_all_that_a_wire_has_by_the_same_signatures(wire: str) -> None:
    package: Any = wires.get(wire)
    public = {name for of_room in PUBLIC.values() for name in of_room}
    assert public | {"name"} == {name for name in dir(Wire) if not name.startswith("_")}
    assert public | {"name", "Quirks"} <= set(package.__all__)
    for name in public:
        if callable(wanted := getattr(Wire, name)):
            assert signature(getattr(package, name)) == signature(wanted), name


@pytest.mark.parametrize("wire", PROTOCOLS)
def test_a_protocols_package_hands_on_all_by_the_same_signatures(wire: str) -> None:
    """A wire's function may take more, by name."""
    package: Any = wires.get(wire)
    public = {name for of_room in PROTOCOL_PUBLIC.values() for name in of_room}
    assert public | {"name"} == {name for name in dir(ProtocolWire) if not name.startswith("_")}
    assert public | {"name", "Quirks"} <= set(package.__all__)
    for name in public:
        if callable(wanted := getattr(ProtocolWire, name)):
            taken = signature(getattr(package, name))
            assert taken[: len(signature(wanted))] == signature(wanted), name
            more = taken[len(signature(wanted)) :]
            assert all(kind is inspect.Parameter.KEYWORD_ONLY and default is not inspect.Parameter.empty for _, kind, default in more)  # fmt: skip


@pytest.mark.parametrize("wire", ALONE)
def test_a_conversation_is_made_ready_by_the_same_signature(wire: str) -> None:
    made = signature(import_module(f"dragoman.wires.{wire}.messages").prepare_conversation)
    assert [name for name, kind, _ in made if kind is not inspect.Parameter.KEYWORD_ONLY] == [
        "messages", "target", "quirks", "losses", "tools",
    ]  # fmt: skip


@pytest.mark.parametrize("wire", [*ALONE, *PROTOCOLS])
def test_what_a_package_hands_on_stands_in_its_room(wire: str) -> None:
    package: Any = wires.get(wire)
    for room, public in (PROTOCOL_PUBLIC if wire in PROTOCOLS else PUBLIC).items():
        module = import_module(f"dragoman.wires.{wire}.{room}")
        for name in public:
            assert getattr(module, name, None) is getattr(package, name), f"{room}: {name}"


@pytest.mark.parametrize("wire", [wire for wire in WIRES if "embeddings" in rooms(wire)])
def test_embeddings_have_the_same_signatures(wire: str) -> None:
    module = import_module(f"dragoman.wires.{wire}.embeddings")
    public = {name for name in dir(EmbeddingsWire) if not name.startswith("_")}
    assert set(module.__all__) == public
    for name in public:
        assert signature(getattr(module, name)) == signature(getattr(EmbeddingsWire, name)), name


@pytest.mark.parametrize("wire", [wire for wire in ALONE if "files" in rooms(wire)])
def test_files_have_the_same_signatures(wire: str) -> None:
    module = import_module(f"dragoman.wires.{wire}.files")
    public = {name for name in dir(FileWire) if not name.startswith("_")}
    assert set(module.__all__) == public
    assert isinstance(wires.get(wire), FileWire)
    for name in public:
        assert signature(getattr(module, name)) == signature(getattr(FileWire, name)), name


@pytest.mark.parametrize("name", ["ag_ui", "ai_sdk"])
def test_a_wire_that_only_streams_says_so(name: str) -> None:
    wire = wires.get(name)
    assert not hasattr(wire, "dump_response")
    with pytest.raises(AttributeError, match=rf"always streamed; write it with {name}\.encoder"):
        _ = wire.dump_response
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(wire, "nothing")  # noqa: B009
