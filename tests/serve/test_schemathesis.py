"""Requests made from the OpenAPI document, by somebody else's generator: never a fault of the
server, nor a type of answer that the document lacks."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from dragoman import Agent, Message, serve
from dragoman.testing import ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def reply(request: Any) -> Any:
    return '{"a": 1}' if request.output_schema is not None else Message.model("Done.")


def served() -> Any:
    model = ScriptedModel(reply, wire="anthropic")
    agent = Agent(model, transport=model.transport, api_key="k")
    return serve.app(
        agent,
        gateway=serve.Gateway({"m": ScriptedModel(reply, wire="google")}),
        hosts=["testserver"],
    )


def test_no_request_is_a_fault_of_the_server() -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", served())
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 80
    for operation in operations:

        @settings(
            max_examples=8,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(operation.as_strategy())
        def asked(case: Any) -> None:
            case.call_and_validate(checks=[not_a_server_error])

        asked()
