"""``POST /v1/force-leave/{name}``.  docs/http.md."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from holdfast import errors
from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.http_answers import Accepted
from holdfast.agent.observe.openapi import NAME, Route
from holdfast.features.farewell.protocol.farewell import Farewell, Parting

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web

TIMEOUT = 10.0  # seconds until another agent has agreed
ROUTES = (
    Route(
        "POST", "/v1/force-leave/{name}", "force_leave", "Ask another agent to drain, leave and end.", Accepted,
        parameters=(NAME,), errors=(400, 404, 503, 504),
    ),
)  # fmt: skip


class FarewellHttp(HttpPart):
    """One route."""

    routes = ROUTES

    def __init__(self, web: Web, farewell: Farewell) -> None:
        self._web, self._farewell = web, farewell

    async def force_leave(self, request: Request) -> Response:
        name = request.path_params["name"]
        answered: asyncio.Future[Parting] = asyncio.get_running_loop().create_future()
        await self._web.in_turn(partial(self._farewell.ask, name, TIMEOUT, partial(_answer, answered)))
        refusal = _error_of(await answered, name)
        if refusal is not None:
            raise refusal
        return self._web.json(Accepted("agreed"))  # type: ignore[no-any-return]


def _answer(answered: asyncio.Future[Parting], parting: Parting) -> None:
    if not answered.done():
        answered.set_result(parting)


def _error_of(parting: Parting, name: str) -> errors.HoldfastError | None:
    if parting is Parting.AGREED:
        return None
    if parting is Parting.NOT_A_MEMBER:
        return errors.NotAMember(f"{errors.shown(name)} is not in the group")
    if parting is Parting.UNSEALED:
        return errors.ConfigError("key_file: this group has no key, so any machine could send such a request; none is sent or obeyed")
    if parting is Parting.BUSY:
        return errors.Unavailable("too many agents are being asked already; try again")
    return errors.Timeout(f"{errors.shown(name)} did not answer within {TIMEOUT:g} s; the membership finds out whether it is dead")
