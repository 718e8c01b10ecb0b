"""Input as nobody means it: JSON, streams and bytes of which most is as it should be, and a little
is not.

A change is drawn from a `random.Random`, so that a seed makes it again. What is changed is copied
along the way to the change; the rest is shared, and nothing that was given is altered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, cast

import msgspec

from dragoman import json_bytes
from dragoman.json_bytes import Json

__all__ = [
    "ODD",
    "RESERVED",
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

Path = tuple[str | int, ...]
"""Where a value stands within another: keys and places."""


def _nest(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"text": value}
    return value


RESERVED = (
    "spelling", "response", "type", "native", "item", "digest", "notes", "openai_chat:notes", "role", "content", "parts", "id",
    "index", "name", "arguments", "args", "input", "output", "error", "usage", "v", "kind", "state", "raw", "thinking", "text",
    "model", "status", "finish_reason", "tool_calls", "function", "message", "delta", "dragoman", "self", "mark", "",
)  # fmt: skip
"""Names of fields that mean something somewhere."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 1.5, -0.0, 2**63, 10**30, 10**400, 1e308, float("inf"),
    "", "x", "\ud800", "a\udc00b", "\x00", "9" * 400, "1e999", "null", "{}", "[]", '{"a":', '"', "[" * 3000, "data:;base64,", "é" * 3000,
    [], {}, [None], [[]], [{}], [0], ["x"], {"": None}, {"type": []}, {"type": "x"}, {"type": "text"}, {"x": {"x": []}},
    {"type": "text", "text": 5}, {"\ud800": "x"}, [["user"]], [{"type": {}}], _nest(100), _nest(126), _nest(300), _nest(1200),
)  # fmt: skip
"""Values that stand where others should: of every kind, empty, huge, halved, and nested up to a
depth that no stack holds."""


class Sample(NamedTuple):
    """A value of JSON that is as it should be, and all paths into it."""

    value: Any
    """The value."""
    paths: tuple[Path, ...]
    """Each leads to one place in it."""

    @classmethod
    def from_value(cls, value: Any) -> Sample:
        """The sample of a value."""
        paths: list[Path] = []
        todo: list[tuple[Path, Any]] = [((), value)]
        while todo:
            path, inner = todo.pop()
            paths.append(path)
            entries = _list_entries(inner)
            todo += [((*path, key), inner) for key, inner in entries]
        return cls(value, tuple(paths))


def _list_entries(value: object) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def edit_at(value: Any, path: Path, edit: Callable[[Any], Any]) -> Any:
    """Returns the value with what stands at `path` edited; the value as it is if there is no
    such place."""
    if not path:
        return edit(value)
    key, *further = path
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return (
            {**fields, key: edit_at(fields[key], tuple(further), edit)} if key in fields else fields
        )
    if isinstance(value, list) and isinstance(key, int) and key < len(cast("list[Any]", value)):
        items = cast("list[Any]", value)
        return [*items[:key], edit_at(items[key], tuple(further), edit), *items[key + 1 :]]
    return cast("Any", value)


def mutate(chance: Random, sample: Sample, donors: Sequence[Sample] = ()) -> Any:
    """Returns the sample's value with one to three changes. `donors`: samples of the same kind, to
    take pieces from."""
    value = sample.value
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        value = edit_at(value, chance.choice(sample.paths), lambda old: _edit(chance, old, donors))
    return value


def _edit(chance: Random, old: Any, donors: Sequence[Sample]) -> Any:
    edits = _EDITS.get(type(cast("object", old)))
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


def _take_piece(chance: Random, sample: Sample) -> Any:
    pieces: list[Any] = []
    edit_at(sample.value, chance.choice(sample.paths), lambda old: pieces.append(old) or old)
    return pieces[0]


def _drop_key(chance: Random, old: Json) -> Any:
    key = chance.choice([*old, ""])
    return {name: value for name, value in old.items() if name != key}


def _rename_key(chance: Random, old: Json) -> Any:
    key, new = chance.choice([*old, ""]), chance.choice(RESERVED)
    return {new if name == key else name: value for name, value in old.items()}


def _add_key(chance: Random, old: Json) -> Any:
    return {**old, chance.choice(RESERVED): chance.choice(ODD)}


def _add_copy(chance: Random, old: Json) -> Any:
    return {**old, chance.choice(RESERVED): chance.choice([*old.values(), None])}


def _drop_item(chance: Random, old: list[Any]) -> Any:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], *old[index + 1 :]]


def _repeat_item(chance: Random, old: list[Any]) -> Any:
    index = chance.randrange(len(old) + 1)
    return [*old[: index + 1], *old[index:]]


def _shuffle_items(chance: Random, old: list[Any]) -> Any:
    return chance.sample(old, len(old))


def _swap_items(chance: Random, old: list[Any]) -> Any:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], *old[index : index + 2][::-1], *old[index + 2 :]]


def _move_item(chance: Random, old: list[Any]) -> Any:
    start, to = chance.randrange(len(old) + 1), chance.randrange(len(old) + 1)
    remaining = [*old[:start], *old[start + 1 :]]
    return [*remaining[:to], *old[start : start + 1], *remaining[to:]]


def _cut_list(chance: Random, old: list[Any]) -> Any:
    return old[: chance.randrange(len(old) + 1)]


def _insert_odd_item(chance: Random, old: list[Any]) -> Any:
    index = chance.randrange(len(old) + 1)
    return [*old[:index], chance.choice(ODD), *old[index:]]


def _cut_text(chance: Random, old: str) -> Any:
    return old[: chance.randrange(len(old) + 1)]


def _append_odd_text(chance: Random, old: str) -> Any:
    return old + chance.choice(("\ud83d", "\x00", " ", "\n\n", '"', "}", ":", "é", "=", "\u2028"))


def _swap_case(chance: Random, old: str) -> Any:  # noqa: ARG001 - as all edits
    return old.swapcase()


def _change_number(chance: Random, old: float) -> Any:
    return chance.choice((-old, old + 1, str(old), 10**30, 1e308, [old]))


_EDITS: dict[type, tuple[Callable[[Random, Any], Any], ...]] = {
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
    """Returns the bytes with one to three changes: some lost, doubled, replaced, or cut off."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        start, more = chance.randrange(len(data) + 1), chance.choice((0, 1, 1, 2, 7, 40))
        before, within, after = data[:start], data[start : start + more], data[start + more :]
        wrong = (
            b"",
            within * 2,
            chance.choice(_WRONG_BYTES),
            bytes([chance.randrange(256)]) + within,
            b"",
        )
        middle = chance.choice(wrong)
        data = before + middle + (after if chance.random() < 0.85 else b"")
    return data


_WRONG_BYTES = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\n\n", b"\r",
    b"\r\n\r\n", b"data:", b"data: [DONE]\n\n", b"event: error\n", b"null", b"1e999", b"-", b"9" * 500, b"[" * 500, b" " * 300,
    b"\xc3", b"\xe2\x80\xa8", b"id: 1\n", b": ping\n\n",
)  # fmt: skip


def split_randomly(chance: Random, data: bytes) -> list[bytes]:
    """Returns the same bytes in a few pieces."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(5)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def encode_json(value: Any) -> bytes:
    """Returns a value as JSON, however deep it is nested, and with halves of surrogate pairs."""
    try:
        return json_bytes.encode(value)
    except RecursionError:
        return b"".join(_encode_pieces(value))


def _encode_pieces(value: Any) -> list[bytes]:
    done: list[bytes] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, bytes):
            done.append(item)
        elif isinstance(item, dict | list):
            opened, closed = (b"{", b"}") if isinstance(item, dict) else (b"[", b"]")
            inner: list[Any] = []
            for key, value in _list_entries(cast("object", item)):
                inner += (
                    [b",", json_bytes.encode(key) + b":", value]
                    if isinstance(item, dict)
                    else [b",", value]
                )
            todo += [closed, *reversed(inner[1:]), opened]
        else:
            done.append(json_bytes.encode(item))
    return done


def read_frames(stream: bytes) -> tuple[str, list[Any]]:
    """Returns how a streamed response is framed (`sse`, `ndjson`) and its events as JSON:
    `{"event": …, "data": …}`, or `{"raw": …}` where it holds no JSON."""
    framing = "ndjson" if stream.lstrip()[:1] == b"{" else "sse"
    blocks = stream.replace(b"\r\n", b"\n").split(b"\n" if framing == "ndjson" else b"\n\n")
    return framing, [_read_frame(framing, block) for block in blocks if block.strip()]


def _read_frame(framing: str, block: bytes) -> Any:
    pairs = [line.partition(b":") for line in block.split(b"\n")]
    lines = (
        {b"data": block} if framing == "ndjson" else {name: text.strip() for name, _, text in pairs}
    )
    try:
        frame: Json = {"data": msgspec.json.decode(lines.get(b"data", b""))}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"raw": block.decode(errors="replace")}
    return (
        {"event": lines[b"event"].decode(errors="replace"), **frame} if b"event" in lines else frame
    )


def write_frames(framing: str, frames: Any) -> bytes:
    """Returns the streamed response of events as `frames_of` gives them, or of what became of
    them."""
    end = b"\n" if framing == "ndjson" else b"\n\n"
    frame_list = cast("list[Any]", frames) if isinstance(frames, list) else [frames]
    return b"".join([_write_frame(framing, frame) + end for frame in frame_list])


def _write_frame(framing: str, frame: Any) -> bytes:
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
