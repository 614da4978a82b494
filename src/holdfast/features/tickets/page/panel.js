// Pools of tickets: a box per pool, a cell per ticket. A cell keeps its place whether or not its ticket is held: nothing jumps.

import { byId, el, say, set } from "../dom.js";
import { plural, spanText } from "../text.js";

const BOXES_MOST = 40;
const CELLS_MOST = 64; // of one box; of a larger pool only those that are held are shown

export const numbered = ["ticket"]; // kinds of grants

export const words = {
  "tickets.TicketQueued": (f) => ["", null, `This agent waits for a ticket of ${f.pool}`, f.position === 1 ? "It is the next one." : `Position ${f.position}`],
  "tickets.TicketAcquired": (f) => ["hold", null, `This agent owns ticket ${f.number} of ${f.pool}`, ""],
  "tickets.TicketAtRisk": (f) => ["doubt", null, `Ticket ${f.number} of ${f.pool} is at risk`, "A round passed without a majority of its guardians."],
  "tickets.TicketLost": (f) => ["dead", null, `This agent lost ticket ${f.number} of ${f.pool}`, f.why],
  "tickets.TicketReleased": (f) => ["", null, `This agent gave ticket ${f.number} of ${f.pool} back`, ""],
  "tickets.HandedOver": (f) => ["hold", null, `Ticket ${f.number} of ${f.pool} went to the first who waited`, ""],
  "tickets.Excluded": (f) => ["dead", null, `Ticket ${f.number} of ${f.pool} was reclaimed`, `By the holder of ticket ${f.by}.`],
  "tickets.ArcChanged": (f) => ["", null, `Ticket ${f.number} of ${f.pool} stands for ${f.length} now`, "Its own, and free ones that its holder can give away."],
  "tickets.AnchorTaken": (f) => ["hold", null, `This agent took the first ticket of ${f.pool}`, `Token ${f.token}`],
  "tickets.CellLost": (f) => ["dead", f.holder, `: a ticket of ${f.pool} has no majority of guardians left`, "Until they come back, or an operator abandons it."],
};

/** Only there when some pool is known. */
export default class PoolsPanel {
  constructor() {
    this.lists = { tickets: (list) => this.show(list) };
    this.boxes = new Map();
    this.root = byId("pool-boxes");
  }

  show({ pools, timing }) {
    byId("pools").hidden = pools.length === 0;
    say(byId("pool-count"), pools.length > BOXES_MOST ? `${BOXES_MOST} of ${plural(pools.length, "pool")}` : "");
    say(byId("pool-promise"), timing ? `A dead host gives its tickets back after ${spanText(timing.lease)}` : "");
    const shown = pools.slice(0, BOXES_MOST);
    const names = new Set(shown.map((each) => each.pool));
    for (const [name, box] of this.boxes) if (!names.has(name)) this.drop(name, box);
    shown.forEach((pool, at) => {
      const box = this.boxes.get(pool.pool) ?? this.add(pool.pool);
      box.show(pool);
      if (this.root.children[at] !== box.root) this.root.insertBefore(box.root, this.root.children[at] ?? null);
    });
  }

  add(name) {
    const box = new Box(name);
    this.boxes.set(name, box);
    return box;
  }

  drop(name, box) {
    box.root.remove();
    this.boxes.delete(name);
  }
}

class Box {
  constructor(name) {
    this.cells = new Map();
    this.sum = el("span", { class: "sum" });
    this.waiting = el("span", { class: "waiting", title: "Clients of this agent that ask for one, and clients that queue at a ticket that is held here" });
    this.more = el("p", { class: "more" });
    this.list = el("ol");
    this.root = el("article", { class: "pool", "data-pool": name }, el("h3", {}, el("b", { dir: "auto" }, name), this.sum, this.waiting), this.list, this.more);
  }

  show({ of, tickets, waiting }) {
    const held = new Map(tickets.map((each) => [each.number, each]));
    const numbers = of <= CELLS_MOST ? [...Array(of).keys()] : tickets.map((each) => each.number).slice(0, CELLS_MOST);
    say(this.sum, `${tickets.length} of ${of || "?"} held`);
    say(this.waiting, waiting ? `${plural(waiting, "waiter")}` : "");
    const hidden = tickets.length - numbers.filter((each) => held.has(each)).length;
    say(this.more, of > CELLS_MOST ? `${of - tickets.length} free${hidden ? `, ${hidden} more held` : ""}` : "");
    for (const [number, cell] of this.cells) if (!numbers.includes(number)) this.drop(number, cell);
    numbers.forEach((number, at) => {
      const cell = this.cells.get(number) ?? this.add(number);
      this.update(cell, held.get(number));
      if (this.list.children[at] !== cell.root) this.list.insertBefore(cell.root, this.list.children[at] ?? null);
    });
  }

  add(number) {
    const cell = { holder: el("b", { dir: "auto" }), token: el("span", { class: "token" }), last: null };
    cell.root = el("li", { "data-ticket": number }, el("i", {}, String(number)), cell.holder, cell.token);
    this.cells.set(number, cell);
    return cell;
  }

  drop(number, cell) {
    cell.root.remove();
    this.cells.delete(number);
  }

  /** `ticket`: who holds it; undefined if it is free. */
  update(cell, ticket) {
    const token = ticket?.token ?? null;
    say(cell.holder, ticket?.holder ?? "free");
    say(cell.token, token === null ? "" : String(token));
    const told = Object.entries(ticket?.metadata ?? {}).map(([key, value]) => `${key} ${value}`);
    if (ticket?.me) told.unshift("held by a client of this agent");
    set(cell.root, { "data-is": ticket ? "held" : "free", "data-holder": ticket?.holder, "data-me": ticket?.me, title: told.join(", ") || null });
    if (token !== null && cell.last !== null && token !== cell.last) this.light(cell.root);
    cell.last = token ?? cell.last;
  }

  /** Another holder: its cell lights up once. */
  light(root) {
    root.classList.remove("taken");
    void root.offsetWidth; // so that the animation begins anew
    root.classList.add("taken");
  }
}
