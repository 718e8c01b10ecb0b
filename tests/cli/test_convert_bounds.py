"""What `dragoman convert` reads is bounded by what one conversation may have, however it is
packed."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli import convert_input
from dragoman.cli.convert_input import read_chunks
from dragoman.errors import HistoryError

Cli = Callable[..., tuple[int, str, str]]
CHAT = [{"role": "user", "content": 'Hi, "you" \\ [there], {and} ünd\n'}]

pytestmark = pytest.mark.mend("1.9")


def conversations(
    tmp_path: Path, data: bytes, name: str = "x.json", most: int = 10_000
) -> list[Any]:
    (tmp_path / name).write_bytes(data)
    return [
        json.loads(line)
        for chunk in read_chunks([str(tmp_path / name)], most=most)
        for _, line in chunk.lines
    ]


texts = st.text(max_size=8) | st.sampled_from(['"', "\\", '\\"', "[", "]}", ",", "\u2028"])
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


@given(
    st.lists(st.lists(values, max_size=3), min_size=1, max_size=5),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 9),
)
def test_a_list_of_conversations_is_read_element_by_element(
    tmp_path_factory: pytest.TempPathFactory, document: list[Any], indent: int | None, block: int
) -> None:
    data = json.dumps(document, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert_input, "_BLOCK", block)
        assert conversations(tmp_path_factory.mktemp("c"), data) == document


def test_a_conversation_stays_one(tmp_path: Path) -> None:
    assert conversations(tmp_path, json.dumps(CHAT, indent=1).encode()) == [CHAT]
    assert conversations(tmp_path, json.dumps({"messages": CHAT}, indent=1).encode()) == [
        {"messages": CHAT}
    ]
    assert conversations(tmp_path, b"") == []
    assert conversations(tmp_path, b"[]") == [[]]
    lines = b"\n\n".join([json.dumps(CHAT).encode()] * 3)
    assert conversations(tmp_path, lines, "x.jsonl") == [CHAT] * 3


@pytest.mark.parametrize("data", [b'[[{"role": "user"', b"[[]] [", b"[[]]x", b"[[],", b'[["a]]'])
def test_a_list_that_is_not_whole_is_an_error(cli: Cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.json").write_bytes(data)
    code, _, err = cli("convert", str(tmp_path / "x.json"), "--to", "anthropic", "-q")
    assert code == 1
    assert "x.json, conversation" in err


@pytest.mark.parametrize(
    ("data", "name", "place"),
    [
        (b"[" + b" " * 20_000 + b"]", "x.json", "conversation 1"),
        (b"[[], [" + b"1," * 20_000 + b"1]]", "x.json", "conversation 2"),
        (json.dumps(CHAT).encode() + b"\n" + b" " * 20_000, "x.jsonl", "line 2"),
        (b" " * 20_000, "x.jsonl", "line 1"),
        (b'{"a": "' + b"x" * 20_000, "x.jsonl", "line 1"),
        (b"{\n" + b'"a": "' + b"x" * 20_000, "x.json", "the document"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_conversation_that_is_too_large_is_named(
    tmp_path: Path, data: bytes, name: str, place: str, packed: bool
) -> None:
    name, data = (f"{name}.gz", gzip.compress(data)) if packed else (name, data)
    with pytest.raises(
        HistoryError, match=rf"{name}, {place}: it has more than 10,000 bytes.*--max-line"
    ):
        conversations(tmp_path, data, name)


def test_the_bound_is_an_option(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps([{"role": "user", "content": "x" * 3000}]) + "\n")
    code, _, err = cli("convert", str(file), "--to", "anthropic", "--max-line", "2K")
    assert code == 1
    assert "it has more than 2,048 bytes" in err
    assert cli("convert", str(file), "--to", "anthropic", "--max-line", "4k")[0] == 0
    for wrong in ("x", "0", "-1", "1T", ""):
        code, _, err = cli("convert", str(file), "--to", "anthropic", "--max-line", wrong)
        assert code == 2
        assert "is no size" in err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "list", "spaces"])
def test_a_small_packed_file_takes_little_memory(tmp_path: Path, kind: str) -> None:
    """Less than a megabyte took 4 to 7 GB."""
    path = tmp_path / ("bomb.json.gz" if kind == "list" else "bomb.jsonl.gz")
    piece = {
        "line": b"x" * 2**20,
        "list": json.dumps([{"role": "user", "content": "x" * 2**20}]).encode() + b",",
    }
    with gzip.open(path, "wb", 9) as file:
        file.write({"line": b'"', "list": b"[", "spaces": b""}[kind])
        for _ in range(300):
            file.write(piece.get(kind, b" " * 2**20))
        file.write(b"[]]" if kind == "list" else b"")
    # Not `ru_maxrss`: a process that was started by `vfork` inherits its parent's peak there.
    program = (
        "import pathlib, re, sys\n"
        "from dragoman.cli import main\n"
        "code = main(['convert', sys.argv[1], '--to', 'anthropic', '-o', sys.argv[2], '-q', '-j', '1'])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-c", program, str(path), str(tmp_path / "out.jsonl")]
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert ("--max-line" in run.stderr) == (kind != "list"), run.stderr
    assert int(run.stdout) < 500_000, run.stdout


def test_standard_input_is_bounded_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped(io.TextIOWrapper):
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Piped(io.BytesIO(b" " * 5000)))
    code, _, err = cli("convert", "--to", "anthropic", "--max-line", "1K")
    assert code == 1
    assert "standard input, line 1" in err
