"""Posting: the row by which this member stands for a name.  Spec: election 2, D13."""

from __future__ import annotations

from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.ranks import Post, decode, encode, health_of, rank_key, row_of, unread_health
from holdfast.host import NodeId


class Posting:
    """Rows of one member; a tag that changed makes a newer one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._inc = 0  # the last that this life used, over all names

    def refresh(self, contest: Contest) -> None:
        """Publish the row of this member as it should be now. Raises ConfigError if the membership has no room for it."""
        core = self._core
        if not contest.stands:
            self.withdraw(contest)
            return
        me = core.lists.get(core.me.name)
        tags = {} if me is None else me.tags
        health, rank = health_of(contest.manner, tags), rank_key(contest.manner, tags)
        unread = unread_health(contest.manner, tags)
        if unread != contest.unread:
            contest.unread = unread
            core.counts["health_unread"] += bool(unread)
        if contest.posted and encode(Post(contest.manner, contest.inc, rank, health)) == contest.posted:
            return
        post = encode(Post(contest.manner, self._inc + 1, rank, health))
        core.lists.publish(contest.row, post)
        self._inc += 1
        contest.inc, contest.posted, contest.cached = self._inc, post, None

    def otherwise(self, name: str, wanted: Manner) -> tuple[NodeId, Manner] | None:
        """Another candidate of this name that has it elected in another manner."""
        row = row_of(name)
        for member in self._core.others():
            value = member.rows.get(row)
            post = decode(value) if value else None
            if post is not None and post.manner != wanted:
                return member.id, post.manner
        return None

    def withdraw(self, contest: Contest) -> None:
        if contest.posted:
            contest.posted, contest.cached = b"", None
            self._core.lists.publish(contest.row, None)
