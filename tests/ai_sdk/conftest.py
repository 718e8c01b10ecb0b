"""The AI SDK and Mastra, running, for the tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.ai_sdk import AiSdk, ai_sdk


@pytest.fixture(scope="session")
def library() -> Iterator[AiSdk]:
    """One process for all tests."""
    with ai_sdk() as running:
        yield running
