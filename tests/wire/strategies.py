"""Hypothesis strategies: any message of the sample types, any envelope."""

from __future__ import annotations

from hypothesis import strategies as st

from fuzz.messages import Discover, Offer, Renewal, Row, RowsPage, Span
from holdfast.host import Address, NodeId
from holdfast.node import OtherFingerprint, WrongLife
from holdfast.wire.codec import BOOT_MAX

INT64 = st.integers(-(1 << 63), (1 << 64) - 1)
names = st.text(min_size=1, max_size=64).filter(lambda name: name.isprintable() and len(name.encode("utf-8", "replace")) <= 64)
node_ids = st.builds(NodeId, names, st.integers(1, BOOT_MAX))
any_node_ids = st.builds(NodeId, st.text(max_size=64), st.integers(0, BOOT_MAX))
addresses = st.builds(Address, st.text(max_size=255), st.integers(0, 65_535))
seconds = st.floats(0.0, 1e12)
digests = st.binary(max_size=32)
topics = st.text(min_size=1, max_size=32)
rows = st.builds(Row, any_node_ids, st.binary(), st.none() | seconds)

messages = st.one_of(
    st.builds(Discover, INT64, addresses),
    st.builds(Renewal, INT64, INT64, seconds, any_node_ids, st.lists(INT64).map(tuple), digests),
    st.builds(RowsPage, topics, st.lists(rows, max_size=4).map(tuple), digests, st.booleans()),
    st.builds(
        Offer,
        st.integers(0, 1 << 53),
        st.none() | any_node_ids,
        st.lists(st.tuples(any_node_ids, addresses), max_size=3).map(tuple),
        st.none() | st.dictionaries(topics, INT64, max_size=3),
        st.none() | st.text(),
    ),
    st.tuples(INT64, INT64).map(sorted).map(lambda pair: Span(*pair)),
    st.builds(WrongLife, st.integers(0, BOOT_MAX)),
    st.builds(OtherFingerprint, st.integers(0, 65_535), st.binary(max_size=512), st.booleans()),
)
fingerprints = st.just(b"") | st.binary(min_size=8, max_size=8)
boots = st.integers(0, BOOT_MAX)
