"""Going on without a stored response that the provider does not know any more.

A wire may link a request to a response that its provider stores, and send only what follows it. Where the provider has
forgotten that response, or may not use it, the same request is sent once more with the whole conversation.
"""

from __future__ import annotations

import re

from dragoman.errors import DragomanError, InvalidRequestError, ModelNotFoundError
from dragoman.request import ModelRequest

__all__ = ["unlinked"]

_LINK = "previous_response_id"
_FORGOTTEN = re.compile(r"previous.?response", re.IGNORECASE)


def unlinked(request: ModelRequest, error: DragomanError) -> ModelRequest | None:
    """The request to send in place of one that was refused so; `None`: the link is not what was refused.

    Its option says: go on from nothing, the provider has forgotten what it stored. A link that the caller gave himself
    is his to mend.
    """
    refused = isinstance(error, InvalidRequestError | ModelNotFoundError) and _FORGOTTEN.search(
        error.message
    )
    if not refused or _LINK in request.options:
        return None
    return request.replace(options={**request.options, _LINK: None})
