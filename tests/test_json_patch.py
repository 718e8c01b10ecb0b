"""JSON Patch in place: the same as a known implementation, all or nothing, and bounded."""

from __future__ import annotations

import asyncio
import time
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import json_patch
from dragoman.errors import ProviderError, ToolError
from dragoman.event import StateDelta, StateSnapshot
from dragoman.json_patch import PatchedValue, PatchError, PatchTooLargeError
from dragoman.tools.shared_state import SharedState

names = st.sampled_from(["a", "b", "0", "1", "-", "x/y", "m~n"])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "text"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
pointers = st.lists(names, max_size=3).map(
    lambda steps: "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
    optional={"value": values, "from": pointers},
)


@pytest.mark.mend("1.4")
@given(values, st.lists(operations, max_size=4))
def test_a_patch_does_what_a_known_implementation_does_or_nothing(
    value: Any, patch: list[dict[str, Any]]
) -> None:
    state = PatchedValue(deepcopy(value))
    sent = deepcopy(patch)
    try:
        state.patch(patch)
    except PatchError:
        assert state.value == value
        assert list_orders(state.value) == list_orders(value)
    else:
        # The RFC leaves open what remains of a document that is removed: here null, there an error.
        if not any(step["op"] in ("remove", "move") and not removed(step) for step in sent):
            assert state.value == jsonpatch.apply_patch(deepcopy(value), sent)
    assert patch == sent


def removed(operation: dict[str, Any]) -> str:
    """The pointer to what an operation takes away."""
    return operation["path"] if operation["op"] == "remove" else operation.get("from", "")


def list_orders(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, list_orders(item)) for key, item in value.items()]
    return [list_orders(item) for item in value] if isinstance(value, list) else value


@given(values, values)
def test_what_a_patch_adds_is_its_own(value: Any, added: Any) -> None:
    state = PatchedValue({"a": deepcopy(value)})
    operation = {"op": "add", "path": "/b", "value": added}
    state.patch([operation, {"op": "copy", "from": "/b", "path": "/c"}])
    if isinstance(added, (dict, list)):
        assert state.value["b"] is not added
        assert state.value["b"] is not state.value["c"]


@pytest.mark.mend("1.4")
def test_a_state_that_doubles_with_each_copy_is_refused_soon() -> None:
    """18 such operations blocked the event loop for 33 seconds, 30 of them for over 400."""
    state = SharedState()
    state.follow(StateSnapshot({"a": ["xxxxxxxxxx"]}))
    started = time.monotonic()
    with pytest.raises(ProviderError, match="copy and move take"):
        for _ in range(30):
            state.follow(StateDelta(({"op": "copy", "from": "/a", "path": "/a/-"},)))
    assert time.monotonic() - started < 2


@pytest.mark.mend("1.4")
def test_a_state_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_patch, "MOST_WEIGHT", 2**20)
    state = PatchedValue({"list": [], "text": "x" * 1000})
    copy = {"op": "copy", "from": "/text", "path": "/list/-"}
    with pytest.raises(PatchTooLargeError, match="at most"):
        for _ in range(10_000):
            state.patch([copy])
    assert json_patch.weigh(state.value) <= 2 * 2**20
    with pytest.raises(PatchTooLargeError):
        PatchedValue("x" * 2**20)
    with pytest.raises(ToolError, match="refused"):
        SharedState().replace("x" * 2**20)


@pytest.mark.mend("1.4")
def test_what_is_replaced_again_and_again_is_not_counted_as_growth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_patch, "MOST_WEIGHT", 2**16)
    state = PatchedValue({"text": ""})
    for number in range(1000):
        state.patch([{"op": "replace", "path": "/text", "value": f"{number}" * 1000}])
    assert state.value["text"].startswith("999")


@pytest.mark.mend("1.4")
def test_many_small_changes_of_a_long_list_cost_what_they_hold() -> None:
    """Each copied the whole state: 5,000 took a minute."""
    state = SharedState()
    state.follow(StateSnapshot({"a": list(range(20_000))}))
    started = time.monotonic()
    for number in range(5000):
        state.follow(StateDelta(({"op": "add", "path": "/a/0", "value": number},)))
    assert time.monotonic() - started < 5
    assert len(state.value["a"]) == 25_000


@pytest.mark.parametrize("kind", ["copy", "move"])
def test_a_state_nests_so_deep_at_most(kind: str) -> None:
    state = PatchedValue({"a": {}})
    with pytest.raises(PatchError):
        for depth in range(200):
            inner = "/b" * depth
            state.patch(
                [
                    {"op": "add", "path": "/t", "value": {}},
                    {"op": kind, "from": "/t", "path": f"/a{inner}/b"},
                ]
            )


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ([{"op": "nope", "path": ""}], "operation 0: there is no op 'nope'"),
        ([{"op": "add", "path": "a", "value": 1}], "path must be a JSON Pointer"),
        ([{"op": "add", "path": "/a"}], "add needs a value"),
        ([{"op": "remove", "path": "/z"}], "there is nothing at '/z'"),
        ([{"op": "add", "path": "/l/01", "value": 1}], "there is no item '01' in the list"),
        ([{"op": "test", "path": "/n", "value": True}], "test failed at '/n'"),
        ([{"op": "move", "from": "/a", "path": "/a/b"}], "into itself"),
        ([{"op": "add", "path": "/n/x", "value": 1}], "there is no object or list above"),
        (["nothing"], "is not an object"),
    ],
)
def test_an_operation_that_does_not_fit_is_named(patch: Any, words: str) -> None:
    state = PatchedValue({"a": {}, "l": [1], "n": 1})
    with pytest.raises(PatchError, match=words):
        state.patch(patch)
    assert state.value == {"a": {}, "l": [1], "n": 1}


@pytest.mark.anyio
@pytest.mark.mend("1.4")
async def test_a_timeout_fires_while_a_hostile_agent_patches() -> None:
    state = SharedState()
    state.follow(StateSnapshot({"a": "x" * 60_000, "list": []}))
    copy = StateDelta(({"op": "copy", "from": "/a", "path": "/list/0"},))
    with pytest.raises((TimeoutError, ProviderError)):
        async with asyncio.timeout(1):
            while True:
                state.follow(copy)
                await asyncio.sleep(0)
