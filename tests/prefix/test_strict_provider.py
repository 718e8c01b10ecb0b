"""Every scene before a provider that binds its thinking: nothing is refused, nothing is lost but
what was announced, and the beginning of a request stays."""

from __future__ import annotations

import pytest

from dragoman.loss import Lost
from prefix.scenes import SCENES
from prefix.table import MODELS, PROVIDER, play

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        not PROVIDER.exists(),
        reason="the strict provider is not beside the project (../shared/checks)",
    ),
]
LEAST_STABLE = 0.95
"""Share of a request that stands unchanged at the head of the next one."""


@pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("bind", list(MODELS))
@pytest.mark.parametrize("scene", list(SCENES))
def test_thinking_that_is_bound_comes_back(scene: str, bind: str, is_streamed: bool) -> None:
    report = play(scene, bind, is_streamed=is_streamed)
    assert report["error"] is None
    assert report["refused"] == {} or scene in REFUSED_ONCE
    announced = {loss.what for loss in report["losses"]} & {Lost.prefix, Lost.thinking}
    if not announced or bind == "block":
        assert report.get("missing", 0) == 0
    if not announced and not SCENES[scene].breaks:
        assert report["stable"] >= LEAST_STABLE * report["expected"]


REFUSED_ONCE = {"gateway, anthropic, changing system"}
"""A client of the same API writes its system text itself. The gateway sends it as it is, is refused
once, and has the provider drop what does not fit from then on."""
