"""LangChain's messages as JSON, both ways: `messages_to_dict`, `dumpd`, and the plain `model_dump`.
The conversation is a list."""

from dragoman.formats.langchain.envelope import NAME, votes
from dragoman.formats.langchain.messages import dump_messages, load_messages

__all__ = ["name", "versions"]
__all__ += ["load_messages", "dump_messages", "votes"]

name = NAME
versions = ("dict", "constructor", "plain")
"""As `messages_to_dict`, `dumpd` and `model_dump` write them."""
