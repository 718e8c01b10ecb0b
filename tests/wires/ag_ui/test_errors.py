"""Errors of AG-UI, by their codes, and what an agent can do."""

from __future__ import annotations

import json

import pytest
from ag_ui.core import AgentCapabilities

from dragoman import errors
from dragoman.codec.agent_card import Abilities, AgentCard
from dragoman.errors import DragomanError
from dragoman.request import ToolSpec
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui.errors import code_of, error_of

KINDS = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, DragomanError)], ids=lambda kind: kind.__name__)  # fmt: skip
def test_every_error_has_a_code_and_comes_back(kind: type[DragomanError]) -> None:
    error = kind("what was wrong")
    back = error_of({"type": "RUN_ERROR", "message": error.message, "code": code_of(error)})
    assert (type(back), back.message) == (kind, "what was wrong")


def test_a_refusal_is_read_again() -> None:
    status, headers, body = ag_ui.dump_error(errors.RateLimitError("wait", retry_after=2.0))
    assert (status, headers["retry-after"]) == (429, "2")
    error = ag_ui.load_error(status, headers, json.dumps(body).encode())
    assert isinstance(error, errors.RateLimitError) and error.retry_after == 2.0


@pytest.mark.parametrize(
    "event", [{}, {"message": 1, "code": []}, {"error": "x"}, {"error": {"message": {}}}]
)
def test_an_error_that_says_nothing_is_one(event: dict[str, object]) -> None:
    assert error_of(event).message


def test_what_an_agent_can_do_is_of_the_protocol() -> None:
    spec = ToolSpec("f", "F.", {"type": "object"})
    made = ag_ui.dump_capabilities(
        AgentCard(
            name="helper",
            description="Helps.",
            organization="Us",
            documentation_url="https://example.org/",
        ),
        Abilities(tools=(spec,), agents=(spec,), images=True),
    )
    read = AgentCapabilities.model_validate(made)
    assert not read.model_extra
    for each in (read.identity, read.transport, read.tools, read.output, read.state, read.multi_agent, read.reasoning, read.multimodal, read.human_in_the_loop):  # fmt: skip
        assert each is not None and not each.model_extra
