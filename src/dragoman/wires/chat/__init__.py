"""The Chat family: formats that are nearly alike, as OpenAI's Chat Completions and those that took
its shape are. It is no wire itself; a format of it is a record, `Chat`, which is one."""

from dragoman.wires.chat.dialect import ChatDialect

__all__ = ["ChatDialect"]
