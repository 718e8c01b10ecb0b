"""Shared by all tests: asynchronous ones run on asyncio, which the transport is written for; Hypothesis times nothing.

A run of the tests is the same every time. `HYPOTHESIS_PROFILE=search` looks for new examples, and for more.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import Phase, settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.register_profile(
    "mutate", deadline=None, derandomize=True, max_examples=50, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
