"""The programs of the guides on agent protocols: official clients talk to the guide's server, and
print what stands behind them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing import ScriptedModel, call
from support.guides import GUIDE_KEY, Program, built, output, programs, python_blocks, read
from support.ports import free_port
from support.serving import in_a_thread

pytestmark = pytest.mark.service
A2A = programs("a2a.md")
PROTOCOLS = programs("agent-protocols.md")


def names(found: list[Program]) -> list[str]:
    """Ids of tests."""
    return [f"{each.language}{n}" for n, each in enumerate(found)]


async def shopkeeper(request: Any) -> Any:
    """Does what the last words want, with one call, and says what came of it."""
    last = next(
        message for message in reversed(request.messages) if message.text or message.tool_results
    )
    if not last.tool_results:
        return await _begun(last.text)
    [result] = last.tool_results
    if "denied" in str(result.result):
        return "Then not."
    words = {
        "stock": "There are {} of tea.",
        "order": "{}.",
        "deliver": "It is {}.",
        "book": "I {}.",
    }
    return words[result.name].format(result.result)


async def _begun(wish: str) -> Any:
    match wish.split()[0]:
        case "Order":
            return call("order", article="tea", count=2)
        case "Deliver":
            return call("deliver", article="tea")
        case "Book":
            return call("book", flight=wish.removeprefix("Book "))
        case "Count":
            return await asyncio.Event().wait()
        case _:
            return call("stock", article="tea")


CHAT = """
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

class State {
  status = "ready";
  messages = [];
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, message) => { this.messages = this.messages.with(at, message); };
  snapshot = (value) => structuredClone(value);
}
class Chat extends AbstractChat {
  constructor(options) { super({ ...options, state: new State() }); }
}
const useChat = (options) => new Chat(options);
BLOCK
await chat.sendMessage({ text: "Order two bags of tea." });
const asked = chat.lastMessage.parts.find((part) => part.state === "approval-requested");
await chat.addToolApprovalResponse({ id: asked.approval.id, approved: true });
while (chat.status !== "ready" || chat.lastMessage.parts.at(-1).type !== "text") await new Promise((resolve) => setTimeout(resolve, 5));
console.log(asked.type, chat.messages.length, chat.lastMessage.parts.at(-1).text);
"""
"""useChat without a page: the AI SDK's own class behind it."""


def test_the_chat_of_the_guide_orders_what_is_approved(tmp_path: Path) -> None:
    # The first one is the chat, the second is of useObject.
    block, _ = re.findall(r"^```ts\n(.*?)^```$", read("use-chat.md"), re.MULTILINE | re.DOTALL)
    made = built(python_blocks("use-chat.md")[0], ScriptedModel(shopkeeper))
    with in_a_thread(made["app"]) as url:
        code = re.sub(r"([\"`])/ai-sdk/", rf"\1{url}/ai-sdk/", block)
        assert code.count(url) == 2
        printed = output(Program("js", CHAT.replace("BLOCK", code), ""), url, tmp_path)
    assert printed == "tool-order 2 ordered.\n"


@pytest.mark.parametrize("client", A2A, ids=names(A2A))
def test_each_client_of_a2a_prints_what_the_guide_shows(client: Program, tmp_path: Path) -> None:
    port = str(free_port())
    [server] = python_blocks("a2a.md")
    keys = [("webhooks=here", f"auth={GUIDE_KEY!r}")] if "KEY" in client.code else []
    made = built(server, ScriptedModel(shopkeeper), ("9000", port), *keys)
    with in_a_thread(made["app"]) as url:
        printed = output(client, url, tmp_path, ("9000", port))
    assert printed.splitlines() == client.printed.splitlines()


@pytest.mark.parametrize("client", PROTOCOLS, ids=names(PROTOCOLS))
def test_each_client_of_agent_protocols_prints_what_the_guide_shows(
    client: Program, tmp_path: Path
) -> None:
    made = built(python_blocks("agent-protocols.md")[0], ScriptedModel(shopkeeper))
    with in_a_thread(made["app"]) as url:
        printed = output(client, url, tmp_path)
    assert printed.splitlines() == client.printed.splitlines()
