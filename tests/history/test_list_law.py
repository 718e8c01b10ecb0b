"""The law of lists: a list, written in any format and added to a new list, says the same, but for
what the format cannot hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from dragoman import formats
from dragoman.history import MessageList
from dragoman.message import Message, Role
from support.conversations import conversations
from support.law import facts, hop, missing


def said(messages: Sequence[Message]) -> tuple[list[Any], set[str]]:
    """What is said, in order; the texts of system messages, of which a list has each once."""
    talk = [message for message in messages if message.role is not Role.SYSTEM]
    return [fact.says for fact in facts(talk)], {
        message.text for message in messages if message.role is Role.SYSTEM
    }


@pytest.mark.parametrize("name", formats.names())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=conversations())
def test_what_a_list_writes_a_new_list_says(name: str, messages: list[Message]) -> None:
    first = MessageList(messages)
    assert said(first) == said(messages)
    payload = json.loads(msgspec.json.encode(first.export(name)))
    again = MessageList().add(payload, format=name)
    assert said(again) == said(formats.get(name).load_messages(payload))
    once, there = tuple(again), hop(tuple(first), name)
    if len(once) == len(there.after):  # no system message came twice
        assert not missing(there.before, once, there.losses)
    assert said(MessageList().add(payload, "memory", name)) == said(again)
