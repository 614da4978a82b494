// Gossip on the page: the field of all members, one of them close up, who is under suspicion, and how it was over the last ten minutes.

import { byId, el, say, set } from "../dom.js";
import { age, plural, spanText } from "../text.js";
import { Closeup } from "./closeup.js";
import { Field, draw } from "./field.js";
import { Past } from "./past.js";

const LEGEND = [
  ["alive", "alive", {}],
  ["unhealthy", "suspected of late", { level: 2 }],
  ["suspected", "suspected", {}],
  ["decided", "decided dead", {}],
  ["failed", "gone", {}],
  ["left", "left", {}],
  ["me", "this agent", { me: true }],
];
const SUMS = [["alive", "alive"], ["suspected", "suspected"], ["failed", "gone"], ["left", "left"]];
const DOUBTS_MOST = 64; // lines of members under suspicion; the agent names no more
const BURIED_SECONDS = 60; // a member that died is in that list for so long
const LISTS_MOST = 6; // of lists that differ, by name
const COLOURS = { alive: "alive", suspected: "suspected", decided: "decided", failed: "failed", left: "left", card: "card", ink: "ink", soft: "soft", line: "line" };

export const words = {
  Decided: (f) => ["dead", f.member, "is decided dead", "It has not answered, and its suspicion is over: route away."],
  Failed: (f) => ["out", f.member, "is gone from the list", "Not certain: on the other side of a cut network it may be at work."],
  Cleared: (f) => ["hold", f.member, "is cleared", "It has answered for itself."],
  "gossip.BecameMember": (f) => ["hold", null, f.listed > 1 ? `This agent is a member; it lists ${f.listed}` : "This agent is the group", ""],
  "gossip.JoinRetry": (f) => ["doubt", null, "No member has answered", `Attempt ${f.attempt}; the next one in ${spanText(f.delay)}.`],
  "gossip.Settled": (f) => ["hold", null, "All others list this agent", `${spanText(f.after)} after it became a member.`],
  "gossip.Refuted": (f) => ["doubt", null, "This agent was accused and refuted it", f.by ? `By ${f.by}.` : ""],
  "gossip.ProbeFailed": (f) => ["ask", f.target, "did not answer a probe", `${plural(f.helpers, "helper")} asked, ${f.nacks} of them heard nothing either.`],
  "gossip.LastCall": (f) => ["ask", f.target, "is asked once more", "Before it is decided dead."],
  "gossip.Overslept": (f) => ["doubt", null, `Was away for ${spanText(f.seconds)}`, "No member is judged for a while."],
  "gossip.CBound": (f) => ["", null, `c is ${f.value}`, f.value ? "So many lists missed a living member at some time of the last ten minutes." : "No list missed a living member in the last ten minutes."],
  "gossip.Synced": (f) => ["", f.peer, f.differing ? "had another list" : "has the same list", f.differing ? `${f.differing} of 64 parts differed.` : ""],
};

const STATUS_OF = { Suspected: "suspected", Cleared: "alive", Decided: "decided", Failed: "failed", Left: "left", Joined: "alive" };

export default class GossipPanel {
  constructor({ choose, ask }) {
    this.chooseMember = choose;
    this.pinned = null; // the member that a person keeps in view
    this.pointed = null; // the one under the pointer, or under the focus
    this.stage = byId("gossip-stage");
    this.cursor = byId("gossip-cursor");
    this.field = new Field(byId("gossip-field"), (cell) => this.changed(cell));
    this.closeup = new Closeup((name) => ask(`v1/gossip/member?name=${encodeURIComponent(name)}`));
    this.past = new Past();
    this.sums = new Map();
    this.doubts = new Map(); // name -> its line
    this.counters = new Map();
    this.lists = { "gossip/field": (list) => this.showField(list), "gossip/past": (list) => this.past.show(list) };
    this.build();
    this.listen();
  }

  build() {
    document.querySelector("footer").append(el("a", { href: "v1/gossip" }, "Gossip as JSON"));
    for (const [is, title] of SUMS) {
      const number = el("b", {}, "\u2013");
      this.sums.set(is, number);
      byId("gossip-sums").append(el("li", { "data-is": is }, number, ` ${title}`));
    }
    this.swatches = LEGEND.map(([is, title, more]) => {
      const canvas = el("canvas", { "aria-hidden": "true" });
      byId("gossip-legend").append(el("li", {}, canvas, title));
      return [canvas, { status: SUMS.concat([["decided"]]).some(([each]) => each === is) ? is : "alive", level: 0, me: false, ...more }];
    });
    // Colours of the page, resolved: a canvas knows no variables.
    this.samples = el("span", { hidden: true }, ...Object.keys(COLOURS).map((name) => el("i", { class: name })));
    this.stage.append(this.samples);
  }

  listen() {
    const { stage, cursor } = this;
    stage.addEventListener("pointermove", (event) => this.point(this.under(event)));
    stage.addEventListener("pointerleave", () => this.point(null));
    stage.addEventListener("click", (event) => {
      const cell = event.detail === 0 ? this.field.cells.get(this.pointed) : this.under(event); // a key, or a pointer
      this.pin(cell && cell.name !== this.pinned ? cell.name : null);
    });
    cursor.addEventListener("focus", () => this.go(this.field.cells.get(this.pinned) ?? this.field.cells.get(this.me) ?? this.field.first));
    cursor.addEventListener("blur", () => this.point(null));
    cursor.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => {
      const { width, height } = stage.getBoundingClientRect();
      this.field.resize(width - 32, height);
      this.follow();
    }).observe(stage);
    new MutationObserver(() => this.recolour()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.recolour();
  }

  recolour() {
    const colours = Object.fromEntries([...this.samples.children].map((each) => [each.className, getComputedStyle(each).color]));
    colours.font = getComputedStyle(this.stage).fontFamily;
    this.field.recolour(colours);
    const ratio = devicePixelRatio;
    for (const [canvas, cell] of this.swatches) {
      [canvas.width, canvas.height] = [16 * ratio, 16 * ratio];
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw(context, { x: 0, y: 0, width: 16, height: 16 }, cell, colours);
    }
  }

  // What comes in.

  showField(list) {
    this.field.show(list, this.me);
    this.sum();
    this.follow();
  }

  event(event) {
    const status = STATUS_OF[event.name];
    if (status) this.field.told(event.fields.member.name, status);
  }

  pulse({ gossip }) {
    if (this.me !== gossip.name) this.field.own((this.me = gossip.name));
    for (const { name, unhealthy } of gossip.unhealthy) this.field.health(name, unhealthy);
    say(byId("gossip-count"), gossip.status === "member" ? `${gossip.members.toLocaleString("en")} ${gossip.members === 1 ? "member" : "members"}` : gossip.status);
    this.showDoubts(gossip.suspected, gossip.suspects);
    this.showCounters(gossip);
    this.showLists(gossip.compared);
    this.past.now(gossip);
    this.closeup.pulse(gossip);
    this.look();
  }

  mark(name) {
    this.marked = name;
    this.follow();
  }

  /** A cell shows another status. */
  changed(cell) {
    const line = this.doubts.get(cell.name);
    if (line) set(line.root, { "data-status": cell.status });
    this.summing ??= requestAnimationFrame(() => this.sum());
    if (cell.name === this.chosen) this.say();
  }

  sum() {
    this.summing = null;
    const counts = new Map();
    for (const { status } of this.field.cells.values()) counts.set(status, (counts.get(status) ?? 0) + 1);
    for (const [is, number] of this.sums) {
      const count = (counts.get(is) ?? 0) + (is === "failed" ? counts.get("decided") ?? 0 : 0);
      say(number, count.toLocaleString("en"));
      set(number.parentElement, { "data-none": count === 0 });
    }
  }

  // Who is chosen.

  get chosen() {
    return this.pointed ?? this.pinned;
  }

  under(event) {
    const { left, top } = this.field.canvas.getBoundingClientRect();
    return this.field.under(event.clientX - left, event.clientY - top);
  }

  point(cell) {
    const name = cell?.name ?? null;
    if (name === this.pointed) return;
    this.pointed = name;
    this.chooseMember(name);
    this.look();
    this.follow();
  }

  pin(name) {
    this.pinned = name;
    set(this.cursor, { "aria-pressed": name !== null });
    this.look();
    this.follow();
  }

  /** The focus goes to a cell. */
  go(cell) {
    if (!cell) return;
    this.point(cell);
    this.say();
  }

  say() {
    const cell = this.field.cells.get(this.chosen);
    if (!cell) return;
    const text = `${cell.name}, ${cell.status === "failed" ? "gone" : cell.status}${cell.me ? ", this agent" : ""}${cell.level && cell.status === "alive" ? ", suspected of late" : ""}`;
    set(this.cursor, { "aria-label": text });
    if (document.activeElement === this.cursor) say(byId("gossip-said"), text);
  }

  /** The frame around the chosen cell. */
  follow() {
    const cell = this.field.cells.get(this.chosen) ?? this.field.cells.get(this.marked);
    const shown = cell && this.field.grid;
    this.cursor.classList.toggle("shown", Boolean(shown));
    this.cursor.classList.toggle("pinned", this.pinned !== null && cell?.name === this.pinned);
    if (!this.cursor.ariaLabel) set(this.cursor, { "aria-label": "Members" });
    if (!shown) return;
    const { x, y, width, height } = this.field.box(cell.place);
    Object.assign(this.cursor.style, { transform: `translate(${x + this.field.canvas.offsetLeft}px, ${y}px)`, width: `${width}px`, height: `${height}px` });
  }

  look() {
    const name = this.chosen ?? this.me ?? null;
    this.closeup.look(name, { pinned: name !== null && name === this.pinned, cell: this.field.cells.get(name) });
  }

  onKey(event) {
    const { field } = this;
    const cell = field.cells.get(this.chosen) ?? field.first;
    if (!cell || !field.grid) return;
    const { columns } = field.grid;
    const next = { ArrowRight: () => field.beside(cell, 1), ArrowLeft: () => field.beside(cell, -1), ArrowDown: () => field.beside(cell, columns), ArrowUp: () => field.beside(cell, -columns), Home: () => field.first, End: () => field.last }[event.key];
    if (next) this.go(next());
    else if (event.key === "Escape") this.pin(null);
    else return;
    event.preventDefault();
  }

  // Lines and numbers.

  showDoubts(suspected, suspects) {
    const open = suspected.filter((each) => each.status === "suspect");
    const dead = suspected.filter((each) => each.status === "dead" && each.seconds < BURIED_SECONDS);
    const shown = [...open, ...dead].sort((a, b) => (a.status === b.status ? 0 : a.status === "suspect" ? -1 : 1) || a.seconds - b.seconds).slice(0, DOUBTS_MOST);
    const names = new Set(shown.map((each) => each.name));
    for (const [name, line] of this.doubts) {
      if (names.has(name)) continue;
      line.root.remove();
      this.doubts.delete(name);
    }
    const list = byId("gossip-doubt-list");
    shown.forEach((each, at) => {
      let line = this.doubts.get(each.name);
      if (!line) {
        line = { time: el("span", { class: "num" }), by: el("span", { class: "by" }) };
        const pick = el("button", { class: "pick", type: "button", dir: "auto" }, each.name);
        pick.addEventListener("click", () => this.pin(each.name));
        line.root = el("li", { "data-member": each.name }, el("i", { "aria-hidden": "true" }), pick, line.by, line.time);
        this.doubts.set(each.name, line);
      }
      if (list.children[at] !== line.root) list.insertBefore(line.root, list.children[at] ?? null);
      const cell = this.field.cells.get(each.name);
      const status = cell && cell.status !== "alive" ? cell.status : each.status === "dead" ? "failed" : "suspected";
      if (line.root.dataset.status !== status) line.root.dataset.status = status;
      say(line.by, each.accusers.length ? `by ${each.accusers[0]}${each.accusers.length > 1 ? ` +${each.accusers.length - 1}` : ""}` : "");
      say(line.time, each.ends_in === null ? `${age(each.seconds)} ago` : `${each.ends_in < 60 ? spanText(each.ends_in) : `${Math.round(each.ends_in / 60)} min`} left`);
    });
    say(byId("gossip-doubts-count"), suspects ? String(suspects) : "");
    const more = suspects - shown.filter((each) => each.status === "suspect").length;
    say(byId("gossip-doubts-more"), more > 0 ? `and ${more} more` : shown.length ? "" : "No member is suspected.");
  }

  showCounters({ counters, c, turbulent, lhm, rtt_p99: p99 }) {
    const rows = [
      ["suspicions", "Suspicions", counters.suspicions, "begun by own probes and by rumours"],
      ["cleared", "Cleared", counters.suspicions_cleared, "refuted by the member itself"],
      ["buried", "Buried", counters.buried, "ended with a death, by the own timer"],
      ["false", "False deaths", counters.false_positives, "members held to be dead that were not", counters.false_positives > 0],
      ["refutations", "Refuted here", counters.refutations, "accusations of this agent that it refuted", false],
      ["c", "c", c, "so many lists missed a living member at some time of the last ten minutes", turbulent],
      ["lhm", "Slowed down", lhm ? `${lhm + 1} times` : "no", "how much slower this agent probes, because its own probes fail", lhm > 4],
      ["p99", "Probe p99", p99 ? spanText(p99) : "\u2013", "one in a hundred round trips is as long or longer"],
    ];
    for (const [is, title, value, meaning, warns] of rows) {
      let number = this.counters.get(is);
      if (!number) {
        number = el("dd");
        this.counters.set(is, number);
        byId("gossip-counters").append(el("div", { "data-counter": is, title: meaning }, el("dt", {}, title), number));
      }
      say(number, typeof value === "number" ? value.toLocaleString("en") : value);
      set(number.parentElement, { "data-is": warns ? "warn" : null });
    }
  }

  showLists(compared) {
    const differing = compared.filter((each) => !each.equal);
    const sum = byId("gossip-lists-sum");
    say(sum, compared.length === 0 ? "None was compared yet." : differing.length === 0 ? `${compared.length} compared of late, all equal to this one.` : `${differing.length} of ${compared.length} differed from this one:`);
    set(sum, { "data-is": differing.length ? "warn" : null });
    const lines = differing.slice(0, LISTS_MOST).map((each) => [each.name, `${age(each.seconds)} ago`]);
    if (differing.length > LISTS_MOST) lines.push([`and ${differing.length - LISTS_MOST} more`, ""]);
    const list = byId("gossip-list-rows");
    while (list.children.length > lines.length) list.lastChild.remove();
    while (list.children.length < lines.length) list.append(el("li", {}, el("b", { dir: "auto" }), el("span", { class: "num" })));
    lines.forEach(([name, when], at) => {
      say(list.children[at].firstChild, name);
      say(list.children[at].lastChild, when);
    });
  }
}
