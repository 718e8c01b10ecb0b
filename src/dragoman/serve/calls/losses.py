"""What of a request was left out, as a response header says it: `dragoman-loss`, a list of structured fields (RFC 9651)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from dragoman.event import Event, MessageStarted
from dragoman.loss import Loss, Lost

__all__ = ["HEADER", "loss_headers", "losses_of"]

HEADER = "dragoman-loss"
_MOST = 1000
"""Characters of the header's value at most; proxies take some thousands for all headers."""
_WORD = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_NAMED = (Lost.option, Lost.setting, Lost.field, Lost.tool, Lost.candidate)
"""Losses whose `which` is a name of the API's. That of others is a client's own, such as a file's name, and stays out."""


def loss_headers(losses: Iterable[Loss]) -> Mapping[str, str]:
    """The header that names these losses, each kind once with how often it occurs: `option;which="logit_bias", thinking;n=3`. None
    where there is no loss. What does not fit is counted: `more;n=4`."""
    counts = Counter(_item(loss) for loss in losses)
    items = [item if count == 1 else f"{item};n={count}" for item, count in counts.items()]
    return {HEADER: _bounded(items)} if items else {}


def losses_of(events: Iterable[Event]) -> list[Loss]:
    """What the request of these events had to leave out, as the start of the answer says it."""
    return [loss for event in events if isinstance(event, MessageStarted) for loss in event.losses]


def _item(loss: Loss) -> str:
    item = loss.what.value.replace(" ", "-")
    name = loss.which.replace(" ", "-")
    return f'{item};which="{name}"' if loss.what in _NAMED and _WORD.fullmatch(name) else item


def _bounded(items: list[str]) -> str:
    kept: list[str] = []
    length = len(f", more;n={len(items)}")
    for item in items:
        length += len(item) + 2
        if length > _MOST:
            return ", ".join([*kept, f"more;n={len(items) - len(kept)}"])
        kept.append(item)
    return ", ".join(kept)
