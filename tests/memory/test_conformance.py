"""Our stores do what every store must: the checks of the kit."""

from __future__ import annotations

import pytest

from dragoman import testing
from dragoman.memory import open_store

CHECKS = [check.name for check in testing.STORE_CHECKS]


def checked(url: str, name: str) -> None:
    maker = {
        check.name: check
        for check in testing.store_checks(
            lambda: open_store(url), name="ours", shared=url != "memory:"
        )
    }
    maker[name]()


@pytest.mark.parametrize("name", CHECKS)
def test_every_store(name: str, url: str) -> None:
    checked(url, name)
