"""Random mutations of JSON, streams and bytes, for tests with malformed input.

All choices come from a `random.Random`, so the same seed makes the same mutation. A `Sample` knows
all paths into its value; `mutate` picks some and edits what is there. Values are never changed in
place: `edit_at` copies the containers along the path and shares the rest. `encode_json` and
`write_frames` write the result, also where it is too deep or too odd for an ordinary encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from dragoman import json_bytes
from dragoman.json_bytes import Json

__all__ = [
    "ODD",
    "RESERVED",
    "JsonValue",
    "Path",
    "Sample",
    "split_randomly",
    "read_frames",
    "mutate",
    "mutate_bytes",
    "edit_at",
    "encode_json",
    "write_frames",
]

JsonValue: TypeAlias = Any
"""A JSON value. Mutations may put any type anywhere, so no narrower type holds."""
Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value within another."""


def _nest_deeply(depth: int) -> JsonValue:
    """Returns objects and lists for mutations, nested in turn to a depth."""
    value: JsonValue = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"text": value}
    return value


RESERVED = (
    "spelling", "response", "type", "native", "item", "digest", "notes", "openai_chat:notes", "role", "content", "parts", "id",
    "index", "name", "arguments", "args", "input", "output", "error", "usage", "v", "kind", "state", "raw", "thinking", "text",
    "model", "status", "finish_reason", "tool_calls", "function", "message", "delta", "dragoman", "self", "mark", "",
)  # fmt: skip
"""Field names that have a meaning in some format, or that a reader may reserve for itself."""
# The numbers are at the limits of 64 bits, of doubles and of decimal parsing; the texts are lone
# surrogates and JSON within JSON; the depths are around the limits of msgspec and of the stack.
ODD: tuple[JsonValue, ...] = (
    None, True, False, 0, -1, 7, 1.5, -0.0, 2**63, 10**30, 10**400, 1e308, float("inf"),
    "", "x", "\ud800", "a\udc00b", "\x00", "9" * 400, "1e999", "null", "{}", "[]", '{"a":', '"', "[" * 3000, "data:;base64,", "é" * 3000,
    [], {}, [None], [[]], [{}], [0], ["x"], {"": None}, {"type": []}, {"type": "x"}, {"type": "text"}, {"x": {"x": []}},
    {"type": "text", "text": 5}, {"\ud800": "x"}, [["user"]], [{"type": {}}], _nest_deeply(100), _nest_deeply(126), _nest_deeply(300), _nest_deeply(1200),
)  # fmt: skip
"""Values to put in place of others: every type, empty, huge, truncated, deeply nested."""


class Sample(NamedTuple):
    """A well-formed JSON value and all paths into it."""

    value: JsonValue
    """The value."""
    paths: tuple[Path, ...]
    """The path of each value in it; the empty path is the value itself."""

    @classmethod
    def from_value(cls, value: JsonValue) -> Sample:
        """Makes a sample to mutate with all paths into the value."""
        paths: list[Path] = []
        # A stack instead of recursion: samples may be deeper than Python's own stack.
        todo: list[tuple[Path, JsonValue]] = [((), value)]
        while todo:
            path, inner = todo.pop()
            paths.append(path)
            entries = _list_entries(inner)
            todo += [((*path, key), inner) for key, inner in entries]
        return cls(value, tuple(paths))


def _list_entries(value: object) -> list[tuple[Any, JsonValue]]:
    """Returns the keys or indexes of a container to mutate, with their values; none for other
    values."""
    if isinstance(value, dict):
        return list(cast("dict[Any, JsonValue]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[JsonValue]", value)))
    return []


def edit_at(value: JsonValue, path: Path, edit: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Returns a mutated copy, with the value at `path` edited, or the same value if the path leads
    nowhere."""
    if not path:
        return edit(value)
    key, *further = path
    if isinstance(value, dict):
        fields = cast("dict[Any, JsonValue]", value)
        if key not in fields:
            return fields
        return {**fields, key: edit_at(fields[key], tuple(further), edit)}
    if isinstance(value, list) and isinstance(key, int):
        items = cast("list[JsonValue]", value)
        if key < len(items):
            return [*items[:key], edit_at(items[key], tuple(further), edit), *items[key + 1 :]]
    # An earlier edit of the same mutation may have removed what the path led to.
    return cast("JsonValue", value)


def mutate(chance: Random, sample: Sample, donors: Sequence[Sample] = ()) -> JsonValue:
    """Returns the sample's value with one to three edits.

    `donors`: similar samples, from which an edit may take a piece.
    """
    value = sample.value
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        value = edit_at(
            value, chance.choice(sample.paths), lambda old: _edit_value(chance, old, donors)
        )
    return value


def _edit_value(chance: Random, old: JsonValue, donors: Sequence[Sample]) -> JsonValue:
    """Returns another value: an edit of the old one's type, a donor's piece, or an odd value."""
    edits = _EDITS.get(type(cast("object", old)))
    # Slightly more than half keep the type, so that input gets past the first type check.
    if edits and chance.random() < 0.55:
        return chance.choice(edits)(chance, old)
    match chance.randrange(8):
        case 0 if donors:
            return _take_piece(chance, chance.choice(donors))
        case 1:
            return [old]
        case 2:
            return {chance.choice(RESERVED): old}
        case _:
            return chance.choice(ODD)


def _take_piece(chance: Random, sample: Sample) -> JsonValue:
    """Returns for a mutation the value at a random path of a sample."""
    value: JsonValue = sample.value
    for key in chance.choice(sample.paths):
        value = value[key]
    return value


def _drop_key(chance: Random, old: Json) -> Json:
    """Removes a field, or none."""
    key = chance.choice([*old, ""])
    return {name: value for name, value in old.items() if name != key}


def _rename_key(chance: Random, old: Json) -> Json:
    """Mutates an object: renames a field to a reserved name."""
    key, new = chance.choice([*old, ""]), chance.choice(RESERVED)
    renamed: Json = {}
    for name, value in old.items():
        renamed[new if name == key else name] = value
    return renamed


def _add_key(chance: Random, old: Json) -> Json:
    """Adds a reserved field with an odd value."""
    return {**old, chance.choice(RESERVED): chance.choice(ODD)}


def _add_copy(chance: Random, old: Json) -> Json:
    """Copies the value of a field to a reserved one."""
    return {**old, chance.choice(RESERVED): chance.choice([*old.values(), None])}


def _drop_item(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], *old[index + 1 :]]


def _repeat_item(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    index = chance.randrange(len(old) + 1)
    return [*old[: index + 1], *old[index:]]


def _shuffle_items(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    return chance.sample(old, len(old))


def _swap_items(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], *old[index : index + 2][::-1], *old[index + 2 :]]


def _move_item(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    start, to = chance.randrange(len(old) + 1), chance.randrange(len(old) + 1)
    remaining = [*old[:start], *old[start + 1 :]]
    return [*remaining[:to], *old[start : start + 1], *remaining[to:]]


def _cut_list(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    return old[: chance.randrange(len(old) + 1)]


def _insert_odd_item(chance: Random, old: list[JsonValue]) -> list[JsonValue]:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], chance.choice(ODD), *old[index:]]


def _cut_text(chance: Random, old: str) -> str:
    return old[: chance.randrange(len(old) + 1)]


def _append_odd_text(chance: Random, old: str) -> str:
    return old + chance.choice(("\ud83d", "\x00", " ", "\n\n", '"', "}", ":", "é", "=", "\u2028"))


def _swap_case(chance: Random, old: str) -> str:  # noqa: ARG001 - as all edits
    return old.swapcase()


def _change_number(chance: Random, old: float) -> JsonValue:
    return chance.choice((-old, old + 1, str(old), 10**30, 1e308, [old]))


_EDITS: dict[type, tuple[Callable[[Random, Any], JsonValue], ...]] = {
    dict: (_drop_key, _rename_key, _add_key, _add_key, _add_copy),
    list: (
        _drop_item,
        _repeat_item,
        _shuffle_items,
        _swap_items,
        _move_item,
        _cut_list,
        _insert_odd_item,
    ),
    str: (_cut_text, _append_odd_text, _swap_case),
    int: (_change_number,),
    float: (_change_number,),
}


def mutate_bytes(chance: Random, data: bytes) -> bytes:
    """Returns the bytes with one to three edits: bytes removed, repeated, replaced, or cut off."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        start, length = chance.randrange(len(data) + 1), chance.choice((0, 1, 1, 2, 7, 40))
        end = start + length
        edits = (
            b"",
            data[start:end] * 2,
            chance.choice(_WRONG_BYTES),
            bytes([chance.randrange(256)]) + data[start:end],
            b"",
        )
        edited = data[:start] + chance.choice(edits)
        # Now and then nothing follows, as if the connection broke there.
        if chance.random() < 0.85:
            edited += data[end:]
        data = edited
    return data


_WRONG_BYTES = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\n\n", b"\r",
    b"\r\n\r\n", b"data:", b"data: [DONE]\n\n", b"event: error\n", b"null", b"1e999", b"-", b"9" * 500, b"[" * 500, b" " * 300,
    b"\xc3", b"\xe2\x80\xa8", b"id: 1\n", b": ping\n\n",
)  # fmt: skip


def split_randomly(chance: Random, data: bytes) -> list[bytes]:
    """Returns the same bytes in up to five pieces."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(5)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def encode_json(value: JsonValue) -> bytes:
    """Returns a mutated value as JSON, however deep it is nested, and with lone surrogates."""
    try:
        return json_bytes.encode(value)
    except RecursionError:
        return b"".join(_encode_pieces(value))


def _encode_pieces(value: JsonValue) -> list[bytes]:
    """Returns the JSON of a mutated value in pieces, without recursion."""
    pieces: list[bytes] = []
    # The stack holds values and, as bytes, finished JSON between them; the last entry comes first.
    todo: list[JsonValue] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, bytes):
            pieces.append(item)
        elif isinstance(item, dict):
            inner: list[JsonValue] = []
            for key, field in _list_entries(cast("object", item)):
                inner += [b",", json_bytes.encode(key) + b":", field]
            todo += [b"}", *reversed(inner[1:]), b"{"]
        elif isinstance(item, list):
            inner = []
            for element in cast("list[JsonValue]", item):
                inner += [b",", element]
            todo += [b"]", *reversed(inner[1:]), b"["]
        else:
            pieces.append(json_bytes.encode(item))
    return pieces


_FRAME_ENDS = {"sse": b"\n\n", "ndjson": b"\n"}
"""What separates the events of a stream, by framing."""


def read_frames(stream: bytes) -> tuple[str, list[JsonValue]]:
    """Returns what mutations need of a streamed response: its framing (`sse` or `ndjson`) and its
    events as JSON.

    An event is `{"event": …, "data": …}`, or `{"raw": …}` if its data is not JSON.
    """
    framing = "ndjson" if stream.lstrip()[:1] == b"{" else "sse"
    blocks = stream.replace(b"\r\n", b"\n").split(_FRAME_ENDS[framing])
    return framing, [_read_frame(framing, block) for block in blocks if block.strip()]


def _read_frame(framing: str, block: bytes) -> Json:
    """Returns one event of a stream to mutate as `read_frames` does."""
    lines = {b"data": block}
    if framing == "sse":
        pairs = [line.partition(b":") for line in block.split(b"\n")]
        lines = {name: text.strip() for name, _, text in pairs}
    try:
        frame: Json = {"data": msgspec.json.decode(lines.get(b"data", b""))}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"raw": block.decode(errors="replace")}
    if b"event" in lines:
        frame = {"event": lines[b"event"].decode(errors="replace"), **frame}
    return frame


def write_frames(framing: str, frames: JsonValue) -> bytes:
    """Returns the streamed response of mutated events as `read_frames` gives them, or as a mutation
    left them."""
    events = cast("list[JsonValue]", frames) if isinstance(frames, list) else [frames]
    end = _FRAME_ENDS[framing]
    return b"".join([_write_frame(framing, event) + end for event in events])


def _write_frame(framing: str, frame: JsonValue) -> bytes:
    """Returns one mutated event without the end of its frame."""
    fields = cast("Json", frame) if isinstance(frame, dict) else {"data": frame}
    if isinstance(raw := fields.get("raw"), str):
        return raw.encode(errors="replace")
    data = encode_json(fields.get("data"))
    if framing == "ndjson":
        return data
    event = fields.get("event")
    if event is None:
        return b"data: " + data
    name = event.encode(errors="replace") if isinstance(event, str) else encode_json(event)
    return b"event: " + name + b"\ndata: " + data
