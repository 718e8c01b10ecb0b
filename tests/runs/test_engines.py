"""Our engines do what every engine must: the checks of the kit."""

from __future__ import annotations

from functools import partial

import pytest

from dragoman import testing
from support.engines import dbos_engine, log_engine

CHECKS = [check.name for check in testing.ENGINE_CHECKS]

pytestmark = pytest.mark.timeout(120)


def check_log_engine(name: str, url: str) -> None:
    checks = testing.engine_checks(log_engine, partial(str, url), priorities=True)
    {check.name: check for check in checks}[name]()


@pytest.mark.parametrize("name", CHECKS)
def test_the_log_engine_in_memory(name: str) -> None:
    check_log_engine(name, "memory:")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_the_log_engine(name: str, shared_url: str) -> None:
    check_log_engine(name, shared_url)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_dbos(name: str, shared_url: str) -> None:
    checks = testing.engine_checks(
        dbos_engine, partial(str, shared_url), priorities=True, shared_limits=True
    )
    {check.name: check for check in checks}[name]()
