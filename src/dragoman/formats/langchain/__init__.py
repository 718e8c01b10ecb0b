"""LangChain's messages as JSON, both ways: `messages_to_dict`, `dumpd`, and the plain `model_dump`. The conversation is a list."""

from dragoman.formats.langchain.detection import votes
from dragoman.formats.langchain.envelope import NAME
from dragoman.formats.langchain.messages import dump_messages, load_messages

__all__ = ["name"]
__all__ += ["load_messages", "dump_messages", "votes"]

name = NAME
