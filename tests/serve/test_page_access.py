"""Who may ask the page's routes: keys and cookies, other sites, other callers; and its files."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta
from typing import Any

import pytest

from dragoman.request import RunRequest
from dragoman.serve import Caller, Key
from dragoman.serve.core.service import JOBS
from dragoman.serve.page.door import PageEndpoint
from dragoman.serve.page.routes import SECRET_VARIABLE
from support.asgi import exchange
from support.page import HEADER, Page, page_app

pytestmark = pytest.mark.anyio
ONE, TWO = "one" * 8, "two" * 8
ID = {"/page/threads": "t", "/page/runs": "{run}"}
"""Beginning of a path → what stands in it for an id."""
LISTS = {("GET", f"/page/{name}") for name in ("agents", "threads", "runs", "calls", "usage")}
"""What everybody may ask and has for each caller only what is the caller's. All else is named by an
id, and not there for others."""
BODY = {"thread_id": "t", "model": "openai:gpt-4o", "title": "taken", "resume": [{"interrupt_id": "x", "approved": True}]}  # fmt: skip


def list_routes() -> list[tuple[str, str]]:
    """All routes of the page, as the server has them, but the session's and the files'."""
    routes: list[tuple[str, str]] = []
    for route in page_app().routes:
        if isinstance(getattr(route, "endpoint", None), PageEndpoint) and "session" not in route.path:  # fmt: skip
            beginning, *rest = re.split("/{.*?}", route.path)
            path = "".join([beginning, *[f"/{ID[beginning]}{end}" for end in rest]])
            routes += [(method, path) for method in sorted(route.methods)]
    return routes


ROUTES = list_routes()


def body_of(method: str) -> object:
    return BODY if method in ("POST", "PATCH") else b""


@pytest.fixture(params=[True, False], ids=["memory", "without memory"])
async def app(request: Any) -> Any:
    made = page_app(memory=request.param, auth=[Key(ONE, "one"), Key(TWO, "two")])
    async with made.router.lifespan_context(made):
        yield made


def with_key(app: Any, key: str) -> Page:
    return Page(app, {"authorization": f"Bearer {key}"})


async def sign_in(app: Any, key: str) -> Page:
    got = await Page(app)("POST", "/page/session", {"key": key})
    assert got.status == 200, got.body
    return Page(app, {"cookie": got.headers["set-cookie"].partition(";")[0]})


async def test_no_route_answers_without_a_key(app: Any) -> None:
    run = await with_key(app, ONE).start("t", text="hi")
    for headers in ({}, {"authorization": "Bearer wrongwrong"}, {"cookie": "dragoman_page=x"}):
        for method, path in ROUTES:
            got = await Page(app, headers)(method, path.format(run=run), body_of(method))
            assert got.status == 401, path
            assert method == "HEAD" or got.json["error"]["type"] == "authentication"
    assert len((await with_key(app, ONE).get("/page/threads"))["items"]) == 1


@pytest.mark.parametrize("enter", [with_key, sign_in], ids=["key", "cookie"])
async def test_two_callers_never_see_each_others_things(app: Any, enter: Any) -> None:
    first, second = enter(app, ONE), enter(app, TWO)
    if not isinstance(first, Page):
        first, second = await first, await second
    run = await first.start("t", text="my secret")
    chat = {"model": "a", "messages": [{"role": "user", "content": "my secret"}]}
    await with_key(app, ONE)("POST", "/v1/chat/completions", chat)
    before = (await first.get("/page/threads/t"))["messages"]
    for method, path in ROUTES:
        got = await second(method, path.format(run=run), body_of(method))
        if (method.replace("HEAD", "GET"), path) in LISTS:
            assert got.status == 200
            assert method == "HEAD" or got.json.get("items", got.json.get("rows", [])) == []
        else:
            assert got.status == 404, (method, path, got.body)
        assert b"secret" not in got.body
    for name in ("threads?q=secret", "threads?q=my", "runs?thread_id=t", f"runs?thread_id={run}"):
        assert (await second.get(f"/page/{name}"))["items"] == []
    # A conversation of the same name is another one.
    await second.start("t", text="hello")
    assert len((await second.get("/page/threads/t"))["messages"]) == 2
    assert (await first.get("/page/threads/t"))["messages"] == before
    assert len((await first.get("/page/calls"))["items"]) == 1
    assert len((await first.get("/page/usage"))["rows"]) == 1
    owner = app.state.service
    (entry,) = (await first.get("/page/runs"))["items"]
    status = (await owner.log.status([entry["run_id"]]))[entry["run_id"]]
    # The inner name of a caller's conversation leads nobody there.
    inner = status.thread_id.replace("/", "%2F")
    assert (await second("GET", f"/page/threads/{inner}")).status == 404
    assert (await second("GET", f"/page/threads/{status.thread_id}")).status == 404


def test_all_routes_are_in_the_table() -> None:
    assert len(ROUTES) >= 17
    assert set(ROUTES) >= LISTS
    assert ("POST", "/page/runs/{run}/cancel") in ROUTES


@pytest.mark.parametrize("how", ["revoked key", "revoked cookie", "expired cookie"])
async def test_no_route_answers_once_a_key_is_gone(how: str) -> None:
    known = {ONE: Caller("c1", "one"), TWO: Caller("c2", "two")}
    app = page_app(auth=known.get)
    async with app.router.lifespan_context(app):
        run = await with_key(app, ONE).start("t", text="my secret")
        page = with_key(app, ONE) if how == "revoked key" else await sign_in(app, ONE)
        assert (await page("GET", "/page/threads/t")).status == 200
        if how.startswith("revoked"):
            del known[ONE]
        else:
            later = app.state.service.clock() + timedelta(hours=12, seconds=1)
            for route in app.routes:
                if isinstance(endpoint := getattr(route, "endpoint", None), PageEndpoint):
                    endpoint._sessions._clock = lambda: later
        for method, path in ROUTES:
            got = await page(method, path.format(run=run), body_of(method))
            assert got.status == 401, (method, path)
            assert b"secret" not in got.body


async def test_runs_of_a_caller_are_listed_however_many_others_have(app: Any) -> None:
    first, second = with_key(app, ONE), with_key(app, TWO)
    run = await first.start("t", text="mine")
    log = app.state.service.log
    for number in range(120):
        await log.lease(f"r{number}", "me", 0, token=0, caller="another")
    await second.start("t", text="theirs")
    (entry,) = (await first.get("/page/runs"))["items"]
    assert (entry["run_id"], entry["agent"], entry["tokens"] > 0) == (run, "a", True)
    assert len((await first.get("/page/threads"))["items"]) == 1
    # The jobs that a durable server has in its log are no runs of anybody.
    await log.enqueue("job", "dragoman.keep", RunRequest(), queue=JOBS, owner=first_owner(app))
    assert len((await first.get("/page/runs"))["items"]) == 1
    assert (await first("GET", "/page/runs/job")).status == 404


def first_owner(app: Any) -> str:
    """The id of the caller of the first key."""
    return Key(ONE, "one").caller.id


async def test_without_keys_nobody_needs_one() -> None:
    made = page_app()
    async with made.router.lifespan_context(made):
        page = Page(made)
        session = await page.get("/page/session")
        assert (session["needs_key"], session["signed_in"]) == (False, True)
        got = await page("POST", "/page/session", {"key": "anything"})
        assert got.status == 200
        assert "set-cookie" not in got.headers


async def test_a_key_becomes_a_cookie_and_ends_with_it(app: Any) -> None:
    page = Page(app)
    session = await page.get("/page/session")
    assert (session["needs_key"], session["signed_in"], session["name"]) == (True, False, "")
    got = await page("POST", "/page/session", {"key": ONE})
    assert got.json["signed_in"] is True
    assert got.json["name"] == "one"
    cookie = got.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/page", "Max-Age=43200"):
        assert part in cookie.split("; ")
    assert "Secure" not in cookie
    assert ONE not in cookie
    signed = Page(app, {"cookie": cookie.partition(";")[0]})
    assert (await signed.get("/page/session"))["name"] == "one"
    assert (await signed.get("/page/threads"))["items"] == []
    # It is no key of the APIs.
    api = await signed("POST", "/v1/chat/completions", {"model": "a", "messages": []})
    assert api.status == 401
    token = cookie.partition(";")[0].partition("=")[2]
    bearer = Page(app, {"authorization": f"Bearer {token}"})
    assert (await bearer("GET", "/page/threads")).status == 401
    gone = await signed("DELETE", "/page/session")
    assert gone.json["signed_in"] is False
    assert "Max-Age=0" in gone.headers["set-cookie"]
    for broken in (token[:-8] + "AAAAAAAA", token[1:], "", "x" * 5000, token + "; dragoman_page="):
        page = Page(app, {"cookie": f"dragoman_page={broken}"})
        assert (await page("GET", "/page/threads")).status == 401


async def test_where_a_function_knows_the_keys_a_secret_lets_servers_read_each_others_cookies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`serve --processes` gives its processes one."""

    async def auth(presented: Any) -> Caller | None:
        return Caller("one", "one") if ONE in presented else None

    statuses: list[int] = []
    for secret in ("s" * 64, ""):
        monkeypatch.setenv(SECRET_VARIABLE, secret)
        made, other = page_app(auth=auth), page_app(auth=auth)
        signed = await sign_in(made, ONE)
        for app in (made, other):
            statuses.append((await Page(app, signed.headers)("GET", "/page/agents")).status)
    assert statuses == [200, 200, 200, 401]


async def test_a_cookie_expires_and_holds_in_another_process() -> None:
    auth = [Key(ONE, "one")]
    made, other, changed = page_app(auth=auth), page_app(auth=auth), page_app(auth=[Key(TWO)])
    signed = await sign_in(made, ONE)
    for app, status in ((made, 200), (other, 200), (changed, 401)):
        assert (await Page(app, signed.headers)("GET", "/page/agents")).status == status
    clock = made.state.service.clock
    page_clock = {"value": clock()}
    later = page_app(auth=auth)
    for route in later.routes:
        endpoint = getattr(route, "app", None)
        if hasattr(endpoint, "_sessions"):
            endpoint._sessions._clock = lambda: page_clock["value"]
    assert (await Page(later, signed.headers)("GET", "/page/agents")).status == 200
    page_clock["value"] += timedelta(hours=12, seconds=1)
    assert (await Page(later, signed.headers)("GET", "/page/agents")).status == 401


async def test_keys_that_a_function_knows_end_when_it_forgets_them() -> None:
    known = {ONE: Caller("c1", "one")}
    made = page_app(auth=known.get)
    signed = await sign_in(made, ONE)
    assert (await signed("GET", "/page/agents")).status == 200
    known.clear()
    assert (await signed("GET", "/page/agents")).status == 401


async def test_over_https_the_cookie_stays_there(app: Any) -> None:
    from support.asgi import Exchange, scope_of

    got = Exchange([b'{"key": "%b"}' % ONE.encode()])
    scope = {**scope_of("POST", "/page/session", list(HEADER.items())), "scheme": "https"}
    await app(scope, got.receive, got.send)
    assert "; Secure" in got.headers["set-cookie"]


async def test_keys_cannot_be_tried_for_ever(app: Any) -> None:
    page = Page(app)
    for _ in range(10):
        assert (await page("POST", "/page/session", {"key": "wrong" * 4})).status == 401
    got = await page("POST", "/page/session", {"key": ONE})
    assert got.status == 429
    assert 0 < got.json["error"]["retry_after"] <= 60
    assert int(got.headers["retry-after"]) >= 1
    # Who has signed in stays so.
    assert (await with_key(app, ONE)("GET", "/page/agents")).status == 200
    for wrong in ({}, {"key": 7}, {"key": "x" * 1001}, {"key": None}):
        assert (await page("POST", "/page/session", wrong)).status == 400


@pytest.mark.parametrize(
    ("headers", "reads", "changes"),
    [
        ({}, 200, 403),
        ({"x-dragoman-page": "1"}, 200, 202),
        ({"x-dragoman-page": "1", "sec-fetch-site": "same-origin"}, 200, 202),
        ({"x-dragoman-page": "1", "sec-fetch-site": "none"}, 200, 202),
        ({"x-dragoman-page": "1", "sec-fetch-site": "cross-site"}, 403, 403),
        ({"x-dragoman-page": "1", "sec-fetch-site": "same-site"}, 403, 403),
        ({"x-dragoman-page": "1", "sec-fetch-site": ""}, 403, 403),
        ({"x-dragoman-page": "0"}, 200, 403),
        ({"x-dragoman-page": "1", "origin": "http://127.0.0.1"}, 200, 202),
        ({"x-dragoman-page": "1", "origin": "https://evil.example"}, 403, 403),
        ({"x-dragoman-page": "1", "origin": "null"}, 403, 403),
        ({"x-dragoman-page": "1", "origin": "http://127.0.0.1:3000"}, 403, 403),
        ({"x-dragoman-page": "1", "origin": "https://chat.example"}, 403, 403),
    ],
)
@pytest.mark.parametrize("how", ["cookie", "key", "open"])
async def test_another_site_changes_and_reads_nothing(
    headers: dict[str, str], reads: int, changes: int, how: str
) -> None:
    auth = None if how == "open" else [Key(ONE)]
    made = page_app(auth=auth, origins=["https://chat.example"])
    async with made.router.lifespan_context(made):
        page = Page(made)
        if how == "cookie":
            page = await sign_in(made, ONE)
        elif how == "key":
            page = with_key(made, ONE)
        del page.headers["x-dragoman-page"]
        page.headers |= headers
        assert (await page("GET", "/page/threads")).status == reads
        assert (await page("POST", "/page/threads/t/runs", {"text": "hi"})).status == changes
        page.headers = {**page.headers, **HEADER}
        for name in ("sec-fetch-site", "origin"):
            page.headers.pop(name, None)
        assert len((await page.get("/page/runs"))["items"]) == (changes == 202)


async def test_a_foreign_host_is_refused(app: Any) -> None:
    headers = {**HEADER, "authorization": f"Bearer {ONE}"}
    for method, path in [*ROUTES, ("GET", "/page/session"), ("GET", "/page/static/index.html")]:
        got = await exchange(app, method, path, headers=headers, host="evil.example")
        assert got.status == 421
    got = await exchange(app, "GET", "/", headers={"accept": "text/html"}, host="evil.example")
    assert got.status == 421


async def test_browsers_get_the_page_and_others_their_words(app: Any) -> None:
    html = await exchange(app, "GET", "/", headers={"accept": "text/html,*/*;q=0.8"})
    assert html.status == 200
    assert html.headers["content-type"] == "text/html; charset=utf-8"
    policy = html.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert b"<script>" not in html.body
    for accept in ("", "*/*", "application/json", "text/plain"):
        key = {"authorization": f"Bearer {ONE}"}
        plain = await exchange(app, "GET", "/", headers={"accept": accept, **key})
        assert plain.body == b"dragoman is running"
    off = page_app_without_page()
    assert (await exchange(off, "GET", "/", headers={"accept": "text/html"})).body == plain.body
    for _, path in ROUTES:
        assert (await exchange(off, "GET", path)).status == 404


def page_app_without_page() -> Any:
    from dragoman import serve
    from support.page import page_agent

    return serve.app({"a": page_agent()})


async def test_files_are_public_zipped_and_sent_once(app: Any) -> None:
    path = "/page/static/index.html"
    whole = await exchange(app, "GET", path)
    assert whole.status == 200
    zipped = await exchange(app, "GET", path, headers={"accept-encoding": "gzip, br"})
    assert zipped.headers.get("content-encoding") == "gzip"
    assert gzip.decompress(zipped.body) == whole.body
    tag = whole.headers["etag"]
    again = await exchange(app, "GET", path, headers={"if-none-match": tag})
    assert (again.status, again.body) == (304, b"")
    for wrong in ("x", "../routes.py", "..%2Froutes.py", "/etc/passwd", "index.html/", ""):
        assert (await exchange(app, "GET", f"/page/static/{wrong}")).status == 404
