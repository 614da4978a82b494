"""Views as deltas: what differs from the view that the client has.  Spec: views D14.

A client whose view is not the base, or whose list does not come out with the digest, asks for the whole list with its next ping.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.views.protocol.liveness import Client
from holdfast.features.views.protocol.messages import ViewMsg
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.host import View, ViewId, ViewMember


class Delta(NamedTuple):
    """From one view to another."""

    changed: tuple[ViewMember, ...]
    gone: tuple[str, ...]


class ViewMessages:
    """What one server sends: the delta between two views is made once."""

    def __init__(self) -> None:
        self._of: tuple[ViewId, ViewId] | None = None
        self._delta = Delta((), ())
        self._digest_of: ViewId | None = None
        self._digest = b""

    def make(self, client: Client, view: View, former: View | None) -> ViewMsg:
        """For one client: a delta if it has the view before this one, and a delta is shorter."""
        if self._digest_of != view.id:
            self._digest_of, self._digest = view.id, digest_of(view.servers, view.members)
        base, delta = None, Delta(view.members, ())
        if former is not None and client.last_num == former.number and not client.want_full:
            between = self._between(former, view)
            if len(between.changed) + len(between.gone) < view.size:
                base, delta = former.id, between
        return ViewMsg(client.attach, client.seq, view.id, view.servers, base, *delta, view.size, self._digest, view.fleet)

    def _between(self, former: View, view: View) -> Delta:
        if self._of != (former.id, view.id):
            was = set(former.members)
            changed = tuple(member for member in view.members if member not in was)
            names = {member.id.name for member in view.members}
            gone = tuple(member.id.name for member in former.members if member.id.name not in names)
            self._of, self._delta = (former.id, view.id), Delta(changed, gone)
        return self._delta


def applied(message: ViewMsg, present: View | None) -> View | None:
    """The view that the message says; None: it does not fit, and the whole list is needed."""
    members: dict[str, ViewMember] = {}
    if message.base is not None:
        if present is None or present.id != message.base:
            return None
        members = {member.id.name: member for member in present.members}
        for name in message.gone:
            members.pop(name, None)
    members.update((member.id.name, member) for member in message.members)
    listed = tuple(sorted(members.values()))
    if len(listed) != message.size or digest_of(message.servers, listed) != message.digest:
        return None
    return View(message.id, message.servers, listed, message.fleet)
