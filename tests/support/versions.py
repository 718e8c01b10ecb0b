"""A format as one of its versions, for what takes a format alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman import formats
from dragoman.formats.registry import Format
from dragoman.loss import Loss
from dragoman.message import Message, Origin

__all__ = ["VERSIONS", "Version"]


class Version:
    """A format as one of its versions."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self._version = name, version
        self._format = formats.get(name)
        self.votes, self.load_messages = self._format.votes, self._format.load_messages
        self.mended = getattr(self._format, "mended", None)

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        return self._format.dump_messages(
            messages, target=target, losses=losses, version=self._version
        )  # type: ignore[call-arg]


VERSIONS: dict[str, Format] = {
    **{f"ai_sdk_ui {each}": Version("ai_sdk_ui", each) for each in ("v4", "v5", "v6", "v7")},
    **{f"ai_sdk_model {each}": Version("ai_sdk_model", each) for each in ("v4", "v5")},
}
"""Name and version of the formats that have several."""
