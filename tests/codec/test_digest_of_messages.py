"""What is large is hashed once, for both chains; nothing is kept of what is small, or gone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman.codec import digest
from dragoman.codec.digest import LARGE, chain_neutral_digests, chain_signature_digests
from dragoman.message import DataPart, Message

Chain = Callable[[Sequence[Message]], list[str]]
CHAINS: list[Chain] = [
    lambda messages: chain_signature_digests(messages, "w"),
    chain_neutral_digests,
    digest.chain_digests,
]
each_chain = pytest.mark.parametrize("chain", CHAINS, ids=["signed", "neutral", "version 1"])


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of what is hashed."""
    lengths: list[int] = []
    make = digest._bytes  # pyright: ignore[reportPrivateUsage]

    def counted(value: Any) -> bytes:
        data = make(value)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(digest, "_bytes", counted)
    return lengths


def picture() -> Message:
    return Message.user(DataPart(b"x" * LARGE, "image/png"))


@each_chain
def test_a_large_message_is_hashed_once(chain: Chain, hashed: list[int]) -> None:
    """A picture of 10 MB was hashed twice in every turn: 18 ms each."""
    history = [picture(), Message.model("Red.")]
    first = chain(history)
    grown = chain([*history, Message.user("And now?")])
    assert grown[:3] == first
    assert len([length for length in hashed if length >= LARGE]) == 1


@each_chain
def test_what_stands_before_a_large_message_counts(chain: Chain) -> None:
    history = [picture(), Message.model("Red.")]
    first = chain(history)
    assert chain([Message.user("Before."), *history])[2:] != first[1:]
    assert chain(history) == first


def test_the_chains_do_not_share_what_they_know() -> None:
    history = [picture()]
    assert len({chain(history)[-1] for chain in CHAINS}) == len(CHAINS)
    assert (
        chain_signature_digests(history, "w")[-1].rpartition(":")[2]
        == chain_signature_digests(history, "v")[-1].rpartition(":")[2]
    )


@each_chain
@pytest.mark.slow
def test_nothing_is_kept_of_small_messages_and_of_those_that_are_gone(chain: Chain) -> None:
    gc.collect()
    known = digest._large_messages  # pyright: ignore[reportPrivateUsage]
    before, small, large = (
        len(known),
        [Message.user(f"{n}") for n in range(100)],
        [picture() for _ in range(3)],
    )
    chain([*small, *large])
    assert len(known) == before + 3
    del large
    gc.collect()
    assert len(known) == before
