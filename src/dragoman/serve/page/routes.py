"""The routes of the page."""

from __future__ import annotations

import importlib.metadata
import os
from hashlib import blake2b

from starlette.routing import Route

from dragoman.serve.core.service import Service
from dragoman.serve.http.callers import Auth, list_secrets
from dragoman.serve.page.agents import list_agents
from dragoman.serve.page.calls import CallList, make_plan
from dragoman.serve.page.door import Handler, PageEndpoint, PageRequest, Reply
from dragoman.serve.page.events import show_events
from dragoman.serve.page.files import file_route
from dragoman.serve.page.runs import cancel_run, list_runs, show_run, start_run
from dragoman.serve.page.session import PageSessions
from dragoman.serve.page.threads import delete_thread, list_threads, rename_thread, show_thread
from dragoman.serve.page.usage import show_usage

__all__ = ["SECRET_VARIABLE", "page_routes"]

SECRET_VARIABLE = "DRAGOMAN_PAGE_SECRET"  # noqa: S105 - its name
"""Environment variable with a secret by which servers read each other's cookies where they know no
keys beforehand. `serve --processes` gives its processes one."""


def page_routes(service: Service, auth: Auth) -> list[Route]:
    """Returns the routes of the page. `auth`: the server's keys."""
    sessions, calls = _make_sessions(service, auth), CallList(service)
    service.watchers.append(calls.add)

    def route(path: str, *, is_public: bool = False, **handlers: Handler) -> Route:
        endpoint = PageEndpoint(service, sessions, path, handlers, is_public=is_public)
        return Route(path, endpoint, methods=list(handlers))

    async def show_session(request: PageRequest) -> Reply:
        return Reply(_dump_session(sessions, request))

    async def sign_in(request: PageRequest) -> Reply:
        caller, cookie = await sessions.sign_in(
            request.body.get("key"), request.address, is_secure=request.is_secure
        )
        value = {**_dump_session(sessions, request), "signed_in": True, "name": caller.name}
        return Reply(value, 200, {"set-cookie": cookie} if cookie else {})

    async def sign_out(request: PageRequest) -> Reply:
        value = {**_dump_session(sessions, request), "signed_in": not sessions.needs_key}
        cookie = sessions.sign_out(is_secure=request.is_secure)
        return Reply(value, 200, {"set-cookie": cookie})

    return [
        file_route(),
        route("/page/session", is_public=True, GET=show_session, POST=sign_in, DELETE=sign_out),
        route("/page/agents", GET=list_agents),
        route("/page/threads", GET=list_threads),
        route("/page/threads/{id:path}/runs", POST=start_run),
        route(
            "/page/threads/{id:path}", GET=show_thread, PATCH=rename_thread, DELETE=delete_thread
        ),
        route("/page/plan", POST=make_plan),
        route("/page/runs", GET=list_runs),
        route("/page/runs/{id}", GET=show_run),
        route("/page/runs/{id}/events", GET=show_events),
        route("/page/runs/{id}/cancel", POST=cancel_run),
        route("/page/calls", GET=calls.show),
        route("/page/usage", GET=show_usage),
    ]


def _dump_session(sessions: PageSessions, request: PageRequest) -> dict[str, object]:
    caller = request.call.caller
    return {
        "needs_key": sessions.needs_key,
        "signed_in": not sessions.needs_key or not request.is_stranger,
        "name": caller.name,
        "version": importlib.metadata.version("dragoman"),
    }


def _make_sessions(service: Service, auth: Auth) -> PageSessions:
    """Returns the sessions of a server's page. Processes with the same keys read each other's
    cookies; where a function or the database knows the keys, those with the same secret."""
    sealer = None
    if service.has_keys:
        # cryptography, which only servers with keys need
        from dragoman.serve.seals.token_encryption import Sealer

        digest = blake2b(digest_size=32, person=b"dragoman-page")
        for secret in list_secrets(auth) or [_read_secret()]:
            digest.update(blake2b(secret, digest_size=32).digest())
        sealer = Sealer([digest.digest()], purpose="page session")
    return PageSessions(lambda: service.authenticate, sealer, service.clock)


def _read_secret() -> bytes:
    """Returns the secret of the environment, or a new one."""
    return os.environ.get(SECRET_VARIABLE, "").encode() or os.urandom(32)
