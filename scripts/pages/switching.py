"""`docs/switching.md`: what is lost when a conversation goes on with another provider, found by
trying it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman import wires
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    LinkPart,
    Message,
    Native,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.providers.provider import Provider
from dragoman.providers.registry import Registry

__all__ = ["NAMES", "PROBES", "lost", "markdown"]

NAMES: Mapping[str, str] = {
    "openai_chat": "openai",
    "openai_responses": "openai-responses",
    **{name: name for name in ("anthropic", "google", "mistral", "ollama", "cohere")},
    "google_interactions": "google-interactions",
    "bedrock_converse": "bedrock",
}
"""Wire → the provider whose own API it is."""
_PNG, _URL = b"\x89PNG\r\n\x1a\n", "https://host.test/a"


def _result(result: Any, *, is_error: bool = False) -> tuple[Message, ...]:
    answer = ToolResultPart("c1", "look", result, is_error)
    return Message.user("?"), Message.model(ToolCallPart("c1", "look", {})), Message.user(answer)


def _thinking(native: Native = None) -> tuple[Message, ...]:
    return Message.user("?"), Message.model(ThinkingPart("Hm.", native), "So."), Message.user("?")


PROBES: Mapping[str, tuple[Message, ...]] = {
    "text": (
        Message.system("Be brief."),
        Message.user("?"),
        Message.model("So."),
        Message.user("?"),
    ),
    "tool calls": (
        Message.user("?"),
        Message.model(ToolCallPart("c1", "look", {"at": 1}), ToolCallPart("c2", "look", {"at": 2})),
        Message.user(ToolResultPart("c1", "look", "a"), ToolResultPart("c2", "look", {"b": 1})),
    ),
    "failed tools": _result("It is dark.", is_error=True),
    "images in results": _result((TextPart("a"), DataPart(_PNG, "image/png"))),
    "text after calls": (
        Message.user("?"),
        Message.model(ToolCallPart("c1", "look", {}), "Wait."),
        Message.user(ToolResultPart("c1", "look", "a")),
    ),
    "several texts": (Message.user("a", "b"),),
    "later system messages": (
        Message.user("?"),
        Message.model("So."),
        Message.system("Now."),
        Message.user("?"),
    ),
    "images": (Message.user(DataPart(_PNG, "image/png")),),
    "names of images": (Message.user(DataPart(_PNG, "image/png", "a.png")),),
    "images by URL": (Message.user(LinkPart(_URL, "image/png")),),
    "PDF": (Message.user(DataPart(b"%PDF", "application/pdf", "a.pdf")),),
    "PDF by URL": (Message.user(LinkPart(_URL, "application/pdf")),),
    "audio": (Message.user(DataPart(b"RIFF", "audio/wav")),),
    "video": (Message.user(DataPart(b"ftyp", "video/mp4")),),
    "text files": (Message.user(DataPart(b"so", "text/plain", "a.txt")),),
}
"""What a conversation may hold → one that holds it."""
_OWN: Mapping[str, Mapping[str, tuple[Message, ...]]] = {
    "openai_chat": {"thinking": _thinking()},
    "openai_responses": {
        "signed thinking": _thinking({"openai_responses": {"id": "rs_1", "encrypted_content": "x"}}),
        "server tools": (
            Message.user("?"),
            Message.model(
                ToolCallPart("ws_1", "web_search", run_by="provider", native={"openai_responses": {"type": "web_search_call"}}),
                "So.",
            ),
        ),
    },
    "anthropic": {
        "signed thinking": _thinking({"anthropic": {"signature": "x"}}),
        "server tools": (
            Message.user("?"),
            Message.model(
                ToolCallPart("s1", "web_search", run_by="provider", native={"anthropic": {"type": "server_tool_use"}}),
                ToolResultPart("s1", "web_search", [], run_by="provider", native={"anthropic": {"type": "web_search_tool_result"}}),
                "So.",
            ),
        ),
    },
    "google": {
        "signed thinking": _thinking({"google": {"thoughtSignature": "eA=="}}),
        "server tools": (
            Message.user("?"),
            Message.model(
                ToolCallPart("s1", "codeExecution", {"code": "1"}, run_by="provider", native={"google": {"id": None}}),
                ToolResultPart("s1", "codeExecution", {"output": "1"}, run_by="provider", native={"google": {"id": None}}),
                "So.",
            ),
        ),
    },
    "mistral": {"thinking": _thinking()},
    "ollama": {"thinking": _thinking()},
    "cohere": {"thinking": _thinking()},
    "google_interactions": {
        "signed thinking": _thinking({"google_interactions": {"signature": "x"}}),
        "server tools": (
            Message.user("?"),
            Message.model(
                ToolCallPart("s1", "google_search", {"queries": ["x"]}, run_by="provider", native={"google_interactions": {"search_type": "web_search"}}),
                ToolResultPart("s1", "google_search", [], run_by="provider", native={"google_interactions": {"signature": "x"}}),
                "So.",
            ),
        ),
    },
    "bedrock_converse": {
        "signed thinking": _thinking({"bedrock_converse": {"signature": "x"}}),
        "server tools": (
            Message.user("?"),
            Message.model(
                ToolCallPart("s1", "nova_grounding", run_by="provider", native={"bedrock_converse": {"type": "server_tool_use"}}),
                ToolResultPart("s1", "nova_grounding", None, run_by="provider", native={"bedrock_converse": {"type": "nova_grounding_result"}}),
                "So.",
            ),
        ),
    },
}  # fmt: skip
"""Wire → what its own models say that may be nobody else's to read."""


def lost(history: Sequence[Message], first: str, then: str) -> list[Loss]:
    """What is lost of a conversation that the provider of one wire answered, sent to the provider
    of another."""
    origin, target = _origin(first), _origin(then)
    answered = [
        message.replace(origin=origin) if message.role == "model" else message
        for message in history
    ]
    losses: list[Loss] = []
    wires.get(then).dump_messages(
        answered, target=target, quirks=_provider(then).quirks, losses=losses
    )
    return losses


_INTRODUCTION = """\
# Switch providers

Pass `model=` to any send to continue a conversation with another model:

```python
import asyncio

from dragoman import Agent, Chat, Message


async def main() -> list[Message]:
    async with Agent("local") as agent:
        chat = Chat(agent)
        await chat.send("My name is Ada.")
        await chat.send("What is my name?", model="anthropic:claude-sonnet-4-6")
        return chat.history


history = asyncio.run(main())
```

`base_url=`, `api_key=` and `headers=` of the agent apply only to its own provider. To continue at another address, pass a
[record](providers.md) with its own `base_url` as `model=`, or pass the history to a second agent:

```python
other = Agent("openai-compatible:qwen", base_url="http://localhost:8000/v1")
chat = Chat(other, history=history)  # or other.send(prompt, history=history)
```

dragoman leaves out what the other provider cannot hold, moves it, or replaces it with a text that names it. A wire reports each loss and its
reason before you send:

```python
from dragoman import Origin, ThinkingPart, wires
from dragoman.loss import Loss

said = Message.model(ThinkingPart("A capital."), "Oslo.").replace(origin=Origin("mistral"))
losses: list[Loss] = []
target = Origin("anthropic", model="claude-sonnet-4-6")
wires.get("anthropic").dump_messages([Message.user("Where?"), said], target=target, losses=losses)
assert (losses[0].message, losses[0].part, losses[0].what) == (1, 0, "thinking")
print(losses[0].why)  # it comes from mistral, which anthropic does not read
```

`Loss.message` is the index of the message that you passed, from 0; `None` means the whole request, for example a setting. `Loss.part` is the
index in its `content`; `None` means the whole message. `target` is the reader. Without it each message is written as for its own origin, with
thinking and signatures that another provider would refuse.
"""


def markdown() -> str:
    """`docs/switching.md`."""
    held = {
        wire: {
            **{kind: probe for kind, probe in PROBES.items() if not lost(probe, wire, wire)},
            **_OWN[wire],
        }
        for wire in NAMES
    }
    return "\n".join(
        [
            _INTRODUCTION,
            "`make pages` generates this page from what the wires report, and a test compares them. Other tests check the wires: everything missing is",
            "reported, and everything reported is missing.",
            "",
            "The names are those of wires, each with its own provider. Signed content is sent again, in its place, when the conversation returns to the",
            "provider that signed it and nothing before it has changed. A file id means something only to the provider that holds the file.",
            "",
            "Fields of a single format (an image's `detail`, a speaker's `name`) stay in `native`. They are there when the conversation returns,",
            "are sent to no other provider, and are not counted here; `plan` lists them as minor. A tool name that the target refuses is adapted, and calls",
            "come back under the tool's own name.",
            "",
            "## Losses from one provider (rows) to another (columns)",
            "",
            "The table counts only what the first provider's format can hold.",
            "",
            _line(("from \\ to", *NAMES)),
            _line(["---"] * (len(NAMES) + 1)),
            *(
                _line((f"**{first}**", *(_cell(held[first], first, then) for then in NAMES)))
                for first in NAMES
            ),
            "",
            "## Why",
            *(line for wire in NAMES for line in _reasons(wire)),
            "",
        ]
    )


def _cell(held: Mapping[str, Sequence[Message]], first: str, then: str) -> str:
    if first == then:
        return ""
    return ", ".join(kind for kind, probe in held.items() if lost(probe, first, then)) or "nothing"


def _reasons(wire: str) -> Iterator[str]:
    """What a wire's target does not hold, and why, for conversations from elsewhere."""
    yield from ("", f"### {wire}", "")
    other = next(name for name in NAMES if name != wire)
    for kind, probe in PROBES.items():
        if losses := lost(probe, other, wire):
            yield f"- {kind}: {'; '.join(dict.fromkeys(loss.why for loss in losses))}"
    yield "- thinking and tools that another provider ran: the target reads only its own"


def _provider(wire: str) -> Provider:
    return next(
        each for each in Registry(plug_ins=lambda: ()).providers() if each.name == NAMES[wire]
    )


def _origin(wire: str) -> Origin:
    provider = _provider(wire)
    return Origin(provider.name, None, provider.chat_model)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
