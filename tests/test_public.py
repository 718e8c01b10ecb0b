"""What `import dragoman` offers, as documented, and what it costs: the modules that it may load."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import dragoman

DOCUMENTED = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
SOURCE = Path(__file__).parents[1] / "src"
ALLOWED = {
    "dragoman",
    "msgspec",
    "typing_extensions",
}  # the last is loaded by msgspec, where it is installed

PROBE = """
import sys
before = set(sys.modules)
{statement}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - set(sys.stdlib_module_names) - {{"__mp_main__"}}))
"""

GROUND = [
    "message",
    "event",
    "fold",
    "codec.emitter",
    "codec.framing",
    "codec.digest",
    "codec.signature_check",
    "repair",
    "request",
    "result",
    "errors",
]
GROUND += ["capability", "wires", "providers.provider"]


def test_the_public_names_are_those_that_are_documented():
    documented = re.findall(r"^\| `(\w+)`", DOCUMENTED, re.MULTILINE)
    assert sorted(documented) == sorted(dragoman.__all__)
    assert len(set(dragoman.__all__)) == len(dragoman.__all__) <= 80
    assert sorted(dir(dragoman)) == sorted(dragoman.__all__)
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        dragoman.nothing  # noqa: B018


def third_party(statement: str) -> set[str]:
    """The top-level modules outside the standard library that a fresh interpreter loads for this
    statement."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import dragoman", "import " + ", ".join(f"dragoman.{name}" for name in GROUND)]
)
def test_import_budget(statement: str):
    """No HTTP client, no server, no pydantic, no embedded model until one is used (rule 9 of the
    design)."""
    loaded = third_party(statement)
    assert "dragoman" in loaded
    assert loaded <= ALLOWED, (
        f"{statement!r} loads {sorted(loaded - ALLOWED)}; import it where it is first needed"
    )


def test_the_budget_sees_what_is_loaded():
    assert "pydantic" in third_party("import dragoman, pydantic")


MADE_BY_DECODING = re.compile(
    r"dragoman\.(cli\.embed\.|error_json\._Stored|transport\.exchange\._|wires\.\w+\.(decode|chunk|delta)\.)"
)
"""Where structs stand that are never shown: those of stored files and of the wires' fast paths."""
NAMED_ONLY = {
    "cli.templates.Template",
    "codec.background.BackgroundForm", "codec.agent_card.Abilities", "codec.agent_card.AgentCard", "codec.agent_card.Skill",
    "event._TimedEvent",  # what stands before its field is of its subclasses
    "codec.error_rules.ErrorInfo", "codec.error_rules.ErrorRules", "codec.schema_dialect.JsonDialect", "codec.outgoing_conversation.Outgoing", "hooks.Hooks",
        "limits.Limits", "limits.Spent", "mcp.options.OAuth", "mcp.options.Options", "message.Usage",
    "model_profile.ModelProfile",
    "memory.store.Batch", "memory.store.MessageQuery", "memory.store.Slot", "memory.store.ThreadChange", "memory.store.ThreadQuery", "memory.thread.Branch",
        "memory.thread.Page", "memory.thread.StoredMessage", "memory.thread.Thread", "memory.vectors.VectorQuery",
    "runs.requests.RunTerms", "serve.core.service.Durability", "serve.store.stored_answer.Ending",
    "orchestration.iteration.StreamingIterationResult", "orchestration.story.Story", "providers.media_way.MediaWay", "providers.provider.Provider", "request.Settings", "serve.core.policy.AgentPolicy", "serve.page.calls._RecentCall", "serve.store.answer_store.TaskQuery", "serve.http.limits.ServerLimits", "serve.store.stored_answer.Answered", "serve.core.call.Call", "sql.engine.SqlDialect",
    "wires.anthropic.content.OutgoingBlocks", "wires.google.tools.OutgoingContents",
    "testing.check.Check", "testing.scripted.ScriptedRecord", "testing.scripted_answer.Answer", "transport.base.Bounds", "transport.base.Timeouts",
    "transport.exchange.Exchange", "wires.openai_responses.items.OutgoingItems", "wires.openai_responses.tools.CallItemType",
    "wires.chat.dialect.ChatDialect", "wires.chat.record.DialectRecord", "wires.chat.record.OutgoingChat", "wires.mistral.dialect.MistralChat", "wires.openai_chat.dialect.OpenAIChat",
    *(f"wires.{wire}.quirks.Quirks" for wire in ("anthropic", "chat", "cohere", "google", "bedrock_converse", "google_interactions", "mistral", "ollama", "openai_chat", "openai_responses")),
}  # fmt: skip
"""Values whose fields have no order that anybody would know."""


def structs() -> dict[str, type[msgspec.Struct]]:
    found: dict[str, type[msgspec.Struct]] = {}
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.endswith("__main__"):
            for each in vars(importlib.import_module(module.name)).values():
                if (
                    inspect.isclass(each)
                    and issubclass(each, msgspec.Struct)
                    and each.__module__ == module.name
                ):
                    found[f"{each.__module__}.{each.__qualname__}"] = each
    return {name: each for name, each in found.items() if not MADE_BY_DECODING.match(name)}


def test_values_are_frozen_and_some_take_names_only():
    found = structs()
    assert len(found) > 50
    assert [name for name, each in found.items() if not each.__struct_config__.frozen] == []
    named = {
        name.removeprefix("dragoman.")
        for name, each in found.items()
        if {one.kind for one in inspect.signature(each).parameters.values()}
        == {inspect.Parameter.KEYWORD_ONLY}
    }
    assert named == NAMED_ONLY
