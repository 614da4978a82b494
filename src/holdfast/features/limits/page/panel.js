// Rate limits: the busiest as lines over the last two minutes, all others as a table. A card keeps its place while others come and go.

import { byId, el, say, set } from "../dom.js";
import { plural, spanText } from "../text.js";
import { Card, Samples, amount } from "./card.js";

const DRAWN_MOST = 12; // cards; the agent tells of four more with each beat, so that one that grows busy has its lines already
const SWAP_MS = 10000; // between two cards that make room for a busier limit: two that are as busy shall not take turns all the time

const ofPeers = (peers) => peers.map((each) => each.name).join(", ");

export const words = {
  LimitChanged: (f) => ["", null, `Limit ${f.name} is ${amount(f.rate)} a second now`, `At most ${amount(f.burst)} at once; set by ${f.by}.`],
  LimitPanicked: (f) => ["dead", null, `Limit ${f.name}: this agent has no view`, `It uses ${amount(f.rate)} a second at most.`],
  LimitRestored: (f) => ["hold", null, `Limit ${f.name}: this agent has a view again`, `It may use ${amount(f.rate)} a second.`],
  LinkBlacklisted: (f) => ["doubt", f.peer, "is reached by no direct message", "What limits say goes round by the servers."],
  LinkRestored: (f) => ["hold", f.peer, "is reached by direct messages again", ""],
  FleetExceeded: (f) => ["doubt", null, `Limit ${f.name} is divided for ${plural(f.fleet, "member")}, and there are ${f.size}`, ""],
  SpecConflict: (f) => ["doubt", null, `Limit ${f.name} has two rates: ${amount(f.rate)} counts, ${amount(f.refused)} does not`, `Set by ${f.by}.`],
  ChokePoint: (f) => ["doubt", null, `${plural(f.cut, "direct link")} left between two parts of the view`, `The smaller part: ${ofPeers(f.smaller_side)}`],
  Starved: (f) => ["dead", null, `Limit ${f.name} is starved`, `Callers have waited for ${spanText(f.seconds)}, and this agent has next to nothing.`],
  "limits.InstanceBegan": (f) => ["", null, `Limits begin anew among ${plural(f.size, "member")}`, f.provisional ? "A peer knows this view; the server has not delivered it yet." : ""],
  "limits.InstanceConfirmed": () => ["hold", null, "The view that a peer knew was delivered", ""],
  "limits.Panicked": (f) => ["dead", null, "Limits go on without a view", f.why],
  "limits.Calmed": () => ["hold", null, "Limits have a view again", ""],
  "limits.Lapsed": () => ["", null, "Limits: no other agent counts on this one any more", "It takes its own part again, and none of the view's."],
  "limits.Raised": (f) => ["hold", null, `Limit ${f.name}: this agent has its own part again`, ""],
  "limits.QuotaGiven": (f) => ["", f.to, "was given quota", ""],
  "limits.QuotaTaken": (f) => ["", f.by, "gave quota", ""],
  "limits.Reconciled": (f) => ["", f.peer, "and this agent agree on what got lost between them", ""],
  "limits.WentQuiet": () => ["", null, "Nothing changes: limits say little", ""],
  "limits.Woke": () => ["", null, "Something changes: limits say more", ""],
};

/** How the agent orders them, too: where callers wait, then by how much of the rate is wanted. */
export function byBusiness(one, other) {
  const wanted = (each) => Math.max(each.shared ?? 0, each.demand) / (each.rate || each.set_rate);
  return Number(other.waiters > 0) - Number(one.waiters > 0) || wanted(other) - wanted(one) || (one.name < other.name ? -1 : 1);
}

/** Only there while this agent knows a limit. */
export default class LimitsPanel {
  constructor() {
    this.lists = { limits: (list) => this.list(list) };
    this.samples = new Map(); // name -> its last two minutes, of those of the last beats
    this.cards = new Map(); // in the order of their places
    this.limits = []; // all, as they were told last
    this.swappedAt = -SWAP_MS;
    this.rows = byId("limit-rows");
  }

  /** All limits: when one comes, goes or is changed, and every ten seconds. */
  list({ limits }) {
    this.limits = [...limits].sort(byBusiness);
    byId("limits").hidden = limits.length === 0;
    for (const name of [...this.cards.keys()]) if (!limits.some((each) => each.name === name)) this.drop(name);
    this.listOthers();
  }

  /** The busiest ones, four times a second. */
  pulse({ limits }) {
    const told = limits?.lines ?? [];
    const now = performance.now();
    const names = new Set(told.map((each) => each.name));
    for (const name of [...this.samples.keys()]) if (!names.has(name)) this.samples.delete(name);
    const fresh = told.filter((each) => this.sampled(each, now));
    const drawn = this.cards.size;
    this.choose(told, now);
    for (const each of told) this.cards.get(each.name)?.show(each, fresh.includes(each) || drawn !== this.cards.size ? this.samples.get(each.name).all : null, now);
    if (!limits) return;
    say(byId("limit-count"), limits.count > this.cards.size ? `${this.cards.size} of ${limits.count} drawn` : String(limits.count));
    const over = told[0]?.over;
    say(byId("limit-promise"), over === "members" ? "Over the member list, which members may see differently" : limits.blacklisted.length ? `Not reached directly: ${limits.blacklisted.join(", ")}` : "");
  }

  sampled(limit, now) {
    if (!this.samples.has(limit.name)) this.samples.set(limit.name, new Samples());
    return this.samples.get(limit.name).add(now, limit);
  }

  /** Which ones have a card. Those that the agent does not tell of make room at once, others one after the other. */
  choose(told, now) {
    const ranks = new Map(told.map((each, rank) => [each.name, rank]));
    const wanted = told.slice(0, DRAWN_MOST).map((each) => each.name).filter((name) => !this.cards.has(name));
    const before = this.cards.size;
    for (const name of wanted) {
      const least = [...this.cards.keys()].sort((one, other) => (ranks.get(other) ?? Infinity) - (ranks.get(one) ?? Infinity))[0];
      if (this.cards.size < DRAWN_MOST) this.put(name, null);
      else if (!ranks.has(least)) this.put(name, least);
      else if (now - this.swappedAt >= SWAP_MS) {
        this.swappedAt = now;
        this.put(name, least);
      }
    }
    if (told.length <= DRAWN_MOST) for (const name of [...this.cards.keys()]) if (!ranks.has(name)) this.drop(name);
    if (wanted.length || before !== this.cards.size) this.listOthers();
  }

  put(name, instead) {
    const card = new Card(name);
    if (instead === null) byId("limit-cards").append(card.root);
    else {
      this.cards.get(instead).root.replaceWith(card.root);
      this.cards.delete(instead);
    }
    this.cards.set(name, card);
  }

  drop(name) {
    this.cards.get(name).root.remove();
    this.cards.delete(name);
  }

  /** The others as lines, the busiest first; so many as a group can have. */
  listOthers() {
    const others = this.limits.filter((each) => !this.cards.has(each.name));
    byId("limit-others").hidden = others.length === 0;
    while (this.rows.children.length > others.length) this.rows.lastChild.remove();
    others.forEach((each, at) => this.row(this.rows.children[at] ?? this.rows.appendChild(newRow()), each));
  }

  row(row, limit) {
    const numbers = limit.state ? [limit.shared, limit.share, limit.waiters].map(amount) : ["", "", ""];
    const texts = [limit.name, limit.policy, `${amount(limit.rate || limit.set_rate)}/s`, ...numbers, limit.state || "not used here"];
    set(row, { "data-limit": limit.name });
    texts.forEach((text, at) => say(row.children[at].firstElementChild ?? row.children[at], text));
  }
}

const newRow = () => el("tr", {}, el("td", {}, el("bdi")), el("td"), ...[1, 2, 3, 4].map(() => el("td", { class: "num" })), el("td"));
