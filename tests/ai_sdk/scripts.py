"""What a scripted model, user and tools do, for `AiSdk("generate", …)`: the library makes
conversations of it."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

__all__ = ["NAMED", "TOOLS", "any_script"]

PNG = base64.b64encode(bytes.fromhex("89504e470d0a1a0a0000000d49484452")).decode()
SIGNED = {"anthropic": {"signature": "c2lnbmVk"}}
SEALED = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "c2VhbGVk"}}
TOOLS: dict[str, Any] = {
    "weather": {"output": {"celsius": 21, "sky": ["clear", None]}},
    "echo": {"echo": True, "output": None},
    "broken": {"error": "no network"},
    "ask": {"client": True},
    "remove": {"approval": True, "output": "gone"},
    "slow": {"preliminary": [{"done": 1}, {"done": 2}], "output": {"done": 3}},
    "web_search": {"client": True},
    "fetch": {"client": True},
    "any_tool": {"dynamic": True, "output": "x", "title": "Any tool"},
}


def text(words: str, **about: Any) -> dict[str, Any]:
    """A text that the model says."""
    return {"kind": "text", "text": words, **about}


def thinks(words: str, **metadata: Any) -> dict[str, Any]:
    """Thinking of the model, signed where `metadata` says by whom."""
    signature = metadata.get("anthropic", {}).get("signature")
    about = {"signature": signature} if signature else {}
    return {
        "kind": "reasoning",
        "text": words,
        **about,
        **({"providerMetadata": metadata} if metadata else {}),
    }


def call(id_: str, name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call of the model."""
    return {"kind": "call", "id": id_, "name": name, "input": arguments}


def user(words: str, **more: Any) -> dict[str, Any]:
    """What the user sends."""
    return {"text": words, **more}


def says(*answers: list[dict[str, Any]], words: str = "Go on.", **more: Any) -> dict[str, Any]:
    """A turn: the user's words and the answers of the model to come."""
    return {"user": user(words), "answers": list(answers), **more}


FILES = {
    "role": "user",
    "parts": [
        {"type": "text", "text": "What is that?"},
        {
            "type": "file",
            "mediaType": "image/png",
            "filename": "a.png",
            "url": f"data:image/png;base64,{PNG}",
        },
        {"type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf"},
    ],
}
ATTACHMENTS = [
    {"name": "a.png", "contentType": "image/png", "url": f"data:image/png;base64,{PNG}"},
    {"contentType": "application/pdf", "url": "https://example.com/a.pdf"},
]

NAMED: dict[str, dict[str, Any]] = {
    "text": {"turns": [says([text("Hello. ☂ \U0001f600")], words="Hi"), says([text("Bye.")], words="Bye")]},
    "parallel": {
        "turns": [
            says(
                [text("I look."), call("c1", "weather", city="Rome"), call("c2", "echo", a=[1, {"b": None}])],
                [call("c3", "weather")],
                [text("21 degrees."), text("Twice.")],
            )
        ]
    },
    "thinking": {
        "turns": [
            says([thinks("Let me see", **SIGNED), call("c1", "weather", city="Rome")], [thinks("So", **SIGNED), text("21.")]),
            says([thinks("", **SEALED), text("Yes.")]),
            says([thinks("Plain."), {"kind": "reasoning", "text": "", "redacted": "cmVk", "providerMetadata": {"anthropic": {"redactedData": "cmVk"}}}, text("No.")]),
        ]
    },
    "errors": {
        "turns": [
            says([call("c1", "broken", x=1), call("c2", "weather")], [text("It failed.")]),
            says([{"kind": "call", "id": "c3", "name": "weather", "raw": '{"ci'}], [text("Again.")]),
            says([call("c4", "no_such_tool", x=1)], [text("Sorry.")]),
        ]
    },
    "client": {
        "turns": [
            says([call("c1", "ask", q="Where?"), call("c2", "weather")], [text("In Rome.")], outputs={"c1": {"output": "Rome"}}),
            says([call("c3", "ask")], [text("Oh.")], outputs={"c3": {"error": "closed"}}),
            says([call("c4", "ask", q="Waits")]),
        ]
    },
    "approvals": {
        "turns": [
            says([text("May I?"), call("c1", "remove", file="a")], [text("Done.")], approvals={"c1": {"approved": True}}),
            says([call("c2", "remove", file="b"), call("c3", "weather")], [text("Kept.")], approvals={"c2": {"approved": False, "reason": "mine"}}),
            says([call("c4", "remove", file="c")], [text("?")], approvals={"c4": {"approved": True, "reason": "fine"}}, stay=True),
        ]
    },
    "waiting": {"turns": [says([call("c1", "remove", file="c"), call("c2", "remove", file="d")])]},
    "files": {
        "turns": [
            {"user": {**FILES, "text": "What is that?", "attachments": ATTACHMENTS, "data": {"own": 1}}, "answers": [[text("A dot.")]]},
            says([{"kind": "file", "mediaType": "image/png", "data": PNG}, text("Drawn.")], words="Draw it."),
        ]
    },
    "sources": {
        "turns": [
            says(
                [
                    text("It is so."),
                    {"kind": "source", "id": "s1", "url": "https://example.com", "title": "Example", "providerMetadata": {"google": {"n": 1}}},
                    {"kind": "source", "id": "s2", "mediaType": "application/pdf", "title": "Paper", "filename": "p.pdf"},
                ]
            )
        ]
    },
    "data": {
        "turns": [
            says(
                [text("Look.")],
                data=[
                    {"part": {"type": "data-weather", "id": "w", "data": {"city": "Rome", "c": None}}},
                    {"part": {"type": "data-note", "data": [1]}, "at": "end"},
                ],
                metadata={"cost": 0.5, "tags": ["a"]},
            ),
            says([call("c1", "weather")], [text("21.")], metadata={}),
        ]
    },
    "dynamic": {"turns": [says([call("c1", "any_tool", a=1), call("c2", "slow", a=1)], [text("Done.")])]},
    "provider": {
        "turns": [
            says(
                [
                    {**call("p1", "web_search", q="Rome"), "providerExecuted": True, "dynamic": True},
                    {"kind": "result", "id": "p1", "name": "web_search", "output": [{"url": "https://example.com"}], "dynamic": True, "providerMetadata": {"openai": {"itemId": "ws_1"}}},
                    text("Found.", providerMetadata={"openai": {"itemId": "msg_1"}}),
                ]
            ),
            says(
                [
                    {**call("p2", "fetch", q="Rome"), "providerExecuted": True, "dynamic": True},
                    {"kind": "result", "id": "p2", "name": "fetch", "output": {"code": "gone"}, "isError": True, "dynamic": True},
                    text("Not found."),
                ]
            ),
        ]
    },
    "signed_calls": {
        "turns": [
            says(
                [{**call("c1", "weather", city="Rome"), "providerMetadata": {"google": {"thoughtSignature": "Z29vZ2xl"}}}],
                [text("21.", providerMetadata={"google": {"thoughtSignature": "Z29vZ2xl"}})],
            )
        ]
    },
    "cut": {"turns": [says([text("I begin"), {"kind": "error", "error": "overloaded"}]), says([text("Again.")])]},
    "cut_call": {"turns": [says([text("I call"), {"kind": "call", "id": "c1", "name": "weather", "input": {"city": "Rome"}, "cut": True}, {"kind": "error", "error": "reset"}])]},
    "length": {"turns": [says([text("And so on and"), {"kind": "finish", "reason": "length"}])]},
    "regenerated": {"turns": [says([text("First.")], regenerate=[[text("Second.")]])]},
    "newest": {
        "turns": [
            says(
                [
                    {"kind": "custom", "custom": "openai.compaction", "providerMetadata": {"openai": {"itemId": "cmp_1"}}},
                    {"kind": "reasoning_file", "mediaType": "image/png", "data": PNG},
                    text("Seen."),
                ]
            )
        ]
    },
}  # fmt: skip
"""What each is about → the script, without version and tools."""


def any_script(seed: int) -> dict[str, Any]:
    """A script of some turns, picked by chance from `seed`."""
    pick = random.Random(seed)
    number = 0

    def id_() -> str:
        nonlocal number
        number += 1
        return f"call_{number}"

    def words() -> str:
        return (
            "".join(
                pick.choice(["a", "b ", "\n", "é", "\U0001f600", '"', "{}", "\u2028"])
                for _ in range(pick.randint(1, 9))
            )
            or "x"
        )

    def metadata() -> dict[str, Any]:
        return pick.choice([{}, SIGNED, SEALED, {"google": {"thoughtSignature": "Z29vZ2xl"}}])

    pieces: list[Callable[[], list[dict[str, Any]]]] = [
        lambda: [text(words(), providerMetadata=metadata())],
        lambda: [thinks(words(), **metadata())],
        lambda: [{"kind": "source", "id": id_(), "url": "https://example.com/" + id_(), "title": words()}],
        lambda: [{"kind": "file", "mediaType": "image/png", "data": PNG}],
        lambda: [call(id_(), pick.choice([name for name in TOOLS if name not in ("web_search", "fetch")]), value=words()) for _ in range(pick.randint(1, 3))],
    ]  # fmt: skip

    def turn() -> dict[str, Any]:
        answers = [[piece for _ in range(pick.randint(0, 4)) for piece in pick.choice(pieces)()] for _ in range(pick.randint(1, 4))]  # fmt: skip
        called = [piece["id"] for answer in answers for piece in answer if piece["kind"] == "call"]
        return {
            "user": pick.choice([user(words()), {**FILES, "text": "What?", "attachments": ATTACHMENTS}]),
            "answers": [answer or [text(words())] for answer in answers],
            "outputs": {id_: pick.choice([{"output": [words()]}, {"error": words()}]) for id_ in called if pick.random() < 0.8},
            "approvals": {id_: {"approved": pick.random() < 0.5, "reason": words()} for id_ in called if pick.random() < 0.8},
            "data": [{"part": {"type": "data-x", "data": {"v": words()}}}] if pick.random() < 0.3 else [],
            "metadata": {"m": words()} if pick.random() < 0.3 else None,
        }  # fmt: skip

    return {"turns": [turn() for _ in range(pick.randint(1, 4))]}
