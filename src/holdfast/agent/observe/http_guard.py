"""Who may ask this agent over HTTP, and what every answer says to a browser.  docs/http.md (security).

On loopback every process of this machine may read. A web page of another site in a browser on this machine may not: its requests carry
the name of that site in ``Host``, however the name resolves (DNS rebinding), or in ``Origin``, or the browser says ``Sec-Fetch-Site:
cross-site``; all of these are refused. Beyond loopback every request for data needs the token, reading ones too. What changes something
needs it always. Probes need nothing.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from holdfast.agent.observe.http_answers import Refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = ("GET", "HEAD")
OWN_SITE = (b"same-origin", b"none")  # of Sec-Fetch-Site: this page itself, or an address that a person typed
PORTS = {"http": "80", "https": "443"}  # that an Origin does not name
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

# The page is hand-written: it loads from here alone, runs no text as a program, and no page may frame it.
SECURITY = (
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
NO_STORE = (b"cache-control", b"no-store")


class Guard:
    """Wraps the application: refuses before it is reached, and adds the headers of ``SECURITY`` to whatever it answers."""

    def __init__(
        self, app: App, *, hosts: frozenset[str] | None, token: bytes | None, is_data: Callable[[str], bool], free: Iterable[str] = ()
    ) -> None:
        """``hosts``: accepted names of this server; None beyond loopback, where its names are not known and the token decides.
        ``free``: paths that may be read without a token."""
        self._app, self._hosts, self._token, self._is_data = app, hosts, token, is_data
        self._free = frozenset(free)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # Neither websockets nor lifespan are spoken here.
        data = self._is_data(scope["path"])

        async def send_secured(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY, *((NO_STORE,) if data else ())]
            await send(message)

        refusal = self._refusal(scope, data=data)
        if refusal is None:
            await self._app(scope, receive, send_secured)
        else:
            await refuse(send_secured, *refusal)

    def _refusal(self, scope: Scope, *, data: bool) -> tuple[int, str, str] | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if self._hosts is not None and (len(hosts) != 1 or host_name(hosts[0]) not in self._hosts):
            return 421, "WrongHost", f"this agent answers to {', '.join(sorted(self._hosts))}; the request names another host"
        reading = scope["method"] in READING
        if is_foreign(scope["headers"], hosts, opens_page=reading and not data):
            return (
                403,
                "ForeignSite",
                "this request comes from a web page of another site; an agent answers to its own page and to programs",
            )
        if reading and (self._hosts is not None or not data or scope["path"] in self._free):
            return None
        if self._token is None:
            return 403, "NoToken", "this agent has no token, so nothing can be changed over HTTP; set http_token_file"
        if not self._authorised(scope):
            return 401, "Unauthorised", "send Authorization: Bearer TOKEN with the token of this agent"
        return None

    def _authorised(self, scope: Scope) -> bool:
        assert self._token is not None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def is_foreign(headers: Iterable[tuple[bytes, bytes]], hosts: list[bytes], *, opens_page: bool) -> bool:
    """Whether a browser sends this for a page of another site. ``opens_page``: a link to the page may be on any site."""
    fields = dict(headers)
    site = fields.get(b"sec-fetch-site")
    if site is not None and site.strip().lower() not in OWN_SITE:  # Browsers alone send it, and no page can change it.
        navigates = fields.get(b"sec-fetch-mode") == b"navigate" and fields.get(b"sec-fetch-dest") == b"document"
        return not (opens_page and navigates)
    origin = fields.get(b"origin")
    if origin is None:
        return False
    scheme, _, place = origin.decode("latin-1").strip().lower().partition("://")
    return not (scheme in PORTS and len(hosts) == 1 and place and _with_port(place, scheme) == _with_port(_text(hosts[0]), scheme))


def _with_port(place: str, scheme: str) -> str:
    head, colon, port = place.rpartition(":")
    return place if colon and port.isdigit() and not head.endswith(":") else f"{place}:{PORTS[scheme]}"


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip().lower()


def host_name(value: bytes) -> str:
    """The name in a Host header, without its port."""
    text = _text(value)
    head, colon, port = text.rpartition(":")
    return head if colon and port.isdigit() and not head.endswith(":") else text


def accepted_hosts(bound: str) -> frozenset[str]:
    """How a server on a loopback address may be called."""
    return LOOPBACK_NAMES | {f"[{bound}]" if ":" in bound else bound}


async def refuse(send: Send, status: int, error: str, text: str, more: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """An error, as every error of this API looks."""
    body = msgspec.json.encode(Refusal(error, text))
    headers: Iterable[tuple[bytes, bytes]] = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more]
    if status == 401:
        headers = [*headers, (b"www-authenticate", b'Bearer realm="holdfast"')]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
