"""What a server wants to know from a person, as a question that ends the run; and the answer, when the server asks again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

from mcp import types

from dragoman.errors import ToolError
from dragoman.interrupt import Reason
from dragoman.tools import AskUser
from dragoman.tools.check import faults

__all__ = ["Answers", "VisitPage"]

_LONGEST = 4000
"""Characters of a server's question that a person is shown."""


class VisitPage(AskUser):
    """A server wants somebody to go to a page. The answer is whether he does."""

    reason: Reason = "auth"

    def __init__(self, url: str, message: str, server: str) -> None:
        """`url`: the page. `message`: why. `server`: who wants it.

        Raises:
            ToolError: it is no page of the web.
        """
        if urlsplit(url).scheme not in ("https", "http"):
            raise ToolError(f"{server} wants somebody to go to an address that is no web page; nobody was asked")
        super().__init__(message[:_LONGEST], {"type": "boolean"}, metadata={"url": url, "server": server})


class Answers:
    """The answers that a call got when it was run before, given out again in their order: objects to forms, booleans to pages.

    A tool that waited is run again from its start, and so is the server's: it asks again, and gets the answers then.
    """

    def __init__(self, server: str, answers: Iterable[Any]) -> None:
        known: list[Any] = list(answers)
        self._server = server
        forms = [cast("dict[str, Any]", one) for one in known if isinstance(one, dict)]
        self._forms = iter(forms)
        self._pages = iter([one for one in known if isinstance(one, bool)])

    def take(self, asked: types.ElicitRequestParams) -> types.ElicitResult:
        """The answer to a question.

        Raises:
            AskUser: nobody has answered it yet.
            ToolError: the server asks something else than before.
        """
        if isinstance(asked, types.ElicitRequestURLParams):
            if (goes := next(self._pages, None)) is None:
                raise VisitPage(asked.url, asked.message, self._server)
            return types.ElicitResult(action="accept" if goes else "decline")
        if (form := next(self._forms, None)) is None:
            raise AskUser(asked.message[:_LONGEST], asked.requested_schema, metadata={"server": self._server})
        if wrong := faults(asked.requested_schema, form):
            raise ToolError(
                f"{self._server} asks something else than before, where the answer is not fit: {'; '.join(wrong)}"
            )
        return types.ElicitResult(action="accept", content=form)
