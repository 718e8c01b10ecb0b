"""What the wires that have embeddings share: requests, vectors, lists of them, usage."""

from __future__ import annotations

import base64
import math
from array import array
from typing import Any

import msgspec
import pytest

from dragoman import BatchEmbeddingsResult, Usage
from dragoman.codec.embeddings import (
    count_input_tokens,
    dump_texts,
    dump_vector,
    dump_vector_entries,
    load_answer_object,
    load_data_vectors,
    load_texts,
    load_vector,
    load_vector_entries,
)
from dragoman.codec.native import WireNative
from dragoman.errors import DecodeError, InvalidRequestError, ProviderError
from dragoman.request import EmbeddingsRequest

OWN = WireNative("w")


def load(body: Any, **how: Any) -> EmbeddingsRequest:
    return load_texts(body, OWN, dimensions="size", **how)


def dump(request: EmbeddingsRequest, **how: Any) -> dict[str, Any]:
    return dump_texts(request, OWN, dimensions="size", **how)


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        ({"input": "a"}, EmbeddingsRequest("", ("a",), native={"w:notes": {"spelling": {"input": "text"}}})),
        ({"input": ["a", "b"], "model": "m", "size": 3, "x": 1}, EmbeddingsRequest("m", ("a", "b"), None, 3, {"x": 1})),
        ({"input": [], "model": 3, "size": "3"}, EmbeddingsRequest("", (), None, None, {"model": 3, "size": "3"})),
        ({"input": ["a"], "model": "", "size": True}, EmbeddingsRequest("", ("a",), None, None, {"model": "", "size": True})),
    ],
)  # fmt: skip
def test_a_request_is_read_and_written_as_it_was(
    body: dict[str, Any], request_: EmbeddingsRequest
) -> None:
    given = dict(body)
    assert load(body) == request_
    assert dump(request_) == body == given


@pytest.mark.parametrize(
    ("given", "numbers"),
    [([1, 2], True), ([[1], [2, 3]], True), ([[]], False), ([[1], []], False), ([1, True], False), ([1.0], False), ([[1], 2], False), (3, False), (None, False)],
)  # fmt: skip
def test_tokens_are_texts_where_the_wire_takes_them(given: Any, numbers: bool) -> None:
    body = {"input": given}
    if numbers:
        request = load(body, tokens=True)
        assert request == EmbeddingsRequest("", (), native={"w": {"input": given}})
        assert dump(request) == body
        assert dump(request.replace(texts=("a",))) == {"input": ["a"]}
    else:
        with pytest.raises(
            InvalidRequestError, match="needs the field input, a text or a list of texts"
        ):
            load(body, tokens=True)
    with pytest.raises(InvalidRequestError, match="needs the field input"):
        load(body)


def test_names_of_fields_and_who_has_the_last_word() -> None:
    request = load_texts({"texts": "a", "n": 4}, OWN, texts="texts", dimensions="n")
    assert (request.texts, request.dimensions) == (("a",), 4)
    assert dump_texts(request, OWN, texts="texts", dimensions="n", kind="k") == {
        "texts": "a",
        "n": 4,
        "kind": "k",
    }
    two = request.replace(texts=("a", "b"), options={"kind": "own", "n": 5})
    assert dump_texts(two, OWN, texts="texts", dimensions="n", kind="k") == {
        "texts": ["a", "b"],
        "n": 5,
        "kind": "own",
    }
    assert dump(request.replace(native=None)) == {"input": ["a"], "size": 4}
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    with pytest.raises(
        InvalidRequestError, match="the embeddings request cannot be read: it nests deeper"
    ):
        load({"input": "a", "x": deep})
    with pytest.raises(InvalidRequestError, match="needs the field input"):
        load(["input"])


@pytest.mark.parametrize("body", [b'{"a": 1}', '{"a": 1}', {"a": 1}])
def test_an_answer_is_an_object(body: Any) -> None:
    assert load_answer_object(body) == {"a": 1}


@pytest.mark.parametrize(("body", "kept"), [(b"no", b"no"), (b"\xff", b"\xff"), ("no", None)])
def test_an_answer_that_is_no_json_says_so(body: Any, kept: Any) -> None:
    with pytest.raises(
        DecodeError, match=r"the answer is no JSON: .*is the base URL right"
    ) as caught:
        load_answer_object(body)
    assert caught.value.body == kept


@pytest.mark.parametrize("body", [b"[]", b"3", b'"x"', [], 3])
def test_an_answer_that_is_no_object_says_so(body: Any) -> None:
    with pytest.raises(DecodeError, match="an answer that is no object"):
        load_answer_object(body)


def packed(kind: str, *numbers: float) -> str:
    return base64.b64encode(array(kind, numbers).tobytes()).decode()


def test_vectors_of_every_form() -> None:
    assert load_vector([1, 2.5]) == [1.0, 2.5]
    assert load_vector(packed("f", 0.5, -0.25)) == [0.5, -0.25]
    assert load_vector(packed("f", 999_999.0, -999_999.0)) == [999_999.0, -999_999.0]
    assert load_vector(packed("f", 1e6)) == [
        float(one) for one in array("f", [1e6]).tobytes()[:2]
    ] + [float(one) for one in array("b", array("f", [1e6]).tobytes())[2:]]
    assert load_vector(packed("b", 1, -2, 3)) == [1.0, -2.0, 3.0]
    assert load_vector(packed("b", *[100] * 8)) == [100.0] * 8  # no float is as large
    assert load_vector("") == []
    # known by its first numbers
    assert load_vector(packed("f", *[0.5] * 64, 1e7)) == [0.5] * 64 + [1e7]
    assert len(load_vector(packed("f", *[0.5] * 63, 1e7))) == 256
    for bits in (b"\0\0\xc0\x7f", b"\0\0\xc0\xff"):
        with pytest.raises(DecodeError, match="numbers that are none"):
            load_vector(base64.b64encode(bits + array("f", [0.5]).tobytes()).decode())
    assert load_vector(base64.b64encode(b"\1\2\xc1\x7f").decode()) == [1.0, 2.0, -63.0, 127.0]
    assert dump_vector([0.5, 1.0]) == [0.5, 1.0]
    assert dump_vector([0.5, 1.0], packed=True) == packed("f", 0.5, 1.0)
    assert dump_vector(array("d", [0.5])) == [0.5]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "words"),
    [("YQ=", "no base64"), ("e A==", "no base64"), (["x"], "no list of numbers"), ([[1]], "no list of numbers"), (None, "no list of numbers"), ([math.inf], "numbers that are none"), ([math.inf, -math.inf], "numbers that are none")],
)  # fmt: skip
def test_what_is_no_vector_says_why(told: Any, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        load_vector(told)


def test_entries_are_in_the_order_of_their_indexes() -> None:
    vectors = [[1.0], [2.0], [3.0]]
    entries = dump_vector_entries(vectors)
    assert entries == [
        {"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)
    ]
    assert load_vector_entries(entries[::-1]) == vectors
    assert dump_vector_entries(vectors[:1], packed=True)[0]["embedding"] == packed("f", 1.0)
    assert load_vector_entries([{"embedding": [1]}, {"embedding": [2]}]) == [[1.0], [2.0]]
    assert load_vector_entries([{"index": 7, "embedding": [1]}]) == [[1.0]]
    assert load_vector_entries([]) == []
    for places in ((1, 2), (0, "1"), (0, 0, 1)):
        with pytest.raises(DecodeError, match="indexes do not count"):
            load_vector_entries([{"index": place, "embedding": [1]} for place in places])
    for odd in ("x", [3], [{"index": 0}]):
        with pytest.raises(DecodeError):
            load_vector_entries(odd)


USED = Usage(input_tokens=3, total_tokens=3)


def test_a_list_of_vectors_with_all_that_is_told_beside_it() -> None:
    def refusal(answer: dict[str, Any]) -> ProviderError:
        return ProviderError(f"no data but {sorted(answer)}")

    def counted(usage: dict[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
        left = {key: value for key, value in usage.items() if key != "n"}
        return (Usage(input_tokens=usage["n"]) if "n" in usage else None), left

    body = {
        "object": "list",
        "data": [{"embedding": [1.0]}],
        "model": "m",
        "id": "i",
        "usage": {"n": 3, "cost": 2},
    }
    assert load_data_vectors(body, refusal, counted) == BatchEmbeddingsResult(
        [[1.0]],
        Usage(input_tokens=3, output_tokens=0, total_tokens=3),
        metadata={"model": "m", "usage": {"cost": 2}},
        id="i",
    )
    bare = load_data_vectors(
        msgspec.json.encode({"data": [], "id": 3, "usage": "x"}), refusal, counted
    )
    assert bare == BatchEmbeddingsResult([])
    with pytest.raises(ProviderError, match=r"no data but \['error'\]"):
        load_data_vectors({"error": "x"}, refusal, counted)


@pytest.mark.parametrize(
    ("usage", "whole"),
    [
        (None, None),
        (Usage(), Usage(output_tokens=0)),
        (Usage(input_tokens=3), Usage(input_tokens=3, output_tokens=0, total_tokens=3)),
        (Usage(total_tokens=3), Usage(input_tokens=3, output_tokens=0, total_tokens=3)),
        (Usage(input_tokens=3, output_tokens=1, total_tokens=5), Usage(input_tokens=3, output_tokens=1, total_tokens=5)),
        (Usage(input_tokens=0, total_tokens=3), Usage(input_tokens=0, output_tokens=0, total_tokens=3)),
    ],
)  # fmt: skip
def test_all_tokens_of_a_request_for_vectors_are_input(
    usage: Usage | None, whole: Usage | None
) -> None:
    assert count_input_tokens(usage) == whole
