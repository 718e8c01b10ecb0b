"""What the tests of Ollama's wire share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from dragoman.wires import ollama as wire

PNG = b"\x89PNG\r\n\x1a\n0000"


def decode(*lines: Any, new_id: Any = None) -> list[Any]:
    decoder = wire.decoder(new_id=new_id)
    data = b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )
    return [*decoder.feed(data), *decoder.close()]


def line(done=False, **message):
    return {
        "model": "m",
        "created_at": "t",
        "message": {"role": "assistant", "content": "", **message},
        "done": done,
    }


def call(name="f", arguments: Any = None, **fields):
    return {"function": {"name": name, "arguments": arguments or {}}, **fields}


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


arguments = st.dictionaries(
    words, st.integers(-99, 99) | words | st.none() | st.lists(words, max_size=2), max_size=3
)
