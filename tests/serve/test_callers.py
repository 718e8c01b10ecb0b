"""Who may call: keys, where clients put them, and what each may name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.codec.serving import KeyPlace
from dragoman.errors import SettingsError
from dragoman.serve.http.callers import ANONYMOUS, Caller, Key, find_keys, make_authenticator

ONE, OTHER = "sk-one-0123456789", "sk-other-0123456789"


def caller(auth: Any, *keys: str) -> Caller | None:
    return asyncio.run(_call(auth, keys))  # type: ignore[arg-type]


async def _call(auth: Any, keys: tuple[str, ...]) -> Caller | None:
    return await make_authenticator(auth)(keys)


@pytest.mark.parametrize(
    "auth", [ONE, [ONE], Key(ONE), [OTHER, Key(ONE)], {"me": ONE}, (each for each in [ONE])]
)
def test_a_key_is_known_however_it_is_given(auth: Any) -> None:
    assert (found := caller(auth, ONE)) is not None
    assert found.id == Key(ONE).caller.id


@pytest.mark.parametrize(
    "presented",
    [(), ("",), (OTHER,), (ONE[:-1],), (ONE + "x",), (ONE.upper(),), ("me",), ("ключ-ключ",)],
)
def test_nobody_else_may_call(presented: tuple[str, ...]) -> None:
    assert caller({"me": ONE}, *presented) is None


def test_without_keys_everybody_is_the_same_caller() -> None:
    assert caller(None) is caller(None, ONE) is ANONYMOUS


def test_the_name_of_a_mapping_is_no_key() -> None:
    assert caller({"production": ONE}, "production") is None
    assert caller({"production": ONE}, ONE) == Key(ONE, "production").caller


def test_an_id_is_the_keys_and_not_the_names_and_holds_neither() -> None:
    first, second = Key(ONE, "a").caller, Key(ONE, "b", models=["x"]).caller
    assert first.id == second.id != Key(OTHER, "a").caller.id
    assert ONE not in first.id
    assert ONE not in repr(Key(ONE, "a"))


def test_every_key_is_compared_with_every_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("dragoman.serve.http.callers.compare_digest", compare)
    assert caller([ONE, OTHER], ONE, OTHER) == Key(ONE).caller
    assert len(compared) == 4
    assert {len(each) for each in compared} == {32}


@pytest.mark.parametrize(
    "auth",
    [
        "", "short", " " * 20, [], [ONE, ONE], [ONE, ""], {}, {"a": ""}, {"a": ONE, "b": ONE}, ONE + "\n", f" {ONE}", "x\udc80" * 8,
        "a\r\nb-c-d-e-f",
    ],
)  # fmt: skip
def test_keys_that_protect_nothing_are_refused_at_the_start(auth: Any) -> None:
    with pytest.raises(SettingsError):
        make_authenticator(auth)


@pytest.mark.parametrize(
    "auth", [5, b"0123456789", [5], [ONE.encode()], {"a": 5}, {5: ONE}, {"a": Key(ONE)}]
)
def test_what_is_no_key_is_refused_at_the_start(auth: Any) -> None:
    with pytest.raises(TypeError):
        make_authenticator(auth)


def test_a_function_decides() -> None:
    me = Caller("me")

    async def later(key: str) -> Caller | None:
        return me if key == ONE else None

    for function in (later, {ONE: me}.get):
        assert caller(function, OTHER, ONE) is me
        assert caller(function, OTHER) is caller(function) is None


@pytest.mark.parametrize("wrong", [True, False, "me", 0])
def test_a_function_that_returns_no_caller_lets_nobody_in(wrong: object) -> None:
    with pytest.raises(TypeError, match="auth"):
        caller(lambda _: wrong, ONE)


@pytest.mark.parametrize(
    ("models", "yes", "no"),
    [
        (None, ["a", ""], []),
        ([], [], ["a", ""]),
        (["gpt-*"], ["gpt-4o", "gpt-"], ["xgpt-4", "GPT-4o", "gpt", ""]),
        (["*-mini"], ["a-mini", "a\nb-mini"], ["mini", "a-mini-2"]),
        (["m[12]", "a?c"], ["m[12]", "a?c"], ["m1", "abc"]),
        (["*"], ["a", ""], []),
    ],
)
def test_what_a_key_may_name(models: list[str] | None, yes: list[str], no: list[str]) -> None:
    may = Key(ONE, models=models).caller.may_use
    assert [may(each) for each in yes] == [True] * len(yes)
    assert [may(each) for each in no] == [False] * len(no)


def test_a_string_of_models_is_no_list_of_letters() -> None:
    with pytest.raises(TypeError, match="models"):
        Key(ONE, models="gpt-*")


def test_a_huge_name_is_not_matched_with_patterns() -> None:
    assert not Key(ONE, models=["*a*b*c*d*"]).caller.may_use("abc" * 100_000)


PLACES = (KeyPlace("header", "x-api-key"), KeyPlace("query", "key"), KeyPlace("bearer"))


@pytest.mark.parametrize(
    ("headers", "query", "found"),
    [
        ([], "", []),
        ([("authorization", f"Bearer {ONE}")], "", [ONE]),
        ([("authorization", f"bearer   {ONE} ")], "", [ONE]),
        ([("authorization", f"Basic {ONE}")], "", []),
        ([("authorization", ONE)], "", []),
        ([("authorization", "Bearer")], "", []),
        ([("x-api-key", ONE), ("authorization", f"Bearer {OTHER}")], "", [ONE, OTHER]),
        ([("x-api-key", ONE), ("authorization", f"Bearer {ONE}")], f"key={ONE}", [ONE]),
        ([], f"alt=sse&key={OTHER}", [OTHER]),
        ([], "key=a%2Bb+c", ["a+b c"]),
        ([], "key=&keys=b&xkey=c", []),
        # two of one place: what stands before the server may have looked at the other
        ([("x-api-key", ONE), ("x-api-key", OTHER)], "", []),
        ([("x-api-key", ONE), ("x-api-key", ONE)], "", [ONE]),
        ([], f"key={ONE}&key={OTHER}", []),
        ([("x-goog-api-key", ONE)], "", []),
    ],
)
def test_where_clients_put_their_keys(
    headers: list[tuple[str, str]], query: str, found: list[str]
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    assert find_keys(raw, query.encode(), PLACES) == found


def test_a_key_of_other_letters_is_found_as_clients_send_them() -> None:
    secret = "schlüssel-ключ-鍵"
    [key] = find_keys([(b"authorization", b"Bearer " + secret.encode())], b"")
    assert caller(secret, key) == Key(secret).caller
    [key] = find_keys([(b"authorization", b"Bearer schl\xfcssel-0123")], b"")
    assert caller("schlüssel-0123", key) is not None


@pytest.mark.parametrize(
    "value", [b"\xff\xfe", b"\xed\xa0\x80", b"\x00" * 9, b"a" * 100_000, "\U0010ffff".encode()]
)
def test_bytes_of_any_kind_are_an_unknown_key(value: bytes) -> None:
    found = find_keys(
        [(b"x-api-key", value), (b"authorization", b"Bearer " + value)], b"key=" + value, PLACES
    )
    assert caller(ONE, *found) is None
