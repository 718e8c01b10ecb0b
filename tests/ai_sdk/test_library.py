"""What the library writes is what its users have: every kind of part, in every state."""

from __future__ import annotations

from typing import Any

import pytest
from ai_sdk.corpus import written

from support.ai_sdk import VERSIONS, AiSdk

pytestmark = pytest.mark.service
STATES = {"input-streaming", "input-available", "output-available", "output-error"}
EXPECTED = {
    4: {"text", "step-start", "reasoning", "file", "source", "tool-invocation call", "tool-invocation result"},
    5: {"text", "step-start", "reasoning", "file", "source-url", "source-document", "data", *(f"tool {state}" for state in STATES)},
    6: {"tool approval-requested", "tool approval-responded", "tool output-denied", "dynamic-tool output-available"},
    7: {"custom", "reasoning-file", "tool approval-requested", "dynamic-tool output-available"},
}  # fmt: skip


def _kind(part: dict[str, Any]) -> str:
    kind = part["type"]
    if kind == "tool-invocation":
        return f"{kind} {part['toolInvocation']['state']}"
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        return f"{'tool' if kind.startswith('tool-') else kind} {part['state']}"
    return "data" if kind.startswith("data-") else kind


@pytest.mark.parametrize("version", VERSIONS)
def test_the_corpus_has_every_kind_of_part(library: AiSdk, version: int) -> None:
    conversations = list(written(library, version))
    found = {
        _kind(part)
        for each in conversations
        for state in each.states
        for message in state
        for part in message["parts"]
    }
    assert found >= EXPECTED[version]
    assert sum(len(each.states) for each in conversations) > 90
    assert all(
        library("check_model", version=version, messages=model) is None
        for each in conversations
        for model in each.model
    )


def test_node_is_new_enough_for_mastra(library: AiSdk) -> None:
    assert int(library("versions")["node"][1:].partition(".")[0]) >= 22
