"""Has Restate say which durable run is driven where and when (`RestateEngine`).

Restate calls its workers. All workers of a queue have one address; each of them listens at that port,
or stands behind a load balancer. A call carries the id of a run and lasts `_CALL_SECONDS` at most, so
that nothing between Restate and the worker gives it up. The run goes on meanwhile, and Restate calls
again: the worker that drives it, or another, which finds its lease taken.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import restate

from dragoman.errors import ProviderError, RunLogError, SettingsError
from dragoman.http_server.listener import make_config, open_listener
from dragoman.http_server.within_block import serve_within
from dragoman.json_bytes import JsonMap, decode, encode
from dragoman.request import HttpRequest
from dragoman.runs.called_queue import CalledQueue
from dragoman.runs.engines import Drive, Limit
from dragoman.runs.log import RunLog
from dragoman.runs.waiting_runs import enqueue_waiting
from dragoman.transport.aiohttp import AiohttpTransport
from dragoman.transport.base import Bounds, Timeouts, read_all

__all__ = ["RestateEngine"]

_CALL_SECONDS = 25.0
"""Seconds until a call is answered: less than the idle time of common proxies, and of Restate (60)."""
_MOST_CALLS = 100
"""Calls of one invocation. A new one takes its place then, so that its journal stays short."""
_LONGEST_PAUSE = 8
"""The pauses between the calls for a run double until they are so many times the first one."""
_REGISTER_SECONDS = 30.0
"""Seconds in which Restate must be able to reach the worker: a load balancer takes its time."""
_RETRY = restate.InvocationRetryPolicy(
    initial_interval=timedelta(seconds=0.1),
    exponentiation_factor=2.0,
    max_interval=timedelta(seconds=5),
    max_attempts=2**31 - 1,
)
"""When Restate tries again after a worker that died. It must not give up: the run has not ended."""
_GONE = timedelta(seconds=40)
"""How long Restate waits for a worker that neither answers nor closes the connection."""
_RETENTION = timedelta(minutes=1)
"""How long Restate remembers an invocation that is over. A run that is enqueued again after that is
looked at once more, which does nothing."""
_HANDLER = "drive"
_SERVICE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


class RestateEngine:
    """An engine that leaves to Restate which run is driven where and when.

    Limits hold for each worker. There are no priorities.
    """

    def __init__(
        self,
        log: RunLog,
        *,
        poll_seconds: float = 0.2,
        ingress_url: str | None = None,
        admin_url: str | None = None,
        worker_url: str | None = None,
        listen: str | None = None,
        token: str | None = None,
        prefix: str | None = None,
        identity_keys: Sequence[str] = (),
    ) -> None:
        """What is `None` comes from the environment.

        Args:
            log: the log of the runs.
            poll_seconds: a run that could not be driven is tried again after 10 times as long, later
                after 80 times. After 25 times as long the log is asked for runs that Restate does not
                know.
            ingress_url: where Restate takes calls (`RESTATE_INGRESS_URL`, `http://127.0.0.1:8080`).
            admin_url: where workers are registered (`RESTATE_ADMIN_URL`, `http://127.0.0.1:9070`).
            worker_url: where Restate reaches the workers, or their load balancer
                (`RESTATE_WORKER_URL`, `http://127.0.0.1:9080`).
            listen: host and port that this worker listens at, such as `0.0.0.0:9080`
                (`RESTATE_WORKER_LISTEN`, host and port of `worker_url`).
            token: the bearer token of Restate Cloud (`RESTATE_AUTH_TOKEN`).
            prefix: begin of the names of its services: the queue `default` is `dragoman-default`. Programs
                that share a Restate, but no log, have different ones (`RESTATE_SERVICE_PREFIX`,
                `dragoman`).
            identity_keys: public keys of Restate (`publickeyv1_…`). Calls that are not signed with one
                of them are refused.
        """
        self._log, self._poll_seconds = log, poll_seconds
        self._ingress = ingress_url or _find("RESTATE_INGRESS_URL", "http://127.0.0.1:8080")
        self._admin = admin_url or _find("RESTATE_ADMIN_URL", "http://127.0.0.1:9070")
        self._worker = worker_url or _find("RESTATE_WORKER_URL", "http://127.0.0.1:9080")
        self._listen = listen or _find("RESTATE_WORKER_LISTEN", self._worker)
        self._prefix = prefix or _find("RESTATE_SERVICE_PREFIX", "dragoman")
        self._headers = {"content-type": "application/json"}
        if token := token or _find("RESTATE_AUTH_TOKEN", ""):
            self._headers["authorization"] = f"Bearer {token}"
        self._identity_keys = list(identity_keys)
        self._queues: Collection[str] = ()
        """The queues that this process works on."""
        self._http = AiohttpTransport(Timeouts(connect=10.0, read=60.0), Bounds(body=2**22))

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:  # noqa: ARG002 - Restate has none
        """See `Engine`.

        Raises:
            RunLogError: Restate cannot be reached, or refuses it. The run is in the log; a worker
                enqueues it when Restate is there.
            SettingsError: the name of the queue is no name for Restate.
        """
        url = f"{self._ingress.rstrip('/')}/{self._service_name(queue)}/{_HANDLER}/send"
        # Any text may be the id of a run, but not a header.
        status, answer = await self._post(url, run_id, {"idempotency-key": quote(run_id, safe="")})
        if status == 404 and "register the service" in answer:
            # No worker has come yet: the first one finds the run in the log. Or Restate has lost
            # its data.
            if queue in self._queues:
                await self._register()
        elif status >= 400:
            raise RunLogError(f"Restate does not take run {run_id} ({status}): {answer:.500}")

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        """See `Engine`.

        Raises:
            RunLogError: Restate cannot be reached, cannot reach this worker, or refuses it.
            SettingsError: nothing can listen there, or a queue's name is no name for Restate.
        """
        self._queues = queues
        called = {name: CalledQueue(drive, limit, _CALL_SECONDS) for name, limit in queues.items()}
        again = timedelta(seconds=10 * self._poll_seconds)
        services = [
            _make_service(self._service_name(name), queue, again) for name, queue in called.items()
        ]
        app = restate.app(services, identity_keys=self._identity_keys)
        # The SDK would take SIGTERM over with the first request that it sees, but not outside the
        # main thread.
        await asyncio.to_thread(asyncio.run, app(_HEALTH, _receive_nothing, _send_nowhere))
        async with _serving(app, self._listen):
            try:
                await self._register()
                await enqueue_waiting(self, self._log, queues, seconds=25 * self._poll_seconds)
            finally:
                # What is handed over is told to Restate before the worker stops to listen.
                with anyio.CancelScope(shield=True):
                    await asyncio.gather(*[queue.stop() for queue in called.values()])

    async def close(self) -> None:
        """See `OpenEngine`."""
        await self._http.close()

    async def _register(self) -> None:
        """Tells Restate the address of the workers."""
        url = f"{self._admin.rstrip('/')}/deployments"
        # Forced, Restate would forget the queues of other workers at this address.
        value = {"uri": self._worker, "use_http_11": True, "force": False}
        ends_at = monotonic() + _REGISTER_SECONDS
        while True:
            status, answer = await self._post(url, value)
            if status < 400:
                return self._check_queues(answer)
            if monotonic() > ends_at:
                raise RunLogError(
                    f"Restate cannot use the worker at {self._worker} ({status}): {answer:.500}; it must be able to reach it there: set RESTATE_WORKER_URL"
                )
            await asyncio.sleep(1.0)

    def _check_queues(self, answer: str) -> None:
        """Raises `SettingsError` if Restate knows the address of the workers by other queues."""
        try:
            deployment = decode(answer)
            registered = {service["name"] for service in deployment["services"]}
        except (ValueError, KeyError, TypeError) as error:
            raise RunLogError(
                f"no Restate answers there: {answer:.200}; set RESTATE_ADMIN_URL"
            ) from error
        if registered != {self._service_name(queue) for queue in self._queues}:
            raise SettingsError(
                f"Restate knows {self._worker} for {', '.join(sorted(registered))}, and this worker is for the queues {', '.join(self._queues)}: workers at one address have the same queues; give this one another (RESTATE_WORKER_URL), or remove deployment {deployment['id']} from Restate"
            )

    def _service_name(self, queue: str) -> str:
        """Returns the name under which Restate knows a queue."""
        name = f"{self._prefix}-{queue}"
        if not _SERVICE.fullmatch(name) or not queue:
            raise SettingsError(
                f"queue {queue!r:.100} is no name for Restate, with {self._prefix!r:.100} before it: use letters, digits, '.', '_' and '-'"
            )
        return name

    async def _post(
        self, url: str, value: object, headers: Mapping[str, str] = {}
    ) -> tuple[int, str]:
        """Sends JSON. Returns the status and the text of the answer."""
        request = HttpRequest(url, {**self._headers, **headers}, encode(value))
        try:
            response = await self._http.send(request)
            answer = await read_all(response)
        except ProviderError as error:
            raise RunLogError(
                f"Restate cannot be reached at {url}: {error.message}; start it, or set RESTATE_INGRESS_URL and RESTATE_ADMIN_URL"
            ) from error
        return response.status, answer.decode(errors="replace")


_HEALTH: JsonMap = {"type": "http", "path": "/health", "http_version": "1.1", "headers": []}


async def _receive_nothing() -> JsonMap:
    return {"type": "http.disconnect"}


async def _send_nowhere(message: JsonMap) -> None:
    pass


def _find(variable: str, default: str) -> str:
    """Returns a variable of the environment, if it is set to something."""
    return os.environ.get(variable) or default


def _make_service(name: str, queue: CalledQueue, again: timedelta) -> restate.Service:
    """Returns what Restate calls for the runs of a queue.

    Args:
        name: name of the service.
        queue: where the runs are driven.
        again: first pause before a run is tried again.
    """
    service = restate.Service(
        name,
        abort_timeout=_GONE,
        idempotency_retention=_RETENTION,
        invocation_retry_policy=_RETRY,
    )

    @service.handler(_HANDLER)
    async def drive_run(context: restate.Context, run_id: str) -> None:  # pyright: ignore[reportUnusedFunction]
        for number in range(_MOST_CALLS):
            if not await context.run_typed("drive", queue.call, run_id=run_id):
                return
            await context.sleep(again * min(2**number, _LONGEST_PAUSE))
        context.service_send(drive_run, run_id)

    return service


def _split_address(address: str) -> tuple[str, int]:
    """Returns host and port of a URL, or of `host:port`."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise SettingsError(
            f"{address!r:.100} is no address to listen at: give host and port, such as 0.0.0.0:9080 (RESTATE_WORKER_LISTEN)"
        )
    return host, port


@asynccontextmanager
async def _serving(app: Any, address: str) -> AsyncGenerator[None]:
    """Lets Restate call an application within the block."""
    host, port = _split_address(address)
    config = make_config(app, closing_seconds=2)
    config.lifespan = "off"
    # A connection that is kept belongs to one worker, which may not have the run's agent.
    config.headers = [("connection", "close")]
    with open_listener(host, port, shared=True) as listener:
        async with serve_within(config, listener):
            yield
