"""Shared by the tests of transports."""

from __future__ import annotations

import gc
import warnings

import pytest


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_of_others() -> None:
    """What tests elsewhere forgot must not warn here, where a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
