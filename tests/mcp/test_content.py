"""Content of the protocol as parts, and results of calls as what tools return, value by value."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from mcp import types

from dragoman import DataPart, LinkPart, TextPart, Tool
from dragoman.errors import ToolError
from dragoman.mcp import ToolHints, hints
from dragoman.mcp.answers import Answers
from dragoman.mcp.content import load_parts, load_resource, load_result
from dragoman.tools import AskUser
from support.answered import answered

LOUD = types.Annotations(priority=1.0)


def link(uri: str, mime_type: str | None = None, **fields: Any) -> types.ResourceLink:
    return types.ResourceLink(name=fields.pop("name", "n"), uri=uri, mime_type=mime_type, **fields)


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (text(""), None),
        (text("a"), TextPart("a")),
        (
            types.TextContent(text="a", annotations=LOUD),
            TextPart("a", {"mcp": {"annotations": {"priority": 1.0}}}),
        ),
        (types.TextContent(text="a", _meta={"k": 1}), TextPart("a", {"mcp": {"_meta": {"k": 1}}})),
        (
            types.ImageContent(
                data=b64encode(b"x").decode(), mime_type="image/png", annotations=LOUD
            ),
            DataPart(b"x", "image/png", native={"mcp": {"annotations": {"priority": 1.0}}}),
        ),
        (link("https://a.b/c.png", "image/png"), LinkPart("https://a.b/c.png", "image/png", "n")),
        (link("http://a.b/c.mp4", "video/mp4"), LinkPart("http://a.b/c.mp4", "video/mp4", "n")),
        (link("http://a.b/c.wav", "audio/wav", name=""), LinkPart("http://a.b/c.wav", "audio/wav")),
        (
            link(
                "https://a.b/c.pdf",
                "application/pdf",
                title="T",
                description="D",
                size=3,
                annotations=LOUD,
            ),
            LinkPart(
                "https://a.b/c.pdf",
                "application/pdf",
                "n",
                {
                    "mcp": {
                        "title": "T",
                        "description": "D",
                        "size": 3,
                        "annotations": {"priority": 1.0},
                    }
                },
            ),
        ),
    ],
)
def test_blocks_are_parts(block: Any, part: Any):
    assert load_parts([block]) == (() if part is None else (part,))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (link("https://a.b/c.html", "text/html"), "https://a.b/c.html (n, text/html)"),
        (link("https://a.b/c"), "https://a.b/c (n)"),
        (link("file:///etc/x.png", "image/png"), "file:///etc/x.png (n, image/png)"),
        (link("memo://1", title="T", description="D"), "memo://1 (T, D)"),
        (link("memo://1", name=""), "memo://1"),
    ],
)
def test_what_only_its_server_can_read_is_named_in_a_text(block: types.ResourceLink, words: str):
    (part,) = load_parts([block])
    assert isinstance(part, TextPart)
    assert part.text == words
    assert part.native is not None
    assert part.native["mcp"]["type"] == "resource_link"
    assert part.native["mcp"]["uri"] == block.uri


def test_resources_are_texts_or_files():
    assert load_resource(types.TextResourceContents(uri="memo://1", text="a")) == TextPart(
        "a", {"mcp": {"uri": "memo://1"}}
    )
    assert load_resource(types.TextResourceContents(uri="memo://1", text="")) is None
    blob = types.BlobResourceContents(
        uri="x://a/b%20c.bin", blob=b64encode(b"y").decode(), mime_type="a/b"
    )
    assert load_resource(blob) == DataPart(
        b"y", "a/b", "b c.bin", {"mcp": {"uri": "x://a/b%20c.bin"}}
    )
    nameless = load_resource(types.BlobResourceContents(uri="x://", blob=""))
    assert isinstance(nameless, DataPart)
    assert nameless.name is None
    inner = types.TextResourceContents(uri="memo://1", text="a")
    (part,) = load_parts([types.EmbeddedResource(resource=inner, annotations=LOUD)])
    assert part.native == {"mcp": {"uri": "memo://1", "annotations": {"priority": 1.0}}}


@pytest.mark.parametrize("data", ["*", "a"])
def test_data_that_is_none_is_an_error(data: str):
    with pytest.raises(ToolError, match="no base64"):
        load_parts([types.ImageContent(data=data, mime_type="image/png")])


IMAGE = types.ImageContent(data=b64encode(b"x").decode(), mime_type="image/png")


@pytest.mark.parametrize(
    ("content", "structured", "value"),
    [
        ([], None, {}),
        ([text("a")], None, "a"),
        ([text("a"), text("b")], None, (TextPart("a"), TextPart("b"))),
        ([], {"a": 1}, {"a": 1}),
        ([], False, False),
        ([text('{"a": 1}')], {"a": 1}, {"a": 1}),
        ([text("a")], {"result": "a"}, "a"),
        ([text("1")], {"result": 1}, 1),
        ([text("a"), text("2")], {"result": ["a", 2]}, ["a", 2]),
        ([text("a")], {"result": ["a", "b"]}, (TextPart("a"), TextPart('{"result":["a","b"]}'))),
        ([text("a"), text("c")], {"result": ["a", "b"]}, None),
        ([text("b")], {"result": "a"}, (TextPart("b"), TextPart('{"result":"a"}'))),
        ([text("2")], {"result": 1, "more": 2}, (TextPart("2"), TextPart('{"result":1,"more":2}'))),
        ([text("not json")], {"a": 1}, (TextPart("not json"), TextPart('{"a":1}'))),
        ([IMAGE], None, (DataPart(b"x", "image/png"),)),
        ([text("1"), IMAGE], {"result": 1}, (TextPart("1"), DataPart(b"x", "image/png"))),
        ([IMAGE], {"a": 1}, (DataPart(b"x", "image/png"), TextPart('{"a":1}'))),
        ([text("7"), IMAGE], [7], (TextPart("7"), DataPart(b"x", "image/png"))),
    ],
)
def test_structured_content_stands_where_the_texts_say_the_same(
    content: Any, structured: Any, value: Any
):
    made = load_result(
        types.CallToolResult(content=content, structured_content=structured), 1000, "x"
    )
    if value is None:  # nothing is lost
        assert made[:-1] == load_parts(content)
        assert made[-1].text.startswith(("{", "["))
    else:
        assert made == value
        assert type(made) is type(value)


def test_an_error_says_why():
    with pytest.raises(ToolError, match=r"^a$") as failed:
        load_result(types.CallToolResult(content=[text("a")], is_error=True), 1000, "x")
    assert failed.value.content is None
    with pytest.raises(ToolError, match=r"^a\nb$") as failed:
        load_result(types.CallToolResult(content=[text("a"), text("b")], is_error=True), 1000, "x")
    assert failed.value.content == (TextPart("a"), TextPart("b"))
    with pytest.raises(ToolError, match="x failed and does not say why") as failed:
        load_result(types.CallToolResult(content=[], is_error=True), 1000, "x")
    assert failed.value.content is None


@pytest.mark.parametrize(
    ("content", "structured"),
    [
        ([text("a" * 11)], None),
        ([IMAGE] * 11, None),
        ([], "a" * 9),
        ([text("a" * 5), IMAGE], "abc"),
    ],
)
def test_no_more_than_the_bound_is_taken(content: Any, structured: Any):
    with pytest.raises(ToolError, match="11 bytes, and no more than 10"):
        load_result(types.CallToolResult(content=content, structured_content=structured), 10, "x")


def answers(*given: Any, to: AskUser | None = None) -> Answers:
    return Answers("x", answered(*given, to=to))


def asked(answers: Answers, question: types.ElicitRequestParams) -> AskUser:
    with pytest.raises(AskUser) as found:
        answers.take_answer(question)
    return found.value


def test_an_answer_goes_to_the_very_question_that_was_read():
    form = types.ElicitRequestFormParams(message="m" * 5000, requested_schema={"type": "object"})
    page = types.ElicitRequestURLParams(message="p" * 5000, url="https://a.b")
    first = asked(answers(), form)
    assert (len(first.message), first.schema) == (4000, {"type": "object"})
    second = asked(answers({"n": 1}, to=first), page)
    assert (len(second.message), second.schema) == (4000, {"type": "boolean"})
    assert (second.metadata["url"], second.metadata["server"]) == ("https://a.b", "x")
    known = answers({"n": 1}, False, to=second)
    assert known.take_answer(page) == types.ElicitResult(action="decline")
    assert known.take_answer(form) == types.ElicitResult(action="accept", content={"n": 1})
    asked(known, form)  # an answer is given once
    for other in (
        types.ElicitRequestFormParams(message="m", requested_schema={"type": "object"}),
        types.ElicitRequestFormParams(
            message="m" * 5000, requested_schema={"type": "object", "title": "T"}
        ),
    ):
        asked(answers({"n": 1}, to=first), other)
    asked(
        answers(True, to=second),
        types.ElicitRequestURLParams(message="p" * 5000, url="https://evil.example"),
    )


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "app://x", ""])
def test_nobody_is_sent_to_what_is_no_web_page(url: str):
    with pytest.raises(ToolError, match="not a web page"):
        answers().take_answer(types.ElicitRequestURLParams(message="", url=url))


def test_hints_that_are_none_are_not_taken():
    assert hints(Tool("t", native={"mcp": {"annotations": {"readOnlyHint": "yes"}}})) == ToolHints()
    assert hints(Tool("t", native={"anthropic": {}})) == ToolHints()
