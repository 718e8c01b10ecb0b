"""Shared by all tests: asynchronous ones run on asyncio, which the transport is written for."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
