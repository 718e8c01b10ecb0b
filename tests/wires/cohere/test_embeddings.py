"""The cohere wire: what is no request for embeddings."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import InvalidRequestError
from dragoman.wires import embeddings
from support.cohere import deep


@pytest.mark.parametrize("body", [0, None, [], {"texts": 5}])
def test_what_is_no_embeddings_request_is_refused(body: Any):
    own = embeddings("cohere")
    assert own is not None
    with pytest.raises(InvalidRequestError):
        own.load_request(body)


def test_a_purpose_that_nests_too_deep_is_refused():
    own = embeddings("cohere")
    assert own is not None
    with pytest.raises(InvalidRequestError, match="deep"):
        own.load_request({"texts": ["a"], "input_type": deep(5000)})
    assert own.load_request({"texts": ["a"], "input_type": ["search_query"]}).purpose is None
