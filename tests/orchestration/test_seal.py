"""Signatures of what a run waits for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Interrupt
from dragoman.errors import ResumeError
from dragoman.orchestration.seal import Seal
from support.model import call

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEAL = Seal(b"key", "thread")
WAIT = Interrupt(
    "i",
    "approval",
    call("t", x=1, y="ä"),
    expires_at=NOW + timedelta(minutes=1),
    metadata={"message_id": "m"},
)


def check(seal: Seal, wait: Interrupt, signature: str | None, **changes: Any) -> str | None:
    resume = msgspec.structs.replace(wait.approve(), signature=signature, **changes)
    return seal.check(wait, resume, NOW)


def test_a_signature_holds_for_the_same_and_in_any_order_of_arguments() -> None:
    signed = SEAL.sign_interrupt(WAIT).signature
    assert check(SEAL, WAIT, signed) is None
    turned = msgspec.structs.replace(WAIT, call=call("t", y="ä", x=1))
    assert SEAL.sign_interrupt(turned).signature == signed
    assert (
        SEAL.sign_interrupt(msgspec.structs.replace(WAIT, message="other words")).signature
        == signed
    )


CHANGES: list[dict[str, Any]] = [
    {"id": "j"},
    {"reason": "input"},
    {"call": call("u", x=1, y="ä")},
    {"call": call("t", x=2, y="ä")},
    {"call": None},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_nothing_that_was_signed_can_be_changed(changes: dict[str, Any]) -> None:
    signed = SEAL.sign_interrupt(WAIT).signature
    with pytest.raises(ResumeError, match="signature"):
        check(SEAL, msgspec.structs.replace(WAIT, **changes), signed)


@pytest.mark.mend("1.3")
def test_each_question_has_a_claim_of_its_own() -> None:
    def claim(wait: Interrupt) -> str:
        return SEAL.claim_name(SEAL.sign_interrupt(wait).approve(), wait.id)

    other = msgspec.structs.replace(
        WAIT, metadata={"message_id": "n"}
    )  # the provider repeats its ids of calls
    assert claim(WAIT) == claim(WAIT) != claim(other)
    unnamed = msgspec.structs.replace(WAIT, metadata={})
    assert claim(unnamed) != claim(unnamed)
    assert Seal().claim_name(WAIT.approve(), WAIT.id) == WAIT.id


@pytest.mark.mend("1.3")
def test_a_token_of_an_earlier_release_is_refused() -> None:
    with pytest.raises(ResumeError, match="earlier release"):
        check(SEAL, WAIT, "1.1767225660." + "ab" * 32)


@pytest.mark.parametrize(
    "seal",
    [
        Seal(b"other", "thread"),
        Seal(b"key", "other"),
        Seal(b"key"),
        Seal(b"key", "thread", "owner"),
    ],
)
def test_another_key_or_thread_does_not_do(seal: Seal) -> None:
    with pytest.raises(ResumeError, match="signature"):
        check(seal, WAIT, SEAL.sign_interrupt(WAIT).signature)


@given(st.none() | st.text(max_size=80))
def test_what_is_made_up_is_refused(signature: str | None) -> None:
    with pytest.raises(ResumeError, match="signature"):
        check(SEAL, WAIT, signature)


def test_the_expiry_travels_in_the_token() -> None:
    signed = SEAL.sign_interrupt(WAIT).signature
    forgotten = msgspec.structs.replace(WAIT, expires_at=None)
    resume = msgspec.structs.replace(forgotten.approve(), signature=signed)
    assert SEAL.check(forgotten, resume, NOW) is None
    with pytest.raises(ResumeError, match="expired"):
        SEAL.check(forgotten, resume, NOW + timedelta(minutes=2))


def test_without_a_key_nothing_is_signed_and_what_comes_is_passed_on() -> None:
    assert Seal().sign_interrupt(WAIT) is WAIT
    assert check(Seal(), WAIT, "inner") == "inner"


def test_an_inner_signature_is_passed_on() -> None:
    signed = SEAL.sign_interrupt(msgspec.structs.replace(WAIT, signature="inner")).signature
    assert check(SEAL, WAIT, signed) == "inner"
