"""Files cost money and memory: they are stored once, and no log or trace repeats their bytes."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, ChatResult, DataPart, LinkPart, Message, PartDelta, unfold
from dragoman.codec.media import media_label
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.memory import Memory
from dragoman.telemetry import content
from dragoman.testing import ScriptedModel

BYTES = b"\0secret-bytes" * 1000
ENCODED = b64encode(BYTES).decode()
PART = DataPart(BYTES, "image/png", "cat.png")


def shows_bytes(text: str) -> bool:
    return "secret-bytes" in text or ENCODED[:40] in text


@pytest.mark.parametrize("show", [repr, str, "{}".format])
@pytest.mark.parametrize(
    "value",
    [
        PART,
        Message.user("Look", PART),
        ChatResult("", (Message.model(PART),)),
        *unfold([Message.model(PART)]),
        PartDelta("m", 0, BYTES),
        [PART],
    ],
    ids=lambda value: type(value).__name__,
)
def test_repr_shows_type_and_size_and_no_bytes(value: Any, show: Callable[[Any], str]) -> None:
    assert not shows_bytes(show(value))


def test_repr_tells_two_files_apart() -> None:
    assert (
        repr(PART)
        == f"DataPart(size=13000, digest='{PART.digest}', mime_type='image/png', name='cat.png')"
    )
    assert repr(DataPart(b"x", "a/b")) != repr(DataPart(b"y", "a/b"))
    assert "native={'x': 1}" in repr(DataPart(b"", "a/b", native={"x": 1}))
    assert dict(PART.__rich_repr__())["size"] == 13000


def test_a_link_that_holds_a_file_is_shortened() -> None:
    link = LinkPart(f"data:image/png;base64,{ENCODED}")
    assert len(repr(link)) < 120
    assert repr(LinkPart("https://x/a.png", "image/png")) == (
        "LinkPart(url='https://x/a.png', mime_type='image/png')"
    )


def test_traces_have_the_size_of_a_large_file() -> None:
    [message] = content.dump_conversation([Message.user(PART)])
    [part] = message["parts"]
    assert (part["content"], part["size"], part["digest"]) == ("", 13000, PART.digest)
    assert not shows_bytes(content.dump_json(message))


def test_losses_and_labels_name_a_file_and_hold_none_of_it() -> None:
    from dragoman import wires

    losses: list[Any] = []
    wires.get("ollama").dump_messages(
        [Message.user(DataPart(BYTES, "a/b", "x.bin"))], losses=losses
    )
    assert losses
    assert not shows_bytes(repr(losses) + "".join(map(str, losses)))
    assert media_label(PART) == "image/png cat.png"


@pytest.mark.parametrize("answers", [["Nice."], [InvalidRequestError("Bad image.")]])
def test_logs_of_a_run_hold_no_bytes(answers: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(ScriptedModel.like("openai", answers))
    with caplog.at_level(logging.DEBUG):
        try:
            agent.send_sync("Look", attachments=[PART])
        except DragomanError as error:
            assert not shows_bytes(repr(error) + str(error))
    assert not shows_bytes(caplog.text)


def test_a_refused_run_names_the_file(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(ScriptedModel.like("ollama", ["Nice."]), on_loss="error")
    with pytest.raises(InvalidRequestError, match=r"x\.bin") as caught:
        agent.send_sync("Look", attachments=[DataPart(BYTES, "a/b", "x.bin")])
    assert not shows_bytes(str(caught.value))


def test_a_memory_stores_a_file_once_for_many_messages(tmp_path: Path) -> None:
    async def measure(count: int) -> int:
        path = tmp_path / f"{count}.db"
        memory = Memory(f"sqlite:///{path}")
        for number in range(count):
            message = Message.user(f"Look {number}", PART)
            await memory.save([message.replace(id=f"m{number}")], thread_id=f"t{number}")
        await memory.close()
        return path.stat().st_size

    assert asyncio.run(measure(5)) < asyncio.run(measure(1)) + len(BYTES)
