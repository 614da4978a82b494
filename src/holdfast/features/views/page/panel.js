// Views: the servers with their links, and the members by their server. A cell keeps its place while others come and go: nothing jumps.

import { byId, el, say, set, svg } from "../dom.js";
import { age, plural, short, spanText } from "../text.js";
import { ServerBox } from "./server.js";

const BOXES_MOST = 7; // as many servers as a group can have; those that left the view go first
const NAMED_MOST = 6; // of those who came or went
const MIDDLE = [140, 100];
const RADII = [84, 68];

const viewOf = (view) => `view ${view.number} of ${view.size}`;
const listed = (lives, of = lives.length) => lives.slice(0, NAMED_MOST).map((each) => each.name).join(", ") + (of > NAMED_MOST ? ` and ${of - NAMED_MOST} more` : "");
const moved = (came, went, [cameOf, wentOf] = []) => [came.length ? `came: ${listed(came, cameOf)}` : "", went.length ? `went: ${listed(went, wentOf)}` : ""].filter(Boolean).join("; ");

export const words = {
  ViewChanged: (f) => ["hold", null, `This agent is in ${viewOf(f.view)}`, moved(f.added, f.removed, [f.added_count, f.removed_count])],
  Changing: (f) => ["", null, "Another view will come", f.number ? `Servers noticed a change since view ${f.number}.` : "Servers noticed a change."],
  ViewLost: (f) => ["dead", null, "This agent has no view", f.why],
  ViewRestored: (f) => ["hold", null, `This agent counts on ${viewOf(f.view)} again`, ""],
  ViewTripped: (f) => ["doubt", f.peer, f.peer ? "was not reached: this agent gave its view up" : "This agent gave its view up", f.why],
  "views.LinkUp": (f) => ["hold", f.peer, "has a link with this server of views", ""],
  "views.LinkDown": (f) => ["doubt", f.peer, "has no link with this server of views any more", `${f.why}${f.quarantine ? `, in quarantine for ${spanText(f.quarantine)}` : ""}`],
  "views.ClientAttached": (f) => ["hold", f.client, "is attached to this server of views", `Attachment ${f.attach}`],
  "views.ClientRemoved": (f) => ["doubt", f.client, "is not attached to this server of views any more", f.why],
  "views.Proposed": (f) => ["ask", null, `This server proposed view ${f.number}`, `Servers: ${listed(f.servers)}`],
  "views.Delivered": (f) => ["hold", null, `This server delivered ${viewOf(f.view)}`, `${f.fast ? "After one exchange" : "After more than one exchange"}, ${spanText(f.took)}`],
  "views.SlowChange": (f) => ["doubt", null, `A change of the view has been under way for ${spanText(f.seconds)}`, ""],
  "views.Attached": (f) => ["hold", f.server, "is the server of views of this agent", `Attachment ${f.attach}`],
  "views.Detached": (f) => ["doubt", f.server, f.server ? "is not the server of views of this agent any more" : "This agent tries another server of views", f.why],
  "views.Carried": (f) => ["", f.to, "got a message through the overlay", plural(f.hops, "hop")],
  "views.Received": (f) => ["", f.sender, "sent a message through the overlay", ""],
  "views.HopFailed": (f) => ["doubt", f.to, "did not take a message of the overlay", "It is held to be lost."],
  "views.ServerRetired": () => ["", null, "This seat serves views no more", "No client in the group needs them."],
};

/** Only there while this agent takes part in views, or serves them. */
export default class ViewsPanel {
  constructor({ choose }) {
    this.choose = choose;
    this.lists = { views: (list) => this.show(list) };
    this.boxes = new Map(); // name of a server -> its box; in the order in which they came
    this.known = null; // of the view that is shown: name and boot -> member
    this.number = 0;
    this.leaseMost = 0; // the longest that was left of the lease: right after a renewal
    this.told = ""; // who came and who went with this view
    this.facts = new Facts(byId("view-facts"));
    this.graph = new Graph(byId("view-graph"));
  }

  /** Another view, with all its members. */
  show(answer) {
    const used = answer.takes_part || answer.serves;
    byId("views").hidden = !used;
    if (!used) return this.empty();
    const members = new Map(answer.members.map((each) => [`${each.name}#${each.boot}`, each]));
    if (answer.id !== null) this.tellChange(answer.number, members);
    this.byServer(answer);
    if (answer.id !== null) [this.known, this.number] = [members, answer.number];
    this.stand(answer);
  }

  pulse({ views }) {
    byId("views").hidden = !views;
    if (views) this.stand(views);
  }

  mark(name) {
    for (const box of this.boxes.values()) box.mark(name);
  }

  /** What moves between two views. */
  stand(now) {
    const state = now.takes_part ? now.state : "serves";
    say(byId("view-number"), now.number ? String(now.number) : "");
    say(byId("view-state"), now.takes_part ? now.state : "serves views");
    set(byId("view-state"), { "data-is": state });
    say(byId("view-promise"), now.back_end === "zookeeper" ? "From ZooKeeper" : now.attached_to ? `Server: ${now.attached_to.name}` : "");
    this.leaseMost = Math.max(this.leaseMost, now.leased_for ?? 0);
    this.facts.show(now, this.leaseMost);
    const [text, is] = this.news(now);
    const line = byId("view-change");
    say(line, text);
    set(line, { "data-is": is, title: text || null });
    byId("view-graph-box").hidden = now.links.length === 0;
    this.graph.show(now);
  }

  news(now) {
    if (now.takes_part && now.state === "lost") return [`No view${now.lost_for === null ? "" : ` for ${age(now.lost_for)}`}${now.lost_why ? `: ${now.lost_why}` : ""}`, "lost"];
    if (now.changing_for !== null) return [`Another view than ${now.number || now.proposed} is being agreed, for ${spanText(now.changing_for)}`, "changing"];
    return [now.takes_part ? this.told : `This seat serves views for others. Its last number is ${now.proposed}.`, null];
  }

  tellChange(number, members) {
    if (number === this.number) return;
    if (this.known !== null) {
      const came = [...members].filter(([life]) => !this.known.has(life)).map(([, each]) => each);
      const went = [...this.known].filter(([life]) => !members.has(life)).map(([, each]) => each);
      this.told = `View ${number}${came.length || went.length ? `; ${moved(came, went)}` : ": the same members, by other ways"}`;
    }
    const box = byId("view-number");
    box.classList.remove("taken");
    void box.offsetWidth; // so that the animation begins anew
    if (this.known !== null) box.classList.add("taken");
  }

  byServer(answer) {
    const wanted = new Map(answer.servers.map((each) => [each.name, []]));
    for (const each of answer.members) {
      const name = each.server.name;
      if (!wanted.has(name)) wanted.set(name, []);
      wanted.get(name).push(each);
    }
    for (const name of wanted.keys()) if (!this.boxes.has(name)) this.add(name, answer.back_end);
    for (const [name, box] of this.boxes) box.show(wanted.get(name) ?? null, { lost: answer.id === null });
    const out = [...this.boxes.keys()].filter((name) => !wanted.has(name));
    while (this.boxes.size > BOXES_MOST && out.length) this.drop(out.shift());
  }

  add(name, backEnd) {
    const box = new ServerBox(name || (backEnd === "zookeeper" ? "ZooKeeper" : "?"), this.choose);
    this.boxes.set(name, box);
    byId("view-servers").append(box.root);
  }

  drop(name) {
    this.boxes.get(name).root.remove();
    this.boxes.delete(name);
  }

  empty() {
    for (const name of [...this.boxes.keys()]) this.drop(name);
    [this.known, this.number, this.told, this.leaseMost] = [null, 0, "", 0];
  }
}

/** What counts down, and what is so many. */
class Facts {
  constructor(root) {
    this.bar = el("i");
    this.all = new Map();
    const titles = {
      lease: ["Leased for", "This agent may count on its view for so long; every answer of a server renews it"],
      settled: ["Settled", "Every member that this view left out has stopped to count on another one"],
      size: ["Members", "In this view; and of the largest one lately"],
      installed: ["In this view for", "Since this agent installed it"],
      clients: ["Attached here", "Clients that this seat serves; none if this agent is no seat"],
      rtt: ["Round trip", "One in a hundred pings of views takes longer"],
    };
    for (const [name, [title, meaning]] of Object.entries(titles)) {
      const fact = { root: el("div", { "data-fact": name, title: meaning }), value: el("dd") };
      fact.root.append(el("dt", {}, title), fact.value);
      this.all.set(name, fact);
      root.append(fact.root);
    }
    this.all.get("lease").root.append(el("div", { class: "bar" }, this.bar));
  }

  show(now, leaseMost) {
    const part = leaseMost ? (now.leased_for ?? 0) / leaseMost : 0;
    this.bar.style.transform = `scaleX(${Math.max(0, Math.min(1, part)).toFixed(3)})`;
    this.say("lease", now.leased_for === null ? "no lease" : spanText(now.leased_for), now.takes_part && now.leased_for === null ? "bad" : part < 0.4 && now.takes_part ? "warn" : null);
    const waits = now.settles_in > 0 ? `in ${spanText(now.settles_in)}` : "not now";
    this.say("settled", now.id === null ? "\u2013" : now.settled ? "yes" : waits, now.id !== null && !now.settled ? "warn" : null);
    this.say("size", now.id === null ? "\u2013" : `${now.size ?? ""}${now.size < now.fleet ? ` of ${now.fleet} lately` : ""}`);
    this.say("installed", now.installed_for === null ? "\u2013" : age(now.installed_for));
    this.say("clients", now.serves ? `${now.clients}${now.quarantined ? `, ${now.quarantined} in quarantine` : ""}` : "\u2013", now.quarantined ? "warn" : null);
    this.say("rtt", now.rtt_p99 === null ? "\u2013" : spanText(now.rtt_p99));
  }

  say(name, text, is = null) {
    const { root, value } = this.all.get(name);
    say(value, text);
    set(root, { "data-is": is });
  }
}

/** The seats as this one sees them: its own links by their state, those between others by what both ends say. */
class Graph {
  constructor(root) {
    this.root = root;
    this.nodes = new Map();
    this.lines = new Map();
  }

  show({ slot, links, graph, servers }) {
    if (links.length === 0) return;
    const lives = new Map(links.map((each) => [each.slot, each.server?.name ?? null]));
    lives.set(slot, null);
    const slots = [...lives.keys()].sort((a, b) => a - b);
    const shape = slots.join();
    if (this.shape !== shape) this.lay(slots, shape);
    const own = new Map(links.map((each) => [each.slot, each]));
    for (const { a, b, up } of graph) {
      const link = own.get(a === slot ? b : b === slot ? a : null);
      this.line(a, b, link ? link.state : up ? "up" : "down", link);
    }
    for (const each of links) if (!graph.length) this.line(Math.min(slot, each.slot), Math.max(slot, each.slot), each.state, each);
    const inside = new Set(servers.map((each) => each.name));
    for (const each of slots) this.node(each, each === slot ? "this agent" : lives.get(each), { me: each === slot, inside: each === slot || inside.has(lives.get(each)) });
    set(this.root, { "aria-label": `Seat ${slot} is this agent. ${links.map((each) => `Link with seat ${each.slot}: ${each.state}`).join(". ")}` });
  }

  lay(slots, shape) {
    this.shape = shape;
    this.root.replaceChildren();
    this.nodes.clear();
    this.lines.clear();
    const turns = slots.map((_, at) => (at / slots.length) * 2 * Math.PI - Math.PI / 2);
    const lowest = Math.max(...turns.map((turn) => Math.sin(turn)));
    const lift = ((1 - lowest) / 2) * RADII[1]; // a triangle does not reach the lower end of its circle
    const place = new Map(slots.map((slot, at) => [slot, [MIDDLE[0] + RADII[0] * Math.cos(turns[at]), MIDDLE[1] + lift + RADII[1] * Math.sin(turns[at])].map((each) => Number(each.toFixed(1)))]));
    slots.forEach((a, at) => slots.slice(at + 1).forEach((b) => {
      const [[x1, y1], [x2, y2]] = [place.get(a), place.get(b)];
      const told = svg("title");
      const line = svg("line", { x1, y1, x2, y2, "data-link": `${a}-${b}` }, told);
      this.lines.set(`${a}-${b}`, { line, told });
      this.root.append(line);
    }));
    for (const [slot, [x, y]] of place) {
      const name = svg("text", { class: "name", x, y: y < MIDDLE[1] ? y - 23 : y + 31 }); // outside, where no link is
      const node = svg("g", { "data-slot": slot }, svg("circle", { class: "dot", cx: x, cy: y, r: 15 }), svg("text", { class: "slot", x, y: y + 4 }, String(slot)), name);
      this.nodes.set(slot, { node, name });
      this.root.append(node);
    }
  }

  line(a, b, state, link) {
    const found = this.lines.get(`${a}-${b}`);
    if (!found) return; // A pair of slots that the links do not name.
    set(found.line, { class: `link ${state}${link ? "" : " far"}`, "data-is": state });
    const since = link && link.since !== null ? ` for ${age(link.since)}` : "";
    const flaps = link?.flaps ? `, down ${plural(link.flaps, "time")} in five minutes` : "";
    say(found.told, `${a} and ${b}: ${state}${since}${flaps}${link?.why && state !== "up" ? `, ${link.why}` : ""}`);
  }

  node(slot, name, { me, inside }) {
    const found = this.nodes.get(slot);
    set(found.node, { class: `${me ? "me " : ""}${inside ? "in" : ""}`.trim() });
    say(found.name, name === null ? "not heard" : short(name, 16));
  }
}
