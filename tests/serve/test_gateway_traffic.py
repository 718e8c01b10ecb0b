"""Recorded answers of providers through a gateway to the clients of all wires."""

from __future__ import annotations

import pytest

from dragoman import Message
from dragoman.request import ModelRequest
from dragoman.testing import Answer
from support.gateway import MODEL, answered, gated
from support.gateway_cases import shown
from support.switching import FOLDERS, PROVIDERS
from support.traffic import Exchange, exchanges

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EVERY = 17
_NO_CHAT = (b'{"embedding', b'{"object":"list"')


def answers(wire: str) -> list[Exchange]:
    """Some of the recorded answers to chats."""
    found = [each for each in exchanges(*FOLDERS[wire]) if each.status == 200 and each.body]
    return [each for each in found if not each.body.lstrip().startswith(_NO_CHAT)][::EVERY]


@pytest.mark.parametrize("upstream", [name for name in PROVIDERS if FOLDERS[name]])
async def test_what_was_recorded_is_said_to_the_clients_of_all_wires(upstream: str) -> None:
    recorded = answers(upstream)
    assert recorded
    for exchange in recorded:
        asked = ModelRequest(MODEL, (Message.user("Hi."),), stream=exchange.framing != "json")
        for client in PROVIDERS:
            there = gated(client, upstream, lambda _, body=exchange.body: Answer(body=body))
            seen = shown(await answered(there.client, asked))
            was = shown(await answered(there.direct, asked.replace(model="")))
            if was["failed"] and not asked.stream:
                assert seen["failed"], (exchange.id, client)
            else:
                assert seen == was, (exchange.id, client)
