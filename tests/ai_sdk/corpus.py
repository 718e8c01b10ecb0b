"""Conversations that the library wrote: UI messages in every state on their way, and model
messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ai_sdk.scripts import NAMED, TOOLS, any_script

from support.ai_sdk import AiSdk

__all__ = ["Written", "written"]


class Written(NamedTuple):
    """What the library made of one script."""

    name: str
    """Of the script."""
    ui: list[Any]
    """Its UI messages at the end."""
    states: list[list[Any]]
    """Its UI messages at each moment, each list once, the last one too."""
    model: list[list[Any]]
    """Model messages: what it converts the UI messages to, and histories with the answers as the
    run gave them."""


def written(library: AiSdk, version: int, seeds: int = 0) -> Iterator[Written]:
    """What the library of a version makes of the named scripts and of some made by chance."""
    for name, script in [
        *NAMED.items(),
        *((f"seed {seed}", any_script(seed)) for seed in range(seeds)),
    ]:
        made = library("generate", version=version, tools=TOOLS, **script)
        states = {
            json.dumps(state): state
            for state in [*made["states"], made["ui"], *filter(None, [made.get("appended")])]
        }
        model = [each for each in [made["model"], *made["responses"]] if isinstance(each, list)]
        yield Written(name, made["ui"], list(states.values()), model)
