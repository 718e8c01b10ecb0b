"""`app`: agents and a gateway as an ASGI application.

`app` checks its arguments, opens the stores, and puts everything that calls share into a
`Service`. Then it asks every wire for its paths, makes one Starlette route for each path and
method, and adds the server's own pages. `HostGuard` and `Probes` stand before all routes. The
stores of a URL are opened again if the application is started a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from dragoman import wires
from dragoman.arguments import expect
from dragoman.errors import SettingsError
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dragoman.agent import Agent
    from dragoman.codec.agent_card import AgentCard
    from dragoman.runs import RunLog
    from dragoman.serve.core.policy import AgentPolicy
    from dragoman.serve.gateway.gateway import Gateway
    from dragoman.serve.http.callers import Auth, Key
    from dragoman.serve.http.limits import ServerLimits
    from dragoman.serve.store.answer_store import AnswerStore
    from dragoman.transport.address_policy import AddressPolicy

__all__ = ["app"]


def app(
    agents: Agent[Any] | Mapping[str, Agent[Any]] | None = None,
    *,
    gateway: Gateway | None = None,
    policy: AgentPolicy | None = None,
    store: str | AnswerStore | None = "memory:",
    log: RunLog | None = None,
    auth: Auth = None,
    stored_keys: bool = False,
    limits: ServerLimits | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    webhooks: AddressPolicy | None = None,
    cards: AgentCard | Mapping[str, AgentCard] | None = None,
    page: bool = False,
    durable: bool = False,
    drives: bool = True,
) -> Starlette:
    """Returns an ASGI application that speaks every wire. Each API is served at the paths that its
    own clients expect, and again under `/WIRE`.

    Args:
        agents: one agent, which answers to every model name, or several agents by the names that
            clients ask for. Without agents and gateway the embedded model is served.
        gateway: models of providers, by the names that clients ask for.
        policy: what clients may change in runs of agents.
        store: where answers are kept, so that clients can continue from them: `memory:`, the URL of
            a database, a store of your own, or None to keep nothing.
        log: where the events of runs are stored that go on without their client. By default in the
            database of `store`, else in memory.
        auth: the keys that clients must send. Without keys every client is admitted.
        stored_keys: clients may also send keys that `dragoman keys create` made in the database of
            `store`. Every client needs a key then.
        limits: how much the server takes from one client and from all.
        hosts: host names of the server, beside those of this machine.
        origins: origins of web pages that may use the server, such as `https://chat.example.com`.
        webhooks: addresses to which clients may have notifications of tasks sent. By default none
            are sent.
        cards: the card of the agent, or of several agents by their names.
        page: browsers get a page at `/`, on which people talk to the agents and see what they did.
        durable: runs of agents are put into the log, and any process that has the agent by its name
            (`dragoman worker`, another server) goes on with them if one ends. Needs a database as
            `store`.
        drives: this process drives durable runs, too; else it leaves them to others.

    Raises:
        SettingsError: a key is too short, there is no agent, or a host, origin or store is invalid.
        TypeError: an argument has the wrong type.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ModuleNotFoundError as error:
        raise SettingsError(f"a server needs {error.name}: {extra_hint('serve')}") from error

    from dragoman.agent import Agent
    from dragoman.http_server.guard import HostGuard, host_names, page_origins
    from dragoman.runs import open_log
    from dragoman.serve.accounts.accounts import Accounts
    from dragoman.serve.apis.cards import assign_cards
    from dragoman.serve.apis.plans import plan_route
    from dragoman.serve.core.agents import AgentBackend
    from dragoman.serve.core.service import Service
    from dragoman.serve.core.stream import Backend
    from dragoman.serve.endpoint import Endpoint, is_offered
    from dragoman.serve.http.callers import list_callers, make_authenticator
    from dragoman.serve.http.limits import ServerLimits
    from dragoman.serve.http.method_paths import answer_missing, method_paths
    from dragoman.serve.http.processes import check_durable
    from dragoman.serve.jobs import make_durability
    from dragoman.serve.operations import Probes, operation_routes
    from dragoman.serve.store.memory_answers import open_answers

    _check_arguments(gateway, limits, webhooks)
    check_durable(store, log, durable=durable, drives=drives)
    # Checked here, because Starlette builds its middleware only with the first request.
    names, pages = host_names(hosts), page_origins(origins)
    backends: list[Backend] = []
    if gateway is not None:
        backends.append(gateway)
    if agents is not None or gateway is None:
        agents = Agent[None]("local") if agents is None else agents
        backends.append(AgentBackend(agents, policy, is_durable=durable))
    served = {
        name: agent
        for backend in backends
        if isinstance(backend, AgentBackend)
        for name, agent in backend.agents.items()
    }
    # An iterator can be read once.
    if isinstance(auth, Iterator):
        auth = list(cast("Iterator[str | Key]", auth))
    agent_cards = assign_cards(cards, list(served))
    accounts = Accounts(store if isinstance(store, str) and store != "memory:" else None)
    accounts.check_budgets(list_callers(auth))
    authenticate = make_authenticator(auth)
    if stored_keys:
        assert accounts.sql, "a server without a database has no stored keys"
        authenticate = accounts.add_stored_keys(None if auth is None else authenticate)

    def open_stores() -> tuple[AnswerStore, RunLog]:
        return open_answers(store), log or open_log(store if isinstance(store, str) else "memory:")

    durability = None
    if durable:
        durability = make_durability(served, drives=drives, notifies=webhooks is not None)
    answers, runs_log = open_stores()
    service = Service(
        backends,
        authenticate=authenticate,
        has_keys=auth is not None or stored_keys,
        limits=limits or ServerLimits(),
        webhooks=webhooks,
        cards=agent_cards,
        answers=answers,
        log=runs_log,
        accounts=accounts,
        reopen_stores=open_stores if isinstance(store, str) and store != "memory:" else None,
        durability=durability,
    )
    served_wires = [wires.get(name) for name in wires.names()]
    paths = method_paths(served_wires, is_offered)
    routes = [
        Route(
            method_path.path.replace("{model}", "{model:path}"),
            Endpoint(method_path, service),
            methods=[method_path.method],
        )
        for method_path in paths
    ]
    if page:
        from dragoman.serve.page.files import PageRoot
        from dragoman.serve.page.routes import page_routes

        root = next(
            route for route in routes if route.path == "/" and "GET" in (route.methods or ())
        )
        root.endpoint = root.app = PageRoot(root.app)
        routes = [*page_routes(service, auth), *routes]
        service.has_page = True
    application = Starlette(
        routes=[*operation_routes(service, paths), plan_route(service), *routes],
        lifespan=lambda _: service.running(),
        middleware=[
            Middleware(Probes, service=service),
            Middleware(HostGuard, hosts=names, origins=pages),
        ],
        exception_handlers={404: answer_missing, 405: answer_missing},
    )
    application.router.redirect_slashes = False
    application.state.service = service
    return application


def _check_arguments(gateway: object, limits: object, webhooks: object) -> None:
    """Checks the types of the arguments `gateway`, `limits` and `webhooks` of `app`."""
    from dragoman.serve.gateway.gateway import Gateway
    from dragoman.serve.http.limits import ServerLimits
    from dragoman.transport.address_policy import AddressPolicy

    expect("gateway", gateway, Gateway, NoneType, hint="give dragoman.serve.Gateway(…)")
    expect("limits", limits, ServerLimits, NoneType, hint="give dragoman.serve.ServerLimits(…)")
    expect(
        "webhooks",
        webhooks,
        AddressPolicy,
        NoneType,
        hint="give dragoman.transport.AddressPolicy([…])",
    )
