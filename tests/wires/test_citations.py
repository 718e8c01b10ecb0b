"""The sources of an answer: read on each wire, written on every other one, streamed as whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Citation, Message, TextPart, ToolCallPart, formats, wires
from dragoman.codec.citations import MOST, CitedText, find_words, place_citations
from dragoman.codec.digest import chain_neutral_digests, compute_prefix
from dragoman.event import Event, PartFinished
from dragoman.fold import compact, fold, unfold
from dragoman.history import plan
from dragoman.loss import Loss, Lost
from dragoman.message import Origin, dump_messages, load_messages
from support.traffic import FOLDER, WIRES, Exchange

PAGE = Citation("https://a.test/x", "A", 0, 4)
TEXT = "Üben macht Meister 🎓, sagt man."
SPAN = Citation("https://b.test", "B", 5, 19)
CITING = (
    "openai_chat",
    "openai_responses",
    "anthropic",
    "google",
    "mistral",
    "cohere",
    "google_interactions",
    "bedrock_converse",
)
"""Wires whose responses have a place for sources."""
READING = tuple(name for name in CITING if name != "mistral")
SPANS = ("openai_chat", "openai_responses", "google", "cohere", "google_interactions")
"""Those that say for which words a source is."""


def cited(*citations: Citation, text: str = TEXT) -> Message:
    return Message.model(TextPart(text, None, citations)).replace(id="m")


def answer(wire: str, message: Message) -> list[Event]:
    """What a client of that API reads of an answer."""
    return wires.get(wire).load_response(wires.get(wire).dump_response(unfold([message])))


def streamed(wire: str, message: Message) -> list[Event]:
    encoder = wires.get(wire).encoder()
    data = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    decoder = wires.get(wire).decoder()
    return [*decoder.feed(data), *decoder.close()]


def sources(events: Iterable[Event]) -> list[Citation]:
    return [
        citation
        for message in fold(events)
        for piece in message.content
        if isinstance(piece, TextPart)
        for citation in piece.citations
    ]


@pytest.mark.parametrize("wire", READING)
def test_a_client_gets_the_sources_whole_and_streamed(wire: str) -> None:
    message = cited(PAGE, SPAN)
    whole = sources(answer(wire, message))
    assert [(citation.url, citation.title) for citation in whole] == [
        ("https://a.test/x", "A"),
        ("https://b.test", "B"),
    ]
    assert sources(streamed(wire, message)) == whole
    if wire in SPANS:
        assert [(citation.start, citation.end) for citation in whole] == [(0, 4), (5, 19)]
    else:
        assert [citation.quote for citation in whole] == [TEXT[0:4], TEXT[5:19]]


@pytest.mark.parametrize("wire", READING)
def test_files_and_quotes_too(wire: str) -> None:
    message = cited(Citation(title="a.pdf", quote="Words.", file_id="file-1"))
    found = sources(answer(wire, message))
    assert found == sources(streamed(wire, message))
    if wire == "openai_chat":
        assert found == []  # its annotations name pages alone
    else:
        assert [citation.title for citation in found] == ["a.pdf"]
        assert [citation.file_id for citation in found] == [None if wire == "google" else "file-1"]


def test_mistral_gets_chunks_behind_the_text() -> None:
    body = wires.get("mistral").dump_response(unfold([cited(PAGE, PAGE, SPAN)]))
    content = body["choices"][0]["message"]["content"]
    assert [block["type"] for block in content] == ["text", "tool_reference", "tool_reference"]
    assert content[1]["url"] == PAGE.url
    texts = [
        piece.text
        for message in fold(streamed("mistral", cited(PAGE)))
        for piece in message.content
        if isinstance(piece, TextPart)
    ]
    assert "".join(texts) == TEXT


def test_a_browser_gets_each_source_once() -> None:
    encoder = wires.protocol("ai_sdk").encoder()
    twice = Citation(title="a.pdf", file_id="f")
    data = b"".join(map(encoder.feed, unfold([cited(PAGE, SPAN, PAGE, twice)]))) + encoder.close()
    chunks = [
        json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")
    ]
    assert [chunk for chunk in chunks if chunk["type"].startswith("source")] == [
        {"type": "source-url", "sourceId": "source-1", "url": PAGE.url, "title": "A"},
        {"type": "source-url", "sourceId": "source-2", "url": SPAN.url, "title": "B"},
        {
            "type": "source-document",
            "sourceId": "source-3",
            "mediaType": "application/octet-stream",
            "title": "a.pdf",
        },
    ]


def test_places_are_kept_over_several_texts() -> None:
    message = Message.model(
        TextPart("Ab.", None, (Citation("https://a.test"),)),
        TextPart("Cd.", None, (Citation("https://c.test", start=1, end=2),)),
    )
    joined = CitedText.of(message.content).citations
    assert [(citation.start, citation.end) for citation in joined] == [(0, 3), (4, 5)]
    assert place_citations(joined, {0: 3, 1: 3}, [0, 1]) == {
        0: [Citation("https://a.test", start=0, end=3)],
        1: [Citation("https://c.test", start=1, end=2)],
    }
    # of a text that is closed, and beyond all of them
    assert place_citations([joined[0], Citation("u", start=5, end=99)], {0: 3, 1: 3}, [1]) == {
        1: [Citation("https://a.test"), Citation("u")]
    }


def test_a_request_tells_the_sources_that_it_leaves_out() -> None:
    message = cited(PAGE, Citation(title="a.pdf", file_id="f")).replace(origin=Origin("elsewhere"))
    ask = Message.user("q")
    for wire in wires.names("model"):
        losses: list[Loss] = []
        target = Origin("somebody", model="m")
        dumped = wires.get(wire).dump_messages([ask, message], target=target, losses=losses)
        assert [(loss.message, loss.part, loss.which) for loss in losses] == [
            (1, 0, "citations")
        ], wire
        assert all(loss.what is Lost.field and loss.is_minor for loss in losses)
        assert str(PAGE.url) not in json.dumps(dumped)
    found = plan([ask, message], "anthropic:claude-sonnet-4-6")
    assert [str(loss) for loss in found.losses] == [
        "citations of message 1: the API takes its own alone"
    ]
    assert found.ok


def test_formats_tell_what_they_do_not_hold() -> None:
    for name in formats.names():
        if name in wires.names("model"):
            continue
        found = plan([Message.user("q"), cited(PAGE)], formats.get(name))
        kept = any(
            piece.citations
            for message in formats.get(name).load_messages(
                formats.get(name).dump_messages([Message.user("q"), cited(PAGE)])
            )
            for piece in message.content
            if isinstance(piece, TextPart)
        )
        told = [loss for loss in found.losses if loss.which == "citations"]
        assert kept or told, name


def test_citations_are_stored_and_no_digest_counts_them() -> None:
    message, bare = cited(PAGE), cited()
    assert load_messages(dump_messages([message])) == [message]
    assert load_messages(dump_messages([bare])) == [bare]
    assert chain_neutral_digests([message]) == chain_neutral_digests([bare])
    assert compute_prefix([message], "anthropic") == compute_prefix([bare], "anthropic")


def test_a_hostile_list_of_sources_is_bounded() -> None:
    entries = [{"type": "url_citation", "url": f"u{n}", "start_index": n, "end_index": n + 1} for n in range(3 * MOST)]  # fmt: skip
    block = {"type": "output_text", "text": "x" * 9000, "annotations": entries}
    item = {"type": "message", "role": "assistant", "id": "m", "content": [block]}
    events = wires.get("openai_responses").load_response(
        {"object": "response", "status": "completed", "output": [item]}
    )
    assert len(sources(events)) == MOST
    odd: list[Any] = [
        None,
        1,
        "x",
        {},
        {"type": "url_citation"},
        {"type": "url_citation", "url": 3},
    ]
    for wire, field in (("openai_responses", "annotations"), ("anthropic", "citations")):
        text = {"type": "output_text" if wire[0] == "o" else "text", "text": "a", field: odd}
        message = {"type": "message", "role": "assistant", "content": [text]}
        wires.get(wire).load_response(
            {"object": "response", "output": [message]} if wire[0] == "o" else message
        )


_SPANS = st.tuples(st.integers(-2, 40), st.integers(-2, 40)) | st.just((None, None))


def make_citation(
    url: str | None, title: str | None, span: tuple[int | None, int | None]
) -> Citation:
    return Citation(url, title, *span)


_CITATIONS = st.builds(
    make_citation,
    st.sampled_from(["https://a.test", "https://b.test/ü", None]),
    st.sampled_from(["A", None]),
    _SPANS,
)


@given(
    st.sampled_from(wires.names("model")),
    st.lists(st.tuples(st.text("aü🎓 ", min_size=1, max_size=9), st.lists(_CITATIONS, max_size=3))),
)
def test_any_citations_are_written_alike_whole_and_streamed(
    wire: str, texts: list[tuple[str, list[Citation]]]
) -> None:
    message = Message.model(
        *[TextPart(text, None, tuple(citations)) for text, citations in texts]
    ).replace(id="m")
    whole, stream = answer(wire, message), streamed(wire, message)
    there, then = sources(whole), sources(stream)
    assert {(one.url, one.title) for one in there} == {(one.url, one.title) for one in then}
    for citation, text in [
        (citation, piece.text)
        for event in (*whole, *stream)
        if isinstance(event, PartFinished) and isinstance(piece := event.part, TextPart)
        for citation in piece.citations
    ]:
        assert citation.start is None or 0 <= citation.start < (citation.end or 0) <= len(text)
        assert find_words(citation, text) in text


def _recordings() -> list[tuple[str, Path]]:
    folders = [folder for folder in FOLDER.glob("*") if WIRES.get(folder.name) in READING]
    return [
        (WIRES[folder.name], path) for folder in folders for path in sorted(folder.glob("*.json"))
    ]


def test_recorded_sources_reach_the_clients_of_all_other_apis() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"no recordings at {FOLDER}")
    read = dict.fromkeys(READING, 0)
    for wire, path in _recordings():
        data = path.read_bytes()
        if not any(word in data for word in (b"citation", b"grounding", b"search_results")):
            continue
        exchange = Exchange(path)
        if exchange.status != 200 or not exchange.body:
            continue
        events = wires.get(wire).load_response(exchange.body)
        messages = [message for message in fold(events) if message.text]
        pages = {citation.url for citation in sources(events) if citation.url}
        if len(messages) != 1 or not pages:
            continue
        read[wire] += 1
        calls = [part for part in messages[0].content if isinstance(part, ToolCallPart)]
        cut = wires.get(wire).decoder()
        pieces = [cut.feed(exchange.body[at : at + 97]) for at in range(0, len(exchange.body), 97)]
        in_pieces = [event for piece in [*pieces, cut.close()] for event in piece]
        if exchange.framing != "json":
            assert fold(in_pieces) == fold(events), path.name
        for to in READING:
            if to == wire:
                continue
            told = sources(wires.get(to).load_response(wires.get(to).dump_response(events)))
            assert {citation.url for citation in told if citation.url} == pages, (path.name, to)
            if to == "openai_chat" and any(call.run_by == "provider" for call in calls):
                # Its stream tells sources last, when the text before a tool has ended.
                continue
            stream = wires.get(to).encoder()
            sent = b"".join(map(stream.feed, compact(events))) + stream.close()
            decoder = wires.get(to).decoder()
            there = sources([*decoder.feed(sent), *decoder.close()])
            assert {citation.url for citation in there if citation.url} == pages, (path.name, to)
    assert all(read[wire] for wire in ("openai_chat", "openai_responses", "anthropic", "google"))
