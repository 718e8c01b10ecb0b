"""What each target must keep, lose, or lose as a minor thing, piece by piece. The table is written
by hand from what the APIs and libraries document, and never from the wires: a plan that lists
everything fails, and so does one that lists nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.history import plan
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from support.versions import VERSIONS

PNG, URL = b"\x89PNG\r\n\x1a\n", "https://host.test/a"
ANTHROPIC = Origin("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-6")
GOOGLE = Origin(
    "google", "https://generativelanguage.googleapis.com/v1beta", "gemini-3-pro-preview"
)
ELSEWHERE = Origin("elsewhere", "https://elsewhere.test", "m")
LOOK = ToolCallPart("c1", "look", {"at": "home"})


def said(*content: Any, origin: Origin = ELSEWHERE) -> list[Message]:
    return [Message.user("?"), Message.model(*content).replace(origin=origin), Message.user("So?")]


def called(
    call: ToolCallPart, *more: Any, result: Any = "a cat", origin: Origin = ELSEWHERE, **how: Any
) -> list[Message]:
    answer = ToolResultPart(call.id, call.name, result, **how)
    return [
        Message.user("?"),
        Message.model(call, *more).replace(origin=origin),
        Message.user(answer),
    ]


SEARCH = (
    ToolCallPart(
        "s1",
        "web_search",
        {"q": "a"},
        run_by="provider",
        native={"anthropic": {"type": "server_tool_use"}},
    ),
    ToolResultPart(
        "s1",
        "web_search",
        [],
        run_by="provider",
        native={"anthropic": {"type": "web_search_tool_result"}},
    ),
)
CITED = [{"type": "char_location", "cited_text": "A"}]
PIECES: dict[str, list[Message]] = {
    "text": [Message.system("Be brief."), *said("So.")],
    "calls in parallel": [
        Message.user("?"),
        Message.model(LOOK, ToolCallPart("c2", "look", {})),
        Message.user(ToolResultPart("c1", "look", "a"), ToolResultPart("c2", "look", {"b": 1})),
    ],
    "late system": [*said("So."), Message.system("Now."), Message.user("?")],
    "failed tool": called(LOOK, result="It is dark.", is_error=True),
    "image": [Message.user(DataPart(PNG, "image/png"))],
    "image by URL": [Message.user(LinkPart(URL, "image/png"))],
    "named image": [Message.user(DataPart(PNG, "image/png", "a.png"))],
    "PDF": [Message.user(DataPart(b"%PDF", "application/pdf", "a.pdf"))],
    "PDF by URL": [Message.user(LinkPart(URL, "application/pdf"))],
    "audio": [Message.user(DataPart(b"RIFF", "audio/wav"))],
    "video": [Message.user(DataPart(b"ftyp", "video/mp4"))],
    "text file": [Message.user(DataPart(b"so", "text/plain"))],
    "others' file": [Message.user(FilePart("f1", "application/pdf", native={"elsewhere": {}}))],
    "image in result": called(LOOK, result=(TextPart("a"), DataPart(PNG, "image/png"))),
    "text after call": called(LOOK, "Wait."),
    "two texts": [Message.user("a", "b")],
    "thinking": said(ThinkingPart("Hm."), "So."),
    "signed thinking": said(ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}}), "So.", origin=ANTHROPIC),
    "server tool": said(*SEARCH, "So.", origin=ANTHROPIC),
    "provider's block": said(ProviderPart("compaction", {"anthropic": {"type": "compaction", "content": "a"}}), "So.", origin=ANTHROPIC),
    "cut call": called(ToolCallPart("c1", "look", raw='{"at', state="cut")),
    "image's detail": [Message.user(DataPart(PNG, "image/png", native={"openai_chat": {"image_url": {"detail": "low"}}}))],
    "speaker's name": [Message.user("a").replace(native={"openai_chat": {"name": "ann"}})],
    "citations": said(TextPart("A.", {"anthropic": {"citations": CITED}}), origin=ANTHROPIC),
    "signed call": called(ToolCallPart("c1", "look", {}, native={"google": {"thoughtSignature": "c2ln"}}), origin=GOOGLE),
    "cache mark": [Message.user(TextPart("a", {"anthropic": {"cache_control": {"type": "ephemeral"}}}))],
    "empty answer": said(),
    "model first": [Message.model("Hello."), Message.user("?")],
    "step mark": said(MarkPart("step", {"elsewhere": {"n": 1}}), "So."),
}  # fmt: skip

MODELS = {
    "chat": "openai:gpt-4o",
    "resp": "openai-responses:gpt-5",
    "anth": "anthropic:claude-sonnet-4-6",
    "goog": "google:gemini-3-pro-preview",
    "mist": "mistral:mistral-large-latest",
    "olla": "ollama:llama3.2",
    "cohe": "cohere:command-a-03-2025",
}
# `.`: all is kept. In small letters: minor.
OF_MODELS = """
                  chat  resp  anth  goog  mist      olla   cohe
text              .     .     .     .     .         .      .
calls in parallel .     .     .     .     .         .      .
late system       .     .     SYS   SYS   SYS       .      .
failed tool       ERR   ERR   .     .     ERR       ERR    ERR
image             .     .     .     .     .         .      .
image by URL      .     .     .     .     .         LINK   .
named image       name  name  name  .     name      name   name
PDF               .     .     .     .     .         DATA   DATA
PDF by URL        LINK  .     .     .     .         LINK   LINK
audio             .     DATA  DATA  .     .         DATA   DATA
video             DATA  DATA  DATA  .     DATA      DATA   DATA
text file         .     .     .     .     .         .      .
others' file      FILE  FILE  FILE  FILE  FILE      FILE   FILE
image in result   MEDIA .     .     .     MEDIA+ord ord    MEDIA
text after call   ord   .     ord   .     ord       ord    ord
two texts         .     .     .     .     .         texts  .
thinking          THINK THINK THINK THINK THINK     THINK  THINK
signed thinking   THINK THINK .     THINK THINK     THINK  THINK
server tool       TOOLS TOOLS .     TOOLS TOOLS     TOOLS  TOOLS
provider's block  BLOCK BLOCK .     BLOCK BLOCK     BLOCK  BLOCK
cut call          ARGS  ARGS  ARGS  ARGS  ARGS      ARGS   ARGS
image's detail    .     field field field field     field  field
speaker's name    .     field field field field     field  field
citations         field field .     field field     field  field
signed call       SIGN  SIGN  SIGN  .     SIGN      SIGN   SIGN
cache mark        .     .     .     .     .         .      .
empty answer      .     GONE  GONE  GONE  GONE      .      GONE
model first       .     .     BEGIN BEGIN .         .      .
step mark         .     .     .     .     .         .      .
"""
FORMATS = {
    name[:4]: name for name in ("dragoman", "langchain", "openai_agents", "pydantic_ai", "sharegpt")
}
AI_SDK = {
    "ui4": "ai_sdk_ui v4", "ui5": "ai_sdk_ui v5", "ui7": "ai_sdk_ui v7", "mod4": "ai_sdk_model v4", "mod5": "ai_sdk_model v5",
    "v1": "mastra_v1", "v2": "mastra_v2",
}  # fmt: skip
# What the family has no field for stands under our key in `providerMetadata` or `providerOptions`,
# so that it comes back.
OF_AI_SDK = """
                  ui4   ui5   ui7   mod4  mod5  v1    v2
text              .     .     .     .     .     .     .
calls in parallel .     .     .     .     .     .     .
late system       .     .     .     .     .     .     .
failed tool       .     .     .     .     .     .     .
image             .     .     .     .     .     .     .
image by URL      .     .     .     .     .     .     .
named image       .     .     .     .     .     .     .
PDF               .     .     .     .     .     .     .
PDF by URL        .     .     .     .     .     .     .
audio             .     .     .     .     .     .     .
video             .     .     .     .     .     .     .
text file         .     .     .     .     .     .     .
others' file      .     .     .     .     .     .     .
image in result   .     .     .     .     .     .     .
text after call   .     .     .     .     .     .     .
two texts         .     .     .     .     .     .     .
thinking          .     .     .     .     .     .     .
signed thinking   .     .     .     .     .     .     .
server tool       .     .     .     .     .     .     .
provider's block  BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK
cut call          .     .     .     .     .     .     .
image's detail    .     .     .     .     .     .     .
speaker's name    .     .     .     .     .     .     .
citations         .     .     .     .     .     .     .
signed call       .     .     .     .     .     .     .
cache mark        .     .     .     .     .     .     .
empty answer      .     .     .     .     .     .     .
model first       .     .     .     .     .     .     .
step mark         .     .     .     .     .     .     .
"""
OF_FORMATS = """
                  drag  lang  open       pyda  shar
text              .     .     .          .     .
calls in parallel .     .     .          .     .
late system       .     .     .          .     .
failed tool       .     .     ERR        .     ERR
image             .     .     .          .     DATA
image by URL      .     .     .          .     LINK
named image       .     .     name       name  DATA
PDF               .     .     .          name  DATA
PDF by URL        .     .     .          .     LINK
audio             .     .     DATA       .     DATA
video             .     .     DATA       .     DATA
text file         .     .     .          .     .
others' file      .     .     FILE       FILE  FILE
image in result   .     .     .          .     DATA+texts
text after call   .     .     .          .     .
two texts         .     .     .          .     texts
thinking          .     .     .          .     .
signed thinking   .     .     .          .     SIGN
server tool       .     .     TOOLS      .     TOOLS
provider's block  .     .     BLOCK      .     BLOCK
cut call          .     .     ARGS       .     CALL
image's detail    .     .     field      field DATA
speaker's name    .     .     field      field field
citations         .     .     field      field field
signed call       .     .     .          .     SIGN
cache mark        .     .     .          .     .
empty answer      .     .     GONE       .     .
model first       .     .     .          .     .
step mark         .     .     .          .     .
"""
WORDS: dict[str, set[tuple[str, bool]]] = {
    ".": set(),
    "SYS": {("system message", False)},
    "ERR": {("is_error", False)},
    "LINK": {("link", False)},
    "DATA": {("data", False)},
    "FILE": {("file", False)},
    "MEDIA": {("media", False)},
    "THINK": {("thinking", False)},
    "TOOLS": {("tool call", False), ("tool result", False)},
    "CALL": {("tool call", False)},
    "BLOCK": {("provider", False)},
    "ARGS": {("arguments", False)},
    "SIGN": {("signature", False)},
    "GONE": {("message", False)},
    "BEGIN": {("beginning", False)},
    "name": {("name", True)},
    "ord": {("order", True)},
    "texts": {("texts", True)},
    "field": {("field", True)},
}


def cells(table: str, targets: dict[str, str]) -> dict[tuple[str, str], set[tuple[str, bool]]]:
    """(piece, target) → what is lost, and whether that is minor."""
    head, *rows = table.strip("\n").splitlines()
    columns = head.split()
    found = {}
    for row in rows:
        values = row[18:].split()
        for column, value in zip(columns, values, strict=True):
            found[row[:18].strip(), targets[column]] = set().union(
                *(WORDS[word] for word in value.split("+"))
            )
    return found


TABLE = cells(OF_MODELS, MODELS) | cells(OF_FORMATS, FORMATS) | cells(OF_AI_SDK, AI_SDK)
TARGETS = [*MODELS.values(), *FORMATS.values(), *AI_SDK.values()]


@pytest.mark.parametrize("target", TARGETS)
def test_each_piece_is_kept_or_lost_as_the_table_has_it(target: str) -> None:
    for name, messages in PIECES.items():
        found = plan(messages, VERSIONS.get(target, target))
        assert {(str(loss.what), loss.is_minor) for loss in found.losses} == TABLE[name, target], (
            name
        )
        assert found.repairs == ()
        assert found.ok is all(minor for _, minor in TABLE[name, target])


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_lost_is_named_where_it_stands(target: str) -> None:
    """The pieces of the table are spread over one conversation, with others before them."""
    for name, messages in PIECES.items():
        if name in (
            "model first",
            "text",
            "late system",
        ):  # what these are depends on what stands before them
            continue
        alone = plan(messages, VERSIONS.get(target, target))
        before = [Message.user("Before."), Message.model("Yes.")]
        moved = plan([*before, *messages], VERSIONS.get(target, target))
        shifted = [
            (loss.message + 2 if loss.message is not None else None, loss.part, loss.what)
            for loss in alone.losses
        ]
        assert [(loss.message, loss.part, loss.what) for loss in moved.losses] == shifted, name


@pytest.mark.parametrize("target", AI_SDK.values())
def test_words_before_results_and_results_of_no_call_in_the_ai_sdks_family(target: str) -> None:
    """In a UI's turn a result is a part of its call; rows and model messages have results of their
    own."""
    words = [*called(LOOK)[:2], Message.user("Wait.", ToolResultPart("c1", "look", "a cat"))]
    moved = plan(words, VERSIONS.get(target, target))
    assert [(loss.message, loss.part, loss.what) for loss in (*moved.losses, *moved.repairs)][
        :1
    ] == [(2, 1, "order")]
    assert moved.ok
    alone = plan(
        [Message.user("?"), Message.user(ToolResultPart("c9", "look", 1))],
        VERSIONS.get(target, target),
    )
    lost = [(loss.message, loss.part, loss.what) for loss in (*alone.losses, *alone.repairs)]
    assert lost == ([] if target == "mastra_v1" else [(1, 0, "tool result")])


def test_the_table_has_every_piece() -> None:
    assert {name for name, _ in TABLE} == set(PIECES)
