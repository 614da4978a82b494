"""Views as deltas.  Spec: views D14."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.features.views.protocol.config import CLIENTS_MAX
from holdfast.features.views.protocol.deltas import ViewMessages, applied
from holdfast.features.views.protocol.liveness import Client
from holdfast.host import NodeId, View
from tests.features.views.stand import A, B, C, at, member, view_of

members = st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 2), st.integers(1, 3)), min_size=1).map(
    lambda drawn: [member(NodeId(name, boot), attach) for name, (boot, attach) in drawn.items()]
)


def client(last_num: int, *, want_full: bool = False) -> Client:
    found = Client(A, at(A), 1, 0.0)
    found.last_num, found.want_full, found.seq = last_num, want_full, 7
    return found


@given(members, members)
def test_what_is_applied_is_the_view(before: list, after: list) -> None:  # type: ignore[type-arg]
    """Views D14: joined, left, restarted and attached anew, in any mixture; the message is never longer than the list."""
    former, view = view_of(3, *before), view_of(4, *after)
    message = ViewMessages().make(client(3), view, former)
    assert applied(message, former) == view
    assert len(message.members) + len(message.gone) <= view.size
    assert applied(ViewMessages().make(client(0), view, former), None) == view


def big(number: int, *more: NodeId) -> View:
    return view_of(number, *(member(NodeId(f"c{i}", 1)) for i in range(50)), *map(member, more))


def test_a_delta_for_the_client_that_has_the_base() -> None:
    """Views D14: the view before this one, by its number; otherwise, or if it asks, the whole list."""
    messages, former, view = ViewMessages(), big(3, A), big(4, A, B)
    delta = messages.make(client(3), view, former)
    assert (delta.base, delta.members, delta.gone, delta.size) == (former.id, (member(B),), (), 52)
    for whole in (
        messages.make(client(2), view, former),
        messages.make(client(3, want_full=True), view, former),
        messages.make(client(3), view, None),
    ):
        assert (whole.base, len(whole.members)) == (None, 52)


def test_a_delta_is_made_once(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Views D14: 700 clients of one server get the same one."""
    messages, former, view = ViewMessages(), big(3, A), big(4, A, B)
    first, second = messages.make(client(3), view, former), messages.make(client(3), view, former)
    assert first.members is second.members
    third = messages.make(client(4), big(5, A), view)
    assert third.gone == (B.name,)


def test_a_delta_that_does_not_fit_is_none() -> None:
    """Views D14: another base, no view at all, a list that does not come out with the digest or the size."""
    former, view = big(3, A), big(4, A, B)
    message = ViewMessages().make(client(3), view, former)
    assert applied(message, None) is None
    assert applied(message, big(2, A)) is None
    assert applied(message, big(3, C)) is None
    assert applied(replace(message, size=51), former) is None
    assert applied(replace(message, digest=b"x" * 16), former) is None
    assert applied(replace(message, members=(member(C),)), former) is None
    assert applied(replace(message, gone=("c0",)), former) is None


def test_the_list_is_in_order_whatever_the_order_of_the_message() -> None:
    """host.View: members are sorted by id, and each name is there once."""
    view = view_of(4, member(A), member(B), member(C))
    message = ViewMessages().make(client(0), view, None)
    assert applied(replace(message, members=message.members[::-1]), None) == view
    assert applied(replace(message, members=message.members * 2), None) == view


def test_a_crash_among_two_thousand_costs_a_client_less_than_a_kilobyte() -> None:
    """Views D14, CB-S1: one name instead of a list of 60 kB."""
    from msgspec import msgpack

    all_members = [member(NodeId(f"host-{i:04}.example.org", 1_753_000_000_000 + i), 3) for i in range(CLIENTS_MAX)]
    former, view = view_of(3, *all_members), view_of(4, *all_members[1:])
    assert len(msgpack.encode(ViewMessages().make(client(3), view, former))) < 1000
    assert len(msgpack.encode(ViewMessages().make(client(0), view, former))) > 60_000
