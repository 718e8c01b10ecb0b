"""Filters the events of a run: leaves out how the model changes its working memory.

A client sees neither the call of the tool nor its result, and, of an agent whose model writes the
working memory into its answer, not that part of the answer. What is stored keeps them. A message of
nothing else is left out; its start is therefore held back until something of it can be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.codec.working_parts import WORKING_TAGS, hide_working_text, is_working_part
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunFinished,
)
from dragoman.message import Role, TextPart

__all__ = ["WorkingFilter"]

_Key = tuple[str, int]
"""A part: the id of its message, and its index."""


class WorkingFilter:
    """Takes the events of runs in order, and returns those that people may see."""

    def __init__(self, *, tags: bool) -> None:
        """`tags`: True if answers may hold a working memory between tags."""
        self._tags = tags
        self._starts: dict[str, MessageStarted] = {}
        """Starts that are held back, by the id of their message."""
        self._answers: set[str] = set()
        """Messages of models."""
        self._hidden: set[_Key] = set()
        """Parts that are hidden."""
        self._with_hidden: set[str] = set()
        """Messages that have hidden parts."""
        self._texts: dict[_Key, _TextFilter] = {}
        """Texts that are open."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Returns the events that people may see now, without what is hidden."""
        visible: list[Event] = []
        for event in events:
            visible += self._feed_event(event)
        return visible

    def _feed_event(self, event: Event) -> list[Event]:
        """Hides, in one event, what people may not see."""
        if isinstance(event, PartDelta):
            return self._feed_delta(event)
        if isinstance(event, MessageStarted):
            self._starts[event.message_id] = event
            if event.role is Role.MODEL:
                self._answers.add(event.message_id)
            return []
        if isinstance(event, PartStarted | PartFinished):
            return self._feed_part(event)
        if isinstance(event, MessageFinished | MessageDropped):
            return self._feed_end(event)
        if isinstance(event, RunFinished) and self._tags and isinstance(event.result, str):
            return [msgspec.structs.replace(event, result=hide_working_text(event.result))]
        return [event]

    def _feed_part(self, event: PartStarted | PartFinished) -> list[Event]:
        """Hides, at the start or end of a part, what people may not see."""
        key = (event.message_id, event.index)
        if key in self._hidden or is_working_part(event.part):
            self._hidden.add(key)
            self._with_hidden.add(event.message_id)
            return []
        is_answer = self._tags and event.message_id in self._answers
        if is_answer and isinstance(event.part, OpenText | TextPart):
            return self._feed_text(event, key)
        return [*self._start(event.message_id), event]

    def _feed_text(self, event: PartStarted | PartFinished, key: _Key) -> list[Event]:
        """Hides, at the start or the end of a text, which may be a working memory."""
        if isinstance(event, PartStarted):
            self._texts[key] = _TextFilter(event)
            return []
        assert isinstance(event.part, TextPart)
        text_filter = self._texts.pop(key, _TextFilter(None))
        # The text in whole decides: what was held back for an end that never came is told now.
        text = hide_working_text(event.part.text)
        if not text:
            self._with_hidden.add(event.message_id)
            return []
        deltas = self._start_text(key, text_filter, text[text_filter.count :])
        part = msgspec.structs.replace(event.part, text=text)
        return [*deltas, msgspec.structs.replace(event, part=part)]

    def _start_text(self, key: _Key, text_filter: _TextFilter, delta: str) -> list[Event]:
        """Returns a delta, and before the first one the starts of its message and part."""
        begun: list[Event] = []
        if text_filter.start is not None:
            begun = [*self._start(key[0]), text_filter.start]
            text_filter.start = None
        return [*begun, PartDelta(*key, delta)] if delta else begun

    def _feed_delta(self, event: PartDelta) -> list[Event]:
        """Hides, in a delta, what people may not see."""
        key = (event.message_id, event.index)
        if key in self._hidden:
            return []
        text_filter = self._texts.get(key)
        if text_filter is None:
            return [*self._start(event.message_id), event]
        delta = text_filter.feed(str(event.delta))
        return self._start_text(key, text_filter, delta) if delta else []

    def _feed_end(self, event: MessageFinished | MessageDropped) -> list[Event]:
        """Hides, at a message's end, what people may not see."""
        start = self._starts.pop(event.message_id, None)
        if start is None:
            return [event]
        if isinstance(event, MessageDropped) or event.message_id in self._with_hidden:
            return []
        return [start, event]

    def _start(self, message_id: str) -> list[Event]:
        """Returns the start of a message if it was held back."""
        start = self._starts.pop(message_id, None) if self._starts else None
        return [] if start is None else [start]


class _TextFilter:
    """Holds back what may be a working memory in a text that streams."""

    def __init__(self, start: PartStarted | None) -> None:
        """Starts to hide what users must not see of one text."""
        self.start = start
        """The start of the text while it is held back."""
        self.count = 0
        """Characters of the text that were sent, without those that are hidden."""
        self._pending = ""
        """The end of the text that may be the beginning of the next tag."""
        self._tags = list(WORKING_TAGS)
        """The tags that may still come: the first of them is looked for."""

    def feed(self, delta: str) -> str:
        """Returns what of a text may be sent now, without what is hidden."""
        visible = ""
        text = self._pending + delta
        while self._tags:
            is_inside = len(self._tags) == 1
            head, tag, tail = text.partition(self._tags[0])
            if not tag:
                keep = _find_partial(text, self._tags[0])
                visible += "" if is_inside else text[:keep]
                text = text[keep:]
                break
            visible += "" if is_inside else head
            text = tail
            self._tags.pop(0)
        else:
            visible, text = visible + text, ""
        self._pending = text
        self.count += len(visible)
        return visible


def _find_partial(text: str, tag: str) -> int:
    """Returns the index at which the longest beginning of a tag, whose content is hidden, ends the
    text."""
    start = max(0, len(text) - len(tag) + 1)
    index = text.find(tag[0], start)
    while index >= 0 and not tag.startswith(text[index:]):
        index = text.find(tag[0], index + 1)
    return len(text) if index < 0 else index
