"""Histories of pydantic-ai, as its `ModelMessagesTypeAdapter` writes them: a list of requests and
responses, each made of parts."""

from __future__ import annotations

from dragoman.formats.pydantic_ai.messages import dump_messages, load_messages, votes
from dragoman.formats.pydantic_ai.notes import NAME

__all__ = ["dump_messages", "load_messages", "name", "votes"]

name = NAME
