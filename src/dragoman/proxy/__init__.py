"""The recording proxy between a program and its providers: `dragoman proxy`.

`server.py` answers requests: from the recordings (`recordings.py`), or from the provider
(`forward.py`) whose host is known (`upstreams.py`). `drift.py` tells what of recorded answers the
wires do not know. `page.py` shows the recordings in a browser.
"""

from __future__ import annotations

__all__: list[str] = []
