"""Streams of older agents, compacted: "all content from streaming events is preserved in the final
messages" (T-20 to T-28)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dragoman import fold, json_bytes
from dragoman.event import RunFinished
from dragoman.formats import seed_a2a
from dragoman.wires import a2a

Json = dict[str, Any]
STREAMS = 2000


class Stream:
    """A random stream, and what was said in it: texts, and calls with all their arguments."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self.messages: list[Json] = []
        self.said: list[Any] = []
        for _ in range(self._random.randint(1, 6)):
            self._random.choice(
                [self._ask, self._answer, self._answer, self._cut, self._call, self._call]
            )()

    def _new(self) -> int:
        self._number += 1
        return self._number

    def _words(self) -> list[str]:
        return [f"w{self._new()} " for _ in range(self._random.randint(1, 5))]

    def _add(
        self, role: str, text: str | None, data: Json | None = None, kind: str | None = None
    ) -> None:
        parts: list[Json] = [] if text is None else [{"kind": "text", "text": text}]
        parts += [] if data is None else [{"kind": "data", "data": data}]
        marked = {"metadata": {"canonical_type": kind}} if kind else {}
        self.messages.append(
            {"role": role, "messageId": f"m{self._new()}", "parts": parts, **marked}
        )

    def _chunks(self, words: list[str]) -> str:
        text = ""
        for word in words:
            text += word
            self._add("agent", text, kind="TextMessageChunkEvent")
        return text

    def _ask(self) -> None:
        text = f"question {self._new()}"
        self._add("user", text)
        self.said.append(text)

    def _answer(self) -> None:
        words = self._words()
        self._chunks(words[: self._random.randint(0, len(words))])
        text = "".join(words)
        self._add("agent", self._random.choice([text, text.strip()]))
        self.said.append(text.strip())

    def _cut(self) -> None:
        self.said.append(self._chunks(self._words()).strip())

    def _call(self) -> None:
        words = self._words()
        self._chunks(words[: self._random.randint(0, len(words))])
        ids = [f"c{self._new()}" for _ in range(self._random.randint(1, 2))]
        arguments: dict[str, Json] = {id_: {} for id_ in ids}

        def piece(id_: str) -> Json:
            name = f"k{self._new()}"
            arguments[id_][name] = 1
            return {"call_id": id_, "name": "f", "arguments": {name: 1}}

        def pieces() -> None:
            for _ in range(self._random.randint(0, 2)):
                data = {"tool_calls": [piece(self._random.choice(ids))]}
                self._add("agent", None, data, kind="ToolCallArgsEvent")

        pieces()
        for _ in range(self._random.choice([1, 1, 2])):
            self._add("agent", "".join(words), {"tool_calls": [piece(id_) for id_ in ids]})
            pieces()
        self.said.append("".join(words).strip())
        self.said += [(id_, arguments[id_]) for id_ in ids]
        if self._random.random() < 0.8:
            results = [{"call_id": id_, "name": "f", "output": "ok"} for id_ in ids]
            self._add("user", None, {"tool_results": results})


def by_functions(messages: list[Json]) -> list[Any]:
    said: list[Any] = []
    for event in seed_a2a.compact_events(
        [seed_a2a.convert_a2a_message_to_agui_event(message) for message in messages]
    ):
        told, _ = seed_a2a.convert_agui_event_to_openai_chat(event)
        if told is None:
            continue
        if told["content"]:
            said.append(told["content"].strip())
        listed = event.get("toolCalls") or [event["toolCall"]] if "tool_calls" in told else []
        said += [(call["id"], call["arguments"]) for call in listed]
    return said


def by_loading(messages: list[Json]) -> list[Any]:
    said: list[Any] = []
    for message in a2a.load_messages(messages):
        if message.text:
            said.append(message.text.strip())
        said += [(call.id, call.arguments) for call in message.tool_calls]
    return said


@pytest.mark.mend("3.5")
def test_t22_of_random_streams_nothing_is_lost_and_nothing_doubled() -> None:
    for seed in range(STREAMS):
        stream = Stream(seed)
        assert by_functions(stream.messages) == stream.said, seed
        assert by_loading(stream.messages) == stream.said, seed


@pytest.mark.mend("3.5")
def test_a_stream_of_many_entries_is_compacted_in_little_time() -> None:
    """A peer chooses the entries: the work grows as they do."""
    chunks: list[Json] = [
        {"type": "text-message-chunk", "message": {"content": f"{at % 7} {at}"}}
        for at in range(20_000)
    ]
    starts: list[Json] = [
        {"type": "tool-call-start", "toolCall": {"id": f"c{at}", "name": "f", "arguments": {}}}
        for at in range(20_000)
    ]
    assert len(seed_a2a.compact_events([*chunks, *starts, *starts])) == 40_000


def status(state: str, text: str, *calls: Json, kind: str | None = None, id_: str = "m") -> Json:
    parts: list[Json] = [{"kind": "text", "text": text}]
    parts += [{"kind": "data", "data": {"tool_calls": [*calls]}}] if calls else []
    marked = {"metadata": {"canonical_type": kind}} if kind else {}
    message = {"kind": "message", "role": "agent", "messageId": id_, "parts": parts, **marked}
    return {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": {"state": state, "message": message},
    }


def chunk(text: str, id_: str = "m") -> Json:
    return status("working", text, kind="TextMessageChunkEvent", id_=id_)


def read(*objects: Json) -> list[tuple[str, int]]:
    """Text and number of calls of each message of a live stream."""
    decoder = a2a.decoder()
    events = [
        *decoder.feed(b"".join(b"data: " + json_bytes.encode(one) + b"\n\n" for one in objects)),
        *decoder.close(),
    ]
    assert isinstance(events[-1], RunFinished)
    return [(message.text, len(message.tool_calls)) for message in fold(events)]


CALL: Json = {"call_id": "a", "name": "f", "arguments": {}}


@pytest.mark.mend("3.5")
@pytest.mark.parametrize("second", ["m", "n"])
def test_t63_a_live_stream_says_all_once(second: str) -> None:
    """The same rules where the stream is read as it comes."""
    asks = status("input-required", "Let me look.", CALL, id_=second)
    assert read(chunk("Let me"), asks) == [("Let me look.", 1)]
    assert read(chunk("First"), chunk("Sec", second), chunk("Second", second), asks) == [
        ("First", 0),
        ("Second", 0),
        ("Let me look.", 1),
    ]
    assert read(chunk("It"), status("completed", "It is.", id_=second)) == [("It is.", 0)]
    assert read(chunk(" It is. "), status("completed", "It is.", id_=second)) == [(" It is. ", 0)]
    assert read(chunk("No"), status("completed", "Yes", id_=second)) == [("No", 0), ("Yes", 0)]
    ended = status("working", "It is.", kind="TextMessageEndEvent", id_=second)
    assert read(chunk("It"), ended, status("completed", "It is.", id_="z")) == [("It is.", 0)]
    assert read(chunk("It"), ended, chunk("Next"), status("completed", "Next.", id_="z")) == [
        ("It is.", 0),
        ("Next.", 0),
    ]
    called = status("working", "Let me look.", CALL, kind="ToolCallStartEvent", id_=second)
    assert read(chunk("Let"), called, status("completed", "Done.", id_="z")) == [
        ("Let me look.", 1),
        ("Done.", 0),
    ]
