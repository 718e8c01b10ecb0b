"""The seeds of each wire: what it writes itself of the kit's samples, and the recordings where they
are there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random

from dragoman import wires
from dragoman.testing.hostile import Seed
from dragoman.testing.hostile_seeds import (
    group_by_door,
    make_answer_seeds,
    make_error_seed,
    make_request_seeds,
    make_seed,
    make_seeds,
)
from support.traffic import FOLDER, Exchange

FOLDERS = {
    "openai_chat": (
        "openai_chat",
        "openai_compatible",
        "openrouter",
        "together",
        "ollama_openai",
        "openai_embeddings",
    ),
    "openai_responses": ("openai_responses",),
    "anthropic": ("anthropic",),
    "google": ("google",),
    "mistral": ("mistral",),
    "ollama": ("ollama_native",),
    "cohere": ("cohere",),
    "google_interactions": ("google_interactions",),
    "bedrock_converse": (),
}
CHATS = {"chat", "messages", "generate", "responses"}
LARGEST = 100_000
"""Bytes of a recording; a larger one holds nothing but more of the same."""


@cache
def seeds(wire: str, recordings: int | None) -> dict[str, list[Seed]]:
    """A wire's seeds by their doors. `recordings`: so many of each folder, drawn; `None`: all."""
    return group_by_door([*make_seeds(wires.get(wire)), *_recorded(wire, recordings)])


def _recorded(wire: str, recordings: int | None) -> Iterator[Seed]:
    for folder in FOLDERS[wire] if recordings != 0 else ():
        files = [
            file
            for file in sorted((FOLDER / folder).glob("*.json"))
            if file.stat().st_size < LARGEST
        ]
        for file in (
            files
            if recordings is None
            else Random(folder).sample(files, min(recordings, len(files)))
        ):
            yield from _of_exchange(wire, Exchange(file))


def _of_exchange(name: str, exchange: Exchange) -> Iterator[Seed]:
    wire = wires.get(name)
    if exchange.status >= 400:
        yield make_error_seed(exchange.status, exchange.headers, exchange.body)
    elif exchange.endpoint in CHATS:
        yield from make_answer_seeds(wire, exchange.body)
        if exchange.request:
            yield from make_request_seeds(wire, exchange.request, exchange.url)
    elif exchange.endpoint == "embed" and wires.embeddings(name) is not None:
        yield make_seed("embeddings_response", json.loads(exchange.body))
        if exchange.request:
            yield make_seed("embeddings_request", exchange.request)
