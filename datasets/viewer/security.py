"""What every answer goes through: who may ask, and what a browser may do with the answer.

The page shows text of strangers. So nothing but our own style sheet and script may load or run, no other site may
frame it, and a server on this machine answers to this machine's names only, which keeps out pages that point a name of
theirs at it. A server that others can reach wants a token.
"""

from __future__ import annotations

import hmac
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
"""Content security policy of every answer."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every answer."""
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names under which a server that is bound to this machine answers."""
_SECONDS_OF_COOKIE = 30 * 24 * 3600


class AccessMiddleware:
    """Wraps the application: GET only, the right host, the token, the headers."""

    def __init__(self, app: ASGIApp, *, token: str = "", cookie: str = "excise-view") -> None:
        """With a ``token``, every request needs it, and any host name is accepted; without, only this machine's."""
        self._app, self._token, self._cookie = app, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            return await refusal(scope, receive, with_headers)
        return await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("Only reading is possible here.\n", status_code=405)
        if not self._token:
            if host_name(headers.get("host", "")) in LOCAL_NAMES:
                return None
            return PlainTextResponse("This server answers to localhost and 127.0.0.1 only.\n", status_code=421)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and self._is_token(given[-1]):
            return self._with_cookie(scope, [item for item in query if item[0] != "token"])
        cookie = SimpleCookie()
        try:
            cookie.load(headers.get("cookie", ""))
        except Exception:  # malformed: as if there were none
            cookie = SimpleCookie()
        if self._cookie in cookie and self._is_token(cookie[self._cookie].value):
            return None
        return PlainTextResponse(
            "Open the whole address that `excise view` printed, token included.\n", status_code=403
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _with_cookie(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """To the same page without the token in its address, so that it stays out of the history."""
        path = "/" + scope["path"].lstrip("/\\")  # one slash: //name would be another host
        response = RedirectResponse(f"{path}?{urlencode(query)}" if query else path, status_code=303)
        response.set_cookie(self._cookie, self._token, max_age=_SECONDS_OF_COOKIE, httponly=True, samesite="strict")
        return response


def host_name(host: str) -> str:
    """The name in a ``Host`` header, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() and not host.endswith("]") else host).lower()
