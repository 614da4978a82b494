// Health, members, grants, seats: what every agent says in words and numbers. Panels of features stand with the features.

import { byId, el, say, set, svg } from "./dom.js";
import { numberOf } from "./events.js";
import { age, bytes, plural, span, spanText } from "./text.js";

const SAMPLES = 90; // of a sparkline
const ROWS_MOST = 200; // lines of members: thousands would cost the browser more than the rest of the page
const FILTER_FROM = 12; // members: fewer need no filter
const GOING_MS = 900; // a line that goes fades for so long

/** One tile: a title, a number, a note, and what it was lately. */
class Tile {
  constructor(parent, id, title, meaning, { line = false, bar = false } = {}) {
    this.value = document.createTextNode("\u2013");
    this.unit = el("small");
    this.note = el("p", { class: "note" });
    this.root = el("dl", { class: "tile", "data-tile": id, title: meaning }, el("dt", {}, title), el("dd", {}, this.value, this.unit));
    this.root.append(this.note);
    if (line) {
      this.samples = [];
      this.line = svg("polyline");
      this.root.append(svg("svg", { viewBox: "0 0 100 26", preserveAspectRatio: "none", "aria-hidden": "true" }, this.line));
    }
    if (bar) {
      this.bar = el("i");
      this.note.replaceWith(el("div", { class: "bar" }, this.bar));
    }
    parent.append(this.root);
  }

  show([value, unit], { note = "", is = "", sample = null, part = null }) {
    if (this.value.data !== value) this.value.data = value;
    say(this.unit, unit);
    if (!this.bar) say(this.note, note);
    if (this.root.dataset.is !== is) this.root.dataset.is = is;
    if (this.bar && part !== null) this.bar.style.transform = `scaleX(${Math.max(0, Math.min(1, part))})`;
    if (this.line && sample !== null) this.draw(sample);
  }

  draw(sample) {
    this.samples.push(sample);
    if (this.samples.length > SAMPLES) this.samples.shift();
    const most = Math.max(1e-6, ...this.samples) * 1.1;
    const points = this.samples.map((each, i) => `${(100 - (this.samples.length - 1 - i) * (100 / (SAMPLES - 1))).toFixed(1)},${(25 - (each / most) * 24).toFixed(1)}`);
    this.line.setAttribute("points", points.join(" "));
  }
}

export class HealthPanel {
  constructor() {
    const root = byId("health");
    this.safe = new Tile(root, "safe", "Safe for", "No member treats this agent as gone before this time is over; every lease renews it", { bar: true });
    this.rtt = new Tile(root, "rtt", "Round trip", "Longest of the last lease requests and their answers", { line: true });
    this.late = new Tile(root, "late", "Loop lateness", "How late the agent woke when it wanted to", { line: true });
    this.pauses = new Tile(root, "pauses", "Pauses", "Times this process stood still: stopped, suspended, or starved of CPU");
    this.drops = new Tile(root, "drops", "Dropped messages", "Messages that went no further, of whatever reason");
    this.seats = new Tile(root, "seats", "Seats that vote", "Exclusive holds are granted while a majority of the seats votes");
    this.memory = new Tile(root, "memory", "Memory", "Resident memory of the agent, and how many read its events");
  }

  show(health) {
    const lease = health.lease ?? Infinity; // without leases no round trip is too long and no wake-up too late
    const part = health.safe_for === null ? 1 : health.safe_for / health.safe_for_most;
    const alone = health.safe_for === null;
    const [value, unit] = span(Math.max(0, health.safe_for ?? 0));
    this.safe.show(alone ? ["no limit", ""] : [value, `${unit} of ${spanText(health.safe_for_most)}`], { part, is: part < 0.2 ? "warn" : "" });
    this.rtt.show(span(health.rtt), { note: "longest lease", sample: health.rtt ?? 0, is: health.rtt > lease / 4 ? "warn" : "" });
    const late = health.lateness > lease / 16;
    this.late.show(span(health.lateness), { note: `worst ${spanText(health.lateness_worst)}`, sample: health.lateness, is: late ? "warn" : "" });
    this.pauses.show([String(health.pauses), ""], { note: health.pauses ? `longest ${spanText(health.paused_longest)}` : "never stood still" });
    this.drops.show([health.drops.toLocaleString("en"), ""], { note: health.drops_most ? `mostly ${health.drops_most.replaceAll("_", " ")}` : "none" });
    const needed = Math.floor(health.seats / 2) + 1;
    const missing = health.seats_voting < needed ? "nothing is granted" : health.seats_voting === needed ? "one fewer: nothing is granted" : "";
    const allowed = health.seats === 1 && health.seats_voting === 1 ? "" : missing;
    const seats = health.seats ? { note: allowed || "a majority is enough", is: allowed ? "warn" : "" } : { note: "nothing exclusive" };
    this.seats.show(health.seats ? [String(health.seats_voting), `of ${health.seats}`] : ["none", ""], seats);
    this.memory.show(bytes(health.resident_bytes), { note: plural(health.streams, "reader") });
  }
}

export class MembersPanel {
  /** `choose(name)`: the user points at a member. */
  constructor(choose) {
    this.rows = new Map();
    this.choose = choose;
    this.all = [];
    this.body = byId("rows");
    this.find = byId("find");
    this.find.addEventListener("input", () => this.render());
  }

  show(members) {
    this.all = members;
    say(byId("count"), String(members.length));
    byId("find-label").hidden = members.length < FILTER_FROM && !this.find.value;
    this.render();
  }

  /** Those that the filter lets through, and no more than a person looks through: of the others the filter finds each. */
  render() {
    const wanted = this.find.value.trim().toLowerCase();
    const found = wanted === "" ? this.all : this.all.filter((each) => textOf(each).includes(wanted));
    const shown = found.length > ROWS_MOST ? few(found) : found;
    const names = new Set(shown.map((each) => each.name));
    const here = new Set(this.all.map((each) => each.name));
    for (const [name, row] of this.rows) if (!names.has(name)) this.drop(name, row, { gone: !here.has(name) });
    let before = null;
    for (const member of shown) {
      const row = this.rows.get(member.name) ?? this.add(member.name);
      this.update(row, member);
      const place = before ? before.nextElementSibling : this.body.firstElementChild;
      if (place !== row.root && !row.root.isConnected) this.body.insertBefore(row.root, place);
      before = row.root;
    }
    const more = found.length - shown.length;
    say(byId("more-members"), more ? `and ${more.toLocaleString("en")} more; the filter finds each of them` : "");
  }

  add(name) {
    const pick = el("button", { class: "pick", type: "button", dir: "auto" }, name);
    const row = { pick, mark: el("span", { class: "me" }), status: el("span", { class: "chip" }), address: el("td", { class: "address" }), tags: el("div", { class: "tags" }), age: el("td", { class: "num age" }), shown: "" };
    row.root = el("tr", { "data-member": name }, el("td", {}, pick, row.mark), el("td", {}, row.status), row.address, el("td", { class: "tag-cell" }, row.tags), row.age);
    for (const [type, on] of [["pointerenter", true], ["pointerleave", false]]) row.root.addEventListener(type, () => this.choose(on ? name : null));
    pick.addEventListener("focus", () => this.choose(name));
    pick.addEventListener("blur", () => this.choose(null));
    this.rows.set(name, row);
    return row;
  }

  update(row, member) {
    row.since = member.since;
    const now = JSON.stringify([member.status, member.address, member.tags, member.me]);
    if (row.shown === now) return;
    row.shown = now;
    say(row.mark, member.me ? "this agent" : "");
    say(row.status, member.status);
    set(row.status, { "data-is": member.status });
    set(row.root, { "data-status": member.status });
    say(row.address, member.address);
    row.tags.replaceChildren(...Object.entries(member.tags).map(([key, value]) => el("span", { class: "tag", dir: "auto" }, el("em", {}, key), value)));
  }

  /** A member that went fades; a line that only has no room any more does not. */
  drop(name, row, { gone }) {
    this.rows.delete(name);
    if (!gone) {
      row.root.remove();
      return;
    }
    row.root.classList.add("going");
    row.root.removeAttribute("data-member");
    setTimeout(() => row.root.remove(), GOING_MS);
  }

  /** Ages grow by themselves. `now`: the agent's wall clock. */
  tick(now) {
    for (const row of this.rows.values()) say(row.age, row.since === null ? "\u2013" : age(now - row.since));
  }

  mark(name) {
    if (this.marked === name) return;
    for (const each of [this.marked, name]) this.rows.get(each)?.root.classList.toggle("chosen", each === name);
    this.marked = name;
  }
}

const textOf = ({ name, status, address, tags, me }) => [name, status, address, ...Object.entries(tags).flat(), me ? "this agent" : ""].join(" ").toLowerCase();

/** Of too many: this agent, those about which there is something to say, and as many of the others as there is room for. */
function few(members) {
  const matter = members.filter((each) => each.me || each.status !== "alive").slice(0, ROWS_MOST);
  const kept = new Set(matter);
  for (const each of members) {
    if (kept.size >= ROWS_MOST) break;
    kept.add(each);
  }
  return members.filter((each) => kept.has(each));
}

/** Only there when a client holds something. */
export function showGrants(grants) {
  byId("grants").hidden = grants.length === 0;
  byId("grant-rows").replaceChildren(...grants.map((each) => el("tr", {}, el("td", {}, each.kind), el("td", {}, each.name), el("td", { class: "num" }, numberOf(each) || "\u2013"), el("td", { class: "num token" }, String(each.token)), el("td", { class: "num" }, spanText(each.left)))));
}

function heard(seat) {
  if (seat.why) return seat.why;
  if (seat.wait > 0) return `${spanText(seat.wait)} left`;
  return seat.state === "silent" ? `last heard ${spanText(seat.heard_ago)} ago` : "";
}

/** Only there when this agent knows of seats. */
export function showSeats(seats) {
  byId("seats").hidden = seats.length === 0;
  byId("seat-rows").replaceChildren(...seats.map((each) => el("tr", {}, el("td", { class: "num" }, String(each.number)), el("td", {}, each.name, el("span", { class: "me" }, each.own ? "this agent" : "")), el("td", { class: "address" }, each.address), el("td", {}, el("span", { class: "chip", "data-is": each.state }, each.state), el("span", { class: "why" }, heard(each))))));
}
