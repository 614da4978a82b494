// The ring: members on the circle of keys, what each one's keys are, and this agent's leases.

import { calm, say, set, svg } from "../dom.js";
import { TURN, apart, arc, at, between, bow, closing, lands, wrap } from "./geometry.js";
import { plural, short, spanText } from "../text.js";

const SETTLE = 0.24; // seconds: how fast things move to where they belong
const STAGE_MS = 750; // a doubt and a decision are shown at least so long: on a fast network they are milliseconds apart
const GOING_MS = 1100; // a member that is gone stays so long, then the gap closes
const SPARK_EVERY_MS = 900; // per lease: shorter sessions are not all shown, or the page would never be calm
const CROWDED = 28; // members from which they are spread evenly, unless told otherwise
const LABEL_HEIGHT = 19; // when there is no room for all names, only those with something to say show theirs
const DOT_ROOM = 20; // pixels of the circle that a member of full size takes
const STAGES = ["alive", "suspected", "decided"];

export class Ring {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.nodes = new Map();
    this.leases = new Map();
    this.spread = null; // "true" or "even"; null: as the number of members asks for
    this.chosen = null;
    this.me = null;
    this.beat = null;
    this.size = { width: 0, height: 0 };
    this.layers = Object.fromEntries(["ticks", "lands", "leases", "asks", "sparks", "nodes", "middle"].map((name) => [name, svg("g", { class: `layer-${name}` })]));
    root.append(...Object.values(this.layers));
    this.words = [svg("text", { class: "big" }), svg("text", {}), svg("text", {})];
    set(this.layers.middle, { class: "middle", "aria-hidden": "true" }).append(...this.words);
    root.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.resize()).observe(root);
  }

  get even() {
    return this.spread === null ? this.present().length > CROWDED : this.spread === "even";
  }

  setSpread(spread) {
    this.spread = spread;
    this.place();
  }

  // What is known.

  show(members) {
    const names = new Set(members.map((each) => each.name));
    for (const node of this.present()) if (!names.has(node.name)) this.stage(node, "gone");
    for (const member of members) {
      if (member.turn === null) continue;
      const node = this.nodes.get(member.name) ?? this.addNode(member);
      if (STAGES.indexOf(node.wanted) < 0) this.revive(node);
      node.turn = member.turn;
      if (member.me) this.me = node;
      node.root.classList.toggle("me", member.me);
      node.land.classList.toggle("me", member.me);
      if (STAGES.indexOf(member.status) > STAGES.indexOf(node.wanted)) this.stage(node, member.status);
    }
    this.place();
  }

  pulse(beat) {
    this.beat = beat;
    const seen = new Set();
    for (const pair of beat.ring.pairs) {
      seen.add(pair.peer);
      const lease = this.leases.get(pair.peer) ?? this.addLease(pair.peer);
      this.showLease(lease, pair);
    }
    for (const [name, lease] of this.leases) if (!seen.has(name)) this.dropLease(name, lease);
    for (const each of beat.ring.condemned) this.countdown(each);
    this.sayMiddle();
  }

  /** An event, as it happens: what the next list or pulse would tell too late to be seen. */
  event(event) {
    const who = event.fields.member ?? event.fields.peer ?? null;
    const node = who && this.nodes.get(who.name);
    if (!node) return;
    if (event.name === "Suspected") this.stage(node, "suspected");
    else if (event.name === "Decided") this.stage(node, "decided");
    else if (event.name === "Cleared") this.revive(node);
    else if (event.name === "Failed") this.stage(node, "gone");
    else if (event.name === "Left") this.stage(node, "left");
    else if (event.name === "ring.Suspicion") this.asking(node);
    this.sayMiddle();
  }

  // Members.

  present() {
    return [...this.nodes.values()].filter((node) => !node.closed);
  }

  addNode(member) {
    const parts = {
      land: svg("path", { class: "land" }),
      leader: svg("path", { class: "leader" }),
      label: svg("text", { class: "name", dy: "0.35em" }),
      group: svg("g"),
      count: svg("circle", { class: "count", r: 15, pathLength: 1, "stroke-dasharray": "1 1" }),
    };
    const body = svg("g", { class: "body" }, svg("circle", { class: "dot", r: 7 }), svg("path", { class: "cross", d: "M-3-3L3 3M3-3L-3 3" }));
    parts.group.append(svg("circle", { r: 20, fill: "transparent" }), svg("circle", { class: "wave", r: 8 }), svg("circle", { class: "halo", r: 13 }), svg("circle", { class: "ring-me", r: 11, fill: "none" }), parts.count, body);
    const root = svg("g", { class: "node new", role: "button", tabindex: -1, "data-member": member.name, "data-status": "alive" }, parts.leader, parts.label, parts.group);
    const angle = member.turn * TURN;
    const node = { name: member.name, turn: member.turn, root, ...parts, angle, back: 0, ahead: 0, target: { angle, back: 0, ahead: 0 }, wanted: "alive", queue: [], stageAt: 0, closed: false };
    root.addEventListener("pointerenter", () => this.choose(node.name));
    root.addEventListener("pointerleave", () => this.choose(null));
    root.addEventListener("focus", () => this.choose(node.name));
    root.addEventListener("blur", () => this.choose(null));
    this.layers.lands.append(node.land);
    this.layers.nodes.append(root);
    this.nodes.set(node.name, node);
    requestAnimationFrame(() => requestAnimationFrame(() => root.classList.remove("new")));
    return node;
  }

  /** A member of this name is back before its former self was gone from the picture. */
  revive(node) {
    clearTimeout(node.timer);
    node.timer = null;
    node.queue = [];
    node.wanted = "alive";
    node.closed = false;
    this.wear(node, "alive");
  }

  /** One stage after the other, each for as long as an eye needs. */
  stage(node, stage) {
    const order = [...STAGES, "gone", "left"];
    if (order.indexOf(stage) <= order.indexOf(node.wanted)) return;
    node.wanted = stage;
    node.queue.push(stage);
    if (!node.timer) this.nextStage(node);
  }

  nextStage(node) {
    node.timer = null;
    const stage = node.queue.shift();
    if (stage === undefined) return;
    this.wear(node, stage);
    const over = stage === "gone" || stage === "left";
    node.timer = setTimeout(() => (over ? this.close(node) : this.nextStage(node)), over ? GOING_MS : STAGE_MS);
  }

  wear(node, stage) {
    for (const element of [node.root, node.land]) {
      element.classList.remove("suspected", "decided", "gone", "left");
      if (stage !== "alive") element.classList.add(stage);
    }
    node.root.dataset.status = stage;
    this.draw();
    this.sayMiddle();
  }

  /** The gap closes. */
  close(node) {
    node.closed = true;
    node.timer = null;
    node.root.remove();
    this.place();
    setTimeout(() => {
      if (!node.closed) return;
      node.land.remove();
      if (this.nodes.get(node.name) === node) this.nodes.delete(node.name);
    }, 2500);
  }

  // Leases.

  addLease(name) {
    const lease = { line: svg("path", { class: "lease", "data-peer": name }), spark: svg("path", { class: "spark", pathLength: 1 }), session: 0, sparkAt: 0 };
    this.layers.leases.append(lease.line);
    this.layers.sparks.append(lease.spark);
    this.leases.set(name, lease);
    this.drawLease(name, lease);
    return lease;
  }

  dropLease(name, lease) {
    lease.line.remove();
    lease.spark.remove();
    this.leases.delete(name);
  }

  showLease(lease, pair) {
    const kind = pair.suspected !== null ? "suspected" : pair.relayed > 0 ? "relayed" : pair.state;
    if (lease.kind !== kind) set(lease.line, { class: `lease ${kind}`, "data-state": kind });
    lease.kind = kind;
    lease.pair = pair;
    if (lease.session === pair.session || pair.suspected !== null) return;
    lease.session = pair.session;
    lease.line.dataset.session = pair.session;
    const now = performance.now();
    if (calm.matches || document.hidden || now - lease.sparkAt < SPARK_EVERY_MS) return;
    lease.sparkAt = now;
    lease.spark.animate([{ strokeDashoffset: 0.09, opacity: 0 }, { opacity: 0.9, offset: 0.25 }, { opacity: 0.9, offset: 0.7 }, { strokeDashoffset: -1, opacity: 0 }], { duration: 850, easing: "cubic-bezier(.45,.05,.4,1)" });
    lease.line.animate([{ opacity: 0.34 }, { opacity: 0.75 }, { opacity: 0.34 }], { duration: 850 });
  }

  drawLease(name, lease) {
    const peer = this.nodes.get(name);
    if (!peer || !this.me || this.size.width === 0) return;
    const line = bow(this.centre, this.radius, this.me.angle, peer.angle);
    set(lease.line, { d: line });
    set(lease.spark, { d: line });
  }

  /** The arbitrators of a pair are asked: a line to each of them, for a moment. */
  asking(node) {
    const pair = this.beat?.ring.pairs.find((each) => each.peer === node.name);
    if (!pair || !this.me) return;
    for (const name of pair.group) {
      const other = this.nodes.get(name);
      if (!other || other === this.me) continue;
      const line = svg("path", { class: "ask", d: bow(this.centre, this.radius, this.me.angle, other.angle), "data-arbitrator": name });
      this.layers.asks.append(line);
      if (!calm.matches) line.animate([{ opacity: 0, strokeDashoffset: 18 }, { opacity: 1, offset: 0.15 }, { opacity: 1, offset: 0.6 }, { opacity: 0, strokeDashoffset: -18 }], { duration: 1500 });
      setTimeout(() => line.remove(), 1500);
    }
  }

  /** How long until a decided member is declared out. */
  countdown(condemned) {
    const node = this.nodes.get(condemned.peer);
    if (!node || node.counting) return;
    node.counting = true;
    const whole = condemned.seconds + condemned.declared_in;
    const left = whole > 0 ? condemned.declared_in / whole : 0;
    node.count.animate([{ strokeDasharray: `${left} 1` }, { strokeDasharray: "0 1" }], { duration: condemned.declared_in * 1000, fill: "forwards" }).onfinish = () => (node.counting = false);
  }

  // Where everything is.

  resize() {
    const { width, height } = this.root.getBoundingClientRect();
    if (width === 0 || (width === this.size.width && height === this.size.height)) return;
    this.size = { width, height };
    this.centre = { x: width / 2, y: height / 2 };
    const room = width < 520 ? 74 : 118; // for names on both sides
    this.radius = Math.max(60, Math.min(width / 2 - room, height / 2 - 34));
    set(this.root, { viewBox: `0 0 ${width} ${height}` });
    const ticks = Array.from({ length: 64 }, (_, i) => `M${at(this.centre, this.radius - 12, (i * TURN) / 64).map((x) => x.toFixed(1)).join(" ")}L${at(this.centre, this.radius - (i % 16 ? 15 : 20), (i * TURN) / 64).map((x) => x.toFixed(1)).join(" ")}`);
    this.layers.ticks.replaceChildren(svg("path", { class: "tick", d: ticks.join("") }));
    this.draw();
  }

  place() {
    const nodes = this.present().sort((a, b) => a.turn - b.turn);
    const first = this.even && nodes.length ? nodes[0].turn * TURN : 0;
    nodes.forEach((node, i) => (node.target.angle = this.even ? first + (i * TURN) / nodes.length : node.turn * TURN));
    const places = nodes.map((node) => [node.name, wrap(node.target.angle)]);
    const reach = lands(places);
    for (const node of this.nodes.values()) {
      if (node.closed) {
        const shift = closing(places, node.target.angle);
        [node.target.back, node.target.ahead] = [-shift, shift];
      } else [node.target.back, node.target.ahead] = reach.get(node.name);
    }
    nodes.forEach((node) => set(node.root, { tabindex: -1 }));
    const entry = this.nodes.get(this.chosen) ?? this.me ?? nodes[0];
    if (entry) set(entry.root, { tabindex: 0 });
    this.sayMiddle();
    this.move();
  }

  move() {
    if (calm.matches) {
      for (const node of this.nodes.values()) Object.assign(node, { angle: node.target.angle, back: node.target.back, ahead: node.target.ahead });
      this.draw();
    } else if (!this.moving) {
      this.movedAt = performance.now();
      this.moving = requestAnimationFrame((now) => this.step(now));
    }
  }

  step(now) {
    const part = 1 - Math.exp(-Math.min(0.1, (now - this.movedAt) / 1000) / SETTLE);
    this.movedAt = now;
    let most = 0;
    for (const node of this.nodes.values()) {
      const turn = between(node.angle, node.target.angle);
      node.angle = wrap(node.angle + turn * part);
      for (const side of ["back", "ahead"]) {
        most = Math.max(most, Math.abs(node.target[side] - node[side]));
        node[side] += (node.target[side] - node[side]) * part;
      }
      most = Math.max(most, Math.abs(turn));
    }
    this.draw();
    this.moving = most > 0.0008 ? requestAnimationFrame((then) => this.step(then)) : null;
  }

  draw() {
    if (this.size.width === 0) return;
    const trim = Math.min(1.4 / this.radius, TURN / 8 / Math.max(1, this.nodes.size));
    const nodes = this.present();
    const crowd = Math.max(0.22, Math.min(1, (TURN * this.radius) / (DOT_ROOM * Math.max(1, nodes.length))));
    this.crowded = nodes.length > 1.7 * (this.size.height / LABEL_HEIGHT);
    for (const node of this.nodes.values()) {
      set(node.land, { d: arc(this.centre, this.radius, node.angle - node.back + trim, node.angle + node.ahead - trim) });
      if (node.closed) continue;
      const scale = node.root.dataset.status === "alive" && node !== this.me && node.name !== this.chosen ? crowd : Math.max(crowd, 0.85);
      set(node.group, { transform: `translate(${at(this.centre, this.radius, node.angle).map((x) => x.toFixed(2)).join(" ")}) scale(${scale.toFixed(2)})` });
    }
    this.label(nodes, "right");
    this.label(nodes, "left");
    for (const [name, lease] of this.leases) this.drawLease(name, lease);
  }

  /** Names stand beside the circle, level with their members where there is room. */
  label(nodes, side) {
    const right = side === "right";
    const here = nodes.filter((node) => wrap(node.angle) < TURN / 2 === right).map((node) => [at(this.centre, this.radius, node.angle), node]);
    here.sort((a, b) => a[0][1] - b[0][1]);
    const least = Math.min(LABEL_HEIGHT, (this.size.height - 16) / Math.max(1, here.length));
    const wanted = here.map(([[, y]]) => this.centre.y + (y - this.centre.y) * (1 + 18 / this.radius));
    const heights = apart(wanted, least, 10, this.size.height - 10);
    here.forEach(([[x, y], node], i) => {
      const sign = right ? 1 : -1;
      const up = Math.max(-1, Math.min(1, (heights[i] - this.centre.y) / (this.radius + 18)));
      const edge = this.centre.x + sign * (Math.sqrt(1 - up * up) * (this.radius + 18) + 6);
      const room = right ? this.size.width - edge - 8 : edge - 8;
      const text = short(node.name, Math.max(3, Math.floor(room / (this.size.width < 520 ? 6.9 : 7.4))));
      say(node.label, text);
      set(node.label, { x: edge.toFixed(1), y: heights[i].toFixed(1), "text-anchor": right ? "start" : "end" });
      const far = Math.hypot(edge - x, heights[i] - y) > 34;
      set(node.leader, { d: far ? `M${x.toFixed(1)} ${y.toFixed(1)}L${(edge - sign * 3).toFixed(1)} ${heights[i].toFixed(1)}` : "" });
      node.root.classList.toggle("mute", this.crowded && !node.root.classList.contains("me"));
    });
  }

  // Words and keys.

  mark(name) {
    this.chosen = name;
    for (const node of this.nodes.values()) node.root.classList.toggle("chosen", node.name === name);
    if (this.crowded) this.draw();
    this.sayMiddle();
  }

  sayMiddle() {
    if (this.size.width === 0) return;
    const { is, lines } = this.middle();
    set(this.layers.middle, { "data-is": is });
    const small = this.radius < 150;
    const heights = [small ? -4 : -2, small ? 17 : 24, small ? 33 : 44];
    this.words.forEach((word, i) => {
      say(word, lines[i] ?? "");
      set(word, { x: this.centre.x, y: this.centre.y + heights[i], class: i === 0 ? (lines.isName ? "word" : "big") : "" });
    });
    for (const node of this.present()) {
      const label = `${node.name}, ${node.root.dataset.status}`;
      if (node.said !== label) set(node.root, { "aria-label": (node.said = label) });
    }
  }

  middle() {
    const nodes = this.present();
    const doubted = nodes.filter((node) => node.root.dataset.status !== "alive");
    const subject = this.nodes.get(this.chosen) ?? doubted[doubted.length - 1];
    if (subject && !subject.closed) return { is: subject.root.dataset.status, lines: this.about(subject) };
    if (!this.beat) return { is: "", lines: ["", "", ""] };
    if (this.beat.state !== "member") return { is: "suspected", lines: Object.assign([this.beat.state, "this agent is in no ring now"], { isName: true }) };
    const held = this.beat.ring.pairs.filter((pair) => pair.suspected === null && pair.state !== "dormant").length;
    return { is: "", lines: [String(nodes.length), nodes.length === 1 ? "member" : "members", held ? `${plural(held, "lease")} held` : this.beat.ring.pairs.length ? "leases are being opened" : "no neighbour yet"] };
  }

  about(node) {
    const status = node.root.dataset.status;
    const lines = (...texts) => Object.assign([short(node.name, 20), ...texts], { isName: true });
    if (status === "gone") return lines("declared out", "the gap closes");
    if (status === "left") return lines("left", "the gap closes");
    const condemned = this.beat?.ring.condemned.find((each) => each.peer === node.name);
    if (status === "decided") return lines("decided dead", condemned ? `declared out in ${spanText(condemned.declared_in)}` : "out when it can no longer act");
    if (status === "suspected") return lines("suspected", "arbitrators are asked");
    if (node === this.me) return lines("this agent", `${Math.round(((node.back + node.ahead) / TURN) * 100)} % of the keys`);
    const pair = this.leases.get(node.name)?.pair;
    if (!pair) return lines("alive", "no lease with this agent");
    return lines(`lease ${pair.session}, ${pair.group.length} arbitrators`, pair.rtt === null ? "" : `round trip ${spanText(pair.rtt)}`);
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const nodes = this.present().sort((a, b) => a.turn - b.turn);
    const here = nodes.findIndex((node) => node.root === document.activeElement);
    if (!step || here < 0) return;
    event.preventDefault();
    const next = nodes[(here + step + nodes.length) % nodes.length];
    set(nodes[here].root, { tabindex: -1 });
    set(next.root, { tabindex: 0 });
    next.root.focus();
  }
}
