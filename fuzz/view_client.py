"""A client of views alone against servers, a network and a clock that do all that is allowed.  Spec: views 7, G2, G5, G7, D24, D28.

Each ping may reach its server at any time, or more than once, or never; each answer may reach the client at any time, in any order and
again. The oracle knows when each ping was sent. In some runs a peer lies too; then only what needs no truth is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from msgspec.structs import replace

from fuzz.view_host import BOOT, EPSILON, Menu, Note, Run, slots_of
from fuzz.view_servers import NONE, Server, Servers
from holdfast.events import Event, ViewChanged, ViewLost
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import Detached
from holdfast.features.views.protocol.messages import (
    BUSY,
    CHANGING,
    DELIVERED,
    NO_PATH,
    NOT_A_MEMBER,
    RECEIVER_LOST,
    STABLE,
    TYPES,
    ClientPing,
    ClientPong,
    HopAck,
    OvData,
    OvResult,
    StartChange,
    ViewMsg,
)
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.host import Address, Carried, Message, NodeId, ViewId, ViewMember, ViewState

ME = NodeId("me", BOOT)
POOL_MAX = 150  # messages under way; the oldest are lost
PINGS_MAX = 60  # that may still reach their server
LIARS = 0.12  # of all runs


class Sending:
    """A message that was given to ``carry``."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.mid = 0  # its id; 0: it was not sent
        self.outcomes: list[Carried] = []


class ClientRun(Run):
    """One client, one history."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, trace)
        random = self.random
        self.lies = random.random() < LIARS
        self.inbox.strict = not self.lies
        self.pings: list[tuple[int, ClientPing]] = []  # with the slot that each was sent to
        self.sent_at: dict[tuple[int, int], float] = {}  # (attach, seq) -> when
        self.stamps: dict[tuple[int, int, float], None] = {}  # (attach, boot, stamp) of pongs that were delivered
        self.pool: list[tuple[NodeId, Message]] = []
        self.allowed: dict[ViewId, float] = {}  # until when answers allow a lease on a view
        self.installed: ViewId | None = None  # by the client that takes part now
        self.last_num = self.attach = self.seq = 0
        self.installed_at = -inf
        self.left_at: float | None = -inf  # no view was ever installed
        self.may_be_stable = False
        self.heard = (NONE, 0, 0)  # attach number, the highest startChange counter that came in it, and the highest that surely counted
        self.leased_until = -inf  # as it was at the last look
        self.confirmed: dict[int, None] = {}  # message ids of which a server said that they were delivered
        self.letters: list[OvData] = []  # that others sent to this client
        self.giving: Message | None = None  # what is delivered now
        self.echo = 0  # of the message that brought the view
        self.mids = 0
        self.sendings: list[Sending] = []
        self.excused_at = 0.0  # it was stopped at that time, so deadlines count from then
        config = ViewsConfig(heartbeat=random.choice((0.1, 0.25, 1.0)), rho=random.choice((0.0, 0.001, 0.05)))
        slots = slots_of(random.choice((1, 2, 3, 3, 5)), named=random.random() < 0.8)
        self.set_up(ME, config, slots, None)
        self.servers = Servers(random, config, slots, ME, self.host.address)
        self.host.turn(self.node.take_part)

    def play(self) -> None:
        self._menu().play(self.random.randint(100, 500))
        self.wake()
        self._note_left()
        self.host.turn(self.node.stop)
        for sending in self.sendings:
            if len(sending.outcomes) != 1:
                self.fail(f"5.7: done ran {len(sending.outcomes)} times")
        self.counts["skipped"] += len(self.servers.skipped)
        self.counts["handed on"] += len(self.inbox.received)

    def _menu(self) -> Menu:
        return Menu(self.random, {
            self._exchange: 30, self._pass: 25, self._reach: 10, self._arrive: 14, self._agree: 7, self._settle: 7,
            self._forget: 0.7, self._restart: 0.5, self._silence: 0.7, self._pause: 0.6, self._jump: 1.0, self._trip: 0.5,
            self._come_back: 0.3, self._carry: 3, self._receive: 3, self._lie: 6 if self.lies else 0,
        })  # fmt: skip

    # What the environment does.

    def _exchange(self) -> None:
        """As in calm: the newest ping reaches its server, and the answers come at once."""
        if not self.pings:
            return
        slot, ping = self.pings[-1]
        server = self.servers.now[slot]
        if self.random.random() < 0.4:
            self._put(server, self.servers.settle(server))
        for message in self.servers.answer(server, ping, self.host.now):
            self._put(server, message)
            self._give(server.life, message)

    def _reach(self) -> None:
        """Any ping of the last ones reaches its slot, perhaps again; the answers are under way."""
        if self.pings:
            slot, ping = self.random.choice(self.pings)
            server = self.servers.now[slot]
            for message in self.servers.answer(server, ping, self.host.now):
                self._put(server, message)

    def _arrive(self) -> None:
        """Any message that is under way, and perhaps it will come again."""
        if not self.pool:
            return
        newest = self.random.random() < 0.5
        at = len(self.pool) - 1 - int(self.random.expovariate(0.5)) if newest else self.random.randrange(len(self.pool))
        source, message = self.pool[max(0, at)]
        if self.random.random() < 0.5:
            del self.pool[max(0, at)]
        self._give(source, message)

    def _agree(self) -> None:
        """Some servers agree on a view, and the others perhaps on another one; each of them delivers it now, later or never."""
        servers = self.servers.now
        group = [server for server in servers if self.random.random() < 0.75] or [self.random.choice(servers)]
        others = [server for server in servers if server not in group and self.random.random() < 0.7]
        for part in (group, others) if others else (group,):
            for server, notice in zip(part, self.servers.agree(part), strict=True):
                self._put(server, notice)
                if self.random.random() < 0.6:
                    self._put(server, self.servers.settle(server))

    def _settle(self) -> None:
        server = self.random.choice(self.servers.now)
        self._put(server, self.servers.settle(server))

    def _forget(self) -> None:
        server = self.random.choice(self.servers.now)
        self._put(server, self.servers.forget(server))

    def _restart(self) -> None:
        life = self.servers.restart(self.random.randrange(len(self.slots))).life
        self.note(f"{life} begins")

    def _pass(self) -> None:
        self.pass_time(self.hb * self.random.choice((0.01, 0.1, 0.3, 0.7, 1.0, 1.0, 1.3, 2.0)))

    def _silence(self) -> None:
        self.pass_time(self.hb * self.random.uniform(3.0, 14.0))

    def _pause(self) -> None:
        self.excused_at = self.host.now + (seconds := self._stop_length())
        self.pause(seconds)

    def _jump(self) -> None:
        self.excused_at = self.host.now + (seconds := self._stop_length())
        self.jump(seconds)

    def _stop_length(self) -> float:
        return self.hb * self.random.choice((0.5, 2.0, 5.0, 6.0, 7.0, 30.0)) * self.random.random()

    def _trip(self) -> None:
        self.note("trip")
        tripped: list[bool] = []
        self.host.turn(lambda: tripped.append(self.node.trip("the fuzzer says so")))
        if tripped[0]:
            if self.node.state is not ViewState.LOST:
                self.fail("5.7: it tripped, and still believes in its view")
            self.counts["tripped"] += 1

    def _come_back(self) -> None:
        """It leaves the view, and takes part again."""
        self.note("withdraws and comes back")
        self._note_left()
        self.host.turn(self.node.withdraw)
        if self.node.state is not ViewState.LOST:
            self.fail("it takes part no more, and has a view")
        self.installed, self.seq, self.echo = None, 0, 0
        self.may_be_stable = False
        if self.random.random() < 0.5:
            self._pass()
        self.host.turn(self.node.take_part)

    def _carry(self) -> None:
        members = () if self.node.view is None else self.node.view.members
        to = self.random.choice(members).id if members else NodeId("c1", 1)
        sending = Sending(self.host.now)
        self.sendings.append(sending)
        self.note(f"carry to {to}")
        self.host.turn(lambda: self.node.carry(to, Note(len(self.sendings)), sending.outcomes.append))
        if not sending.outcomes:
            self.mids += 1
            sending.mid = self.mids
        elif self.node.state is not ViewState.LOST and members:
            self.fail(f"5.7: a message for a member is not carried: {sending.outcomes}")

    def _receive(self) -> None:
        """A server brings a message of a member of a view that both were in, or a copy of an earlier one, however late."""
        random = self.random
        if self.letters and random.random() < 0.5:
            letter = random.choice(self.letters)
        else:
            known = self.installed if self.installed in self.servers.views and random.random() < 0.8 else None
            view = self.servers.views[known] if known is not None else random.choice(list(self.servers.views.values()) or [None])
            if view is None or view.find(ME.name) is None:
                return
            parcel = self.node._parcels.pack(Note(len(self.letters) + 1))
            assert parcel is not None
            sender, dst = random.choice(view.members).id, ME if random.random() < 0.9 else NodeId(ME.name, BOOT - 1)
            letter = OvData(sender, len(self.letters) + 1, dst, view.id, parcel, 0, 0, last=True)
            self.letters.append(letter)
        self._put(random.choice(self.servers.now), replace(letter, hop=random.randint(1, 9)))

    def _lie(self) -> None:
        if self.random.random() < 0.2:
            self._lie_of_view()
            return
        kinds: tuple[type[Message], ...] = (ClientPong, ClientPong, StartChange, ViewMsg, *TYPES)
        kind = self.random.choice(kinds)
        present = () if self.node.client is None else (self.attach, self.seq, self.last_num, self.node.client.attach)
        self.shapes.hot = [*present, ME.name, self.node.client.server.name if self.node.client and self.node.client.server else "s0"]
        message = self.lie(kind)
        if message is not None:
            source = self.random.choice([*self.servers.lives, ME, NodeId("stranger", 3)])
            self.counts["lies"] += 1
            self._give(source, message)

    def _lie_of_view(self) -> None:
        """A list that comes out with its digest, of a server that the client believes, and with the client not in it as it should be."""
        client, random = self.node.client, self.random
        if client is None or client.server is None:
            return
        servers = tuple(sorted(random.choice(((client.server,), (client.server, NodeId("s9", 1)), (NodeId("s9", 1),)))))
        me = random.choice((ME, NodeId(ME.name, BOOT - 1), NodeId("other", 1)))
        member = ViewMember(me, self.host.address, self.attach + random.choice((0, 0, 1, -1)), client.server)
        view_id = ViewId(self.last_num + random.choice((0, 1, 1, 1, 1000)), servers[0].name, servers[0].boot)
        echo = self.seq + random.choice((0, 0, 0, 1, -1))
        message = ViewMsg(self.attach, max(0, echo), view_id, servers, None, (member,), (), 1, digest_of(servers, (member,)), 1)
        self.counts["lies"] += 1
        self._give(client.server, message)

    def _put(self, server: Server, message: Message | None) -> None:
        if message is not None:
            self.pool.append((server.life, message))
            if self.lies:
                self.harvest.note(message)
            if len(self.pool) > POOL_MAX:
                del self.pool[0]

    def _give(self, source: NodeId, message: Message) -> None:
        """To the client. What it may do with it is known before."""
        forbidden = False
        if isinstance(message, ClientPong):
            forbidden = self._expect_pong(source, message)
        elif isinstance(message, StartChange):
            overtaken = message.num <= self.last_num  # by the view that the change ended with
            forbidden = self._expect_change(source, message.attach, message.sc, newer=True, counts=True) and not overtaken
        elif isinstance(message, ViewMsg):
            self._expect_lease(message.attach, message.echo, message.id)
        elif isinstance(message, OvResult) and message.ok:
            self.confirmed[message.mid] = None
        was, self.giving = self.node.state, message
        self.deliver(source, message)
        if forbidden and self.node.state is ViewState.STABLE and not self.lies:
            self.fail(f"5.6: it was told of a change, and says that it is stable: {message!r}")
        former = isinstance(message, ClientPong) and message.attach == self.heard[0] and message.sc < self.heard[2]
        if former and was is not ViewState.STABLE and self.node.state is ViewState.STABLE and not self.lies:
            self.fail(f"5.6: an answer from before a change makes it stable: {message!r}")

    # What answers allow.

    def _expect_pong(self, source: NodeId, pong: ClientPong) -> bool:
        """True: this pong says "changing", and the client has to believe it."""
        self.stamps[pong.attach, source.boot, pong.stamp] = None
        if pong.state == STABLE and pong.view is not None:
            self._expect_lease(pong.attach, pong.seq, pong.view)
        known = self.host.now - self.sent_at.get((pong.attach, pong.seq), -inf) <= 6 * self.hb and pong.seq > self.echo
        forbidden = self._expect_change(source, pong.attach, pong.sc, newer=False, counts=known and pong.state == CHANGING)
        return forbidden and known and pong.state == CHANGING

    def _expect_change(self, source: NodeId, attach: int, sc: int, *, newer: bool, counts: bool) -> bool:
        client = self.node.client
        if client is None or client.server != source or attach != self.attach:
            return False
        highest, counted = self.heard[1:] if self.heard[0] == attach else (0, 0)
        self.heard = attach, max(highest, sc), max(counted, sc) if counts else counted
        return sc > highest or (sc == highest and not newer)

    def _expect_lease(self, attach: int, seq: int, view_id: ViewId) -> None:
        """A server answered that ping with this view: the one reason for a lease, from when the ping was sent."""
        if attach == self.attach and (attach, seq) in self.sent_at:
            until = self.sent_at[attach, seq] + self.held
            self.allowed[view_id] = max(self.allowed.get(view_id, -inf), until)
            self.may_be_stable = True

    # What the client does.

    def on_send(self, to: NodeId | Address, message: Message) -> None:
        if self.tracing:
            self.note(f"-> {to}: {message!r}")
        if isinstance(message, ClientPing):
            self._on_ping(to, message)
        elif isinstance(message, OvData):
            self._on_data(to, message)
        elif not isinstance(message, HopAck):
            self.fail(f"a client sends {message!r}")

    def _on_ping(self, to: NodeId | Address, ping: ClientPing) -> None:
        slot = next(slot.number for slot in self.slots if slot.address == to)
        if ping.attach != self.attach or ping.seq <= self.seq or ping.last_num != self.last_num:
            self.fail(f"5.6: a ping with old numbers: {ping!r}")
        if (ping.server, ping.stamp) != (0, 0.0) and (ping.attach, ping.server, ping.stamp) not in self.stamps:
            self.fail(f"D11: a ping echoes what no server gave in this attachment: {ping!r}")
        self.seq = ping.seq
        self.sent_at[ping.attach, ping.seq] = self.host.now
        self.pings.append((slot, ping))
        if len(self.pings) > PINGS_MAX:
            del self.pings[0]

    def _on_data(self, to: NodeId | Address, data: OvData) -> None:
        """Its server takes the hop or not, and says something about it or not."""
        assert isinstance(to, NodeId)
        if data.src != ME or data.last or not 1 <= data.mid <= len(self.sendings):
            self.fail(f"5.7: it sends {data!r}")
        server = self.servers.lives.get(to)
        if server is None or (server is not self.servers.now[server.slot.number]):
            return  # An earlier life, or the invention of a peer that lies.
        if self.random.random() < 0.6:
            self._put(server, HopAck(data.hop))
        if self.random.random() < 0.4:
            why = self.random.choice((DELIVERED, DELIVERED, NOT_A_MEMBER, NO_PATH, RECEIVER_LOST, BUSY))
            self._put(server, OvResult(ME, data.mid, why == DELIVERED, why, 0, 3))

    def on_event(self, event: Event) -> None:
        if self.tracing:
            self.note(f"* {event!r}")
        if isinstance(event, Detached):
            if event.attach <= self.attach:
                self.fail(f"D9: attach number {event.attach} after {self.attach}")
            self.counts["moved"] += event.attach > 1
            self.attach = event.attach
            self.may_be_stable = False
            self._note_left()
            if event.why.startswith("tripped"):
                self.allowed.clear()  # D28: a trip voids the lease. Only a view with the next attachment brings another one.
        elif isinstance(event, ViewLost):
            self.counts["expired"] += not event.why.startswith("tripped")
        elif isinstance(event, ViewChanged):
            self._on_installed(event)

    def _note_left(self) -> None:
        if self.left_at is None:
            self.left_at = self.host.now

    def _on_installed(self, event: ViewChanged) -> None:
        view = event.view
        if view.number <= self.last_num:
            self.fail(f"CB2: it installs {view.number} after {self.last_num}")
        me = view.find(ME.name)
        if me is None or (me.id, me.attach) != (ME, self.attach):
            self.fail(f"CB3: it installs a view with {me} in its attachment {self.attach}")
        if not self.lies and self.servers.views.get(view.id) != view:
            self.fail(f"CB5: no server delivered {view!r}; it was {self.servers.views.get(view.id)!r}")
        assert isinstance(self.giving, ViewMsg)
        self.last_num, self.installed, self.echo = view.number, view.id, self.giving.echo
        self.installed_at, self.left_at = self.host.now, None
        self.servers.skipped.pop(view.id, None)
        self.counts["installed"] += 1

    # The rules.

    def after(self) -> None:
        """Compares what the client says of itself with what it was told."""
        node, now = self.node, self.host.now
        until, state = node.leased_until, node.state
        if now >= until or node.client is None:
            if state is not ViewState.LOST or node.view is not None or node.settled:
                self.fail(f"F9: its lease ended at {until - 1000.0:.3f}, and it is {state.name}")
        else:
            self._check_lease(until)
        self.leased_until = until
        if state is ViewState.STABLE and not self.may_be_stable:
            self.fail("5.6: no server confirmed this attachment, and it says that it is stable")
        if node.settled and (state is not ViewState.STABLE or now < self.installed_at + self.settle - EPSILON):
            self.fail(f"G6: settled {now - self.installed_at:.3f} s after it installed the view, {state.name}")
        if node.left_at != self.left_at:
            self.fail(f"G6 (c): left at {node.left_at}; it was {self.left_at}")
        self._check_sendings(now)

    def _check_lease(self, until: float) -> None:
        view = self.node.view
        if view is None or self.node.client is None:
            return
        if view.id != self.installed:
            self.fail(f"G2: a lease on {view.id}; it installed {self.installed}")
        allowed = max(self.sent_at.values()) + self.held if self.lies else self.allowed.get(view.id, -inf)
        if until > allowed + EPSILON:
            self.fail(f"D24: leased until {until - 1000.0:.3f}; answers allow {allowed - 1000.0:.3f}")
        me = view.find(ME.name)
        if until > self.leased_until and (me is None or me.attach != self.attach):
            self.fail(f"5.6: a lease is longer for a view with {me}, in attachment {self.attach}")

    def _check_sendings(self, now: float) -> None:
        longest = self.config.ov_deadline + self.config.e2e_rto
        for sending in self.sendings:
            if len(sending.outcomes) > 1:
                self.fail(f"5.7: done ran twice: {sending.outcomes}")
            if sending.outcomes == [Carried.DELIVERED] and sending.mid not in self.confirmed:
                self.fail(f"5.7: message {sending.mid} counts as delivered, and no server said so")
            if not sending.outcomes and not self.stopped and now > max(sending.at, self.excused_at) + longest:
                self.fail(f"G5: nothing became of a message for {now - sending.at:.3f} s")
