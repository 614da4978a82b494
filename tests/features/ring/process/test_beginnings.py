"""How a ring of real processes begins, and whom it refuses.  Spec: ring 3 (fingerprint), 5.7, D20; foundation F4."""

from __future__ import annotations

from benchmarks.ring_fleet import Fleet, Settings, fleet, free_addresses, name_of
from tests.features.ring.process.record import wrongs

LEASE = 0.6
OTHER_LEASE = 0.9


def test_three_seeds_found_one_ring() -> None:
    """Ring D20: three processes with the same seeds, started together, nobody told to found: one ring, founded once."""
    addresses = dict(zip("abc", free_addresses(3), strict=True))
    with fleet(Settings(lease=LEASE, seeds=tuple(addresses.values()), keys=("x",))) as it:
        for name, address in addresses.items():
            it.start({name: address})
        it.until_agreed("abc", "three seeds are one ring")
        assert len(it.found("BecameMember", founded=True)) == 1
        assert {line["ring"] for line in it.found("BecameMember")} == {it.view["a"]["ring"]}
        it.until(lambda: it.found("Owned"), "somebody owns the key")
        assert wrongs(it.lines) == []


def test_another_lease_is_refused_by_name_and_can_be_adopted() -> None:
    """F4, ring 3: T_l = 0.9 knocks at T_l = 0.6: both ends name the field and both values; adopting the ring's, it joins."""
    *inside, first, second = free_addresses(5)
    members = dict(zip("abc", inside, strict=True))
    with fleet(Settings(lease=LEASE, seeds=(inside[0],))) as it:
        it.start(members, "--found", "a")  # Several in one process.
        it.until_agreed("abc", "three members are one ring")
        other = it.settings._replace(lease=OTHER_LEASE)
        refused = it.start({"d": first}, settings=other)
        it.until(lambda: mismatches(it, "d") and mismatches(it, "a"), "both ends say what is wrong")
        assert ("T_l", repr(OTHER_LEASE), repr(LEASE)) in mismatches(it, "d")
        assert ("T_l", repr(LEASE), repr(OTHER_LEASE)) in mismatches(it, "a")
        assert it.found("BecameMember", node=it.view["d"]["node"]) == []
        refused.end()
        it.start({"e": second}, "--adopt", settings=other)
        it.until_agreed("abce", "it joined with the ring's numbers")
        assert [line["lease"] for line in it.found("Started") if name_of(line) == "e"][-1] == LEASE
        assert wrongs(it.lines) == []


def mismatches(it: Fleet, name: str) -> set[tuple[str, str, str]]:
    """Field, ours and theirs, as this member reported them."""
    return {(line["field"], line["ours"], line["theirs"]) for line in it.found("ConfigMismatch") if name_of(line) == name}
