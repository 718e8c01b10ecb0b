"""The law of formats over what the AI SDK writes itself."""

from __future__ import annotations

import pytest
from ai_sdk.corpus import written

from dragoman import formats
from support.ai_sdk import VERSIONS, AiSdk
from support.law import broken

pytestmark = pytest.mark.service


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_library_wrote_survives(library: AiSdk, version: int) -> None:
    count = 0
    for each in written(library, version, seeds=3):
        for first, payload in [
            ("ai_sdk_ui", each.ui),
            *(("ai_sdk_model", model) for model in each.model),
        ]:
            messages = formats.get(first).load_messages(payload)
            for then in formats.names():
                count += 1
                assert broken(messages, first, then) == [], (each.name, first)
    assert count > 300
