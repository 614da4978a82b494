// One limit: what it is, and its last two minutes as lines. The samples are kept here, and only here: an agent that no page looks at keeps none.

import { el, say, set, svg } from "../dom.js";
import { age, plural, short } from "../text.js";

export const KEPT_MS = 120000; // of lines
const SAMPLE_MS = 1000; // between two samples: more could not be told apart
const GAP_MS = 5000; // the agent was not heard for so long: no line says what happened meanwhile
const NAMED_MOST = 20; // letters of a program's name

const [WIDTH, LEFT, RIGHT] = [420, 4, 416];
const [TOP, BOTTOM] = [18, 128]; // of the lines
const [LANE_TOP, LANE_BOTTOM] = [146, 166]; // of those who wait
const LANE_LEAST = 4; // waiters that fill the lane at least: one waiter is no wall

/** A cost per second as people read it. */
export function amount(value) {
  if (value === null || value === undefined) return "\u2013";
  if (value >= 99.95) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 6 });
}

/** The last two minutes of one limit. `now` is on the clock of the page, in milliseconds: it does not jump. */
export class Samples {
  constructor() {
    this.all = [];
  }

  add(now, limit) {
    const last = this.all.at(-1);
    if (last && now - last.at < SAMPLE_MS * 0.9) return false;
    const { rate, shared, share, told, waiters, state } = limit;
    this.all.push({ at: now, rate, shared, share, told, waiters, panic: state === "panic" });
    while (now - this.all[0].at > KEPT_MS) this.all.shift();
    return true;
  }
}

/** Text and lines of one limit. */
export class Card {
  constructor(name) {
    this.name = name;
    this.policy = el("span", { class: "sum" });
    this.state = el("span", { class: "chip" });
    this.note = el("p", { class: "note" });
    this.plot = new Plot();
    this.numbers = new Map();
    const legend = el("ul", { class: "legend" });
    for (const [is, title] of [["rate", "rate"], ["shared", "all members"], ["share", "this agent"], ["told", "its processes"], ["waiters", "waiters"]]) {
      const number = el("b");
      this.numbers.set(is, number);
      legend.append(el("li", { "data-line": is }, `${title} `, number));
    }
    this.workers = el("ol", { class: "workers" });
    this.root = el("article", { class: "limit", "data-limit": name }, el("h3", {}, el("b", { dir: "auto", title: name }, name), this.policy, this.state), this.note, this.plot.root, legend, this.workers);
  }

  /** `samples`: those of this limit; `now`: where the lines end. */
  show(limit, samples, now) {
    say(this.policy, limit.policy);
    set(this.policy, { title: `burst ${amount(limit.burst)}, shared by ${limit.shared_by}, divided for ${plural(limit.fleet, "member")}` });
    say(this.state, limit.state || "unknown");
    set(this.state, { "data-is": limit.state });
    set(this.root, { "data-is": limit.starved_for !== null ? "starved" : limit.state });
    const [text, is] = noteOf(limit);
    say(this.note, text);
    set(this.note, { "data-is": is, title: text });
    say(this.numbers.get("rate"), `${amount(limit.rate)}/s`);
    for (const line of ["shared", "share", "told"]) say(this.numbers.get(line), amount(limit[line]));
    say(this.numbers.get("waiters"), String(limit.waiters));
    this.showWorkers(limit);
    if (samples) this.plot.show(samples, now, `${limit.name}: rate ${amount(limit.rate)} a second, all members ${amount(limit.shared)}, this agent ${amount(limit.share)}, ${plural(limit.waiters, "waiter")}; the last two minutes`);
  }

  showWorkers({ workers, workers_of: count }) {
    const lines = workers.map((each) => [`${each.pid ? short(each.program, NAMED_MOST) : "callers of the agent"}: ${amount(each.rate)}/s${each.waiters ? `, ${each.waiters} wait` : ""}${each.gone ? ", gone" : ""}`, each]);
    while (this.workers.children.length > lines.length + 1) this.workers.lastChild.remove();
    while (this.workers.children.length < lines.length + 1) this.workers.append(el("li", { dir: "auto" }));
    lines.forEach(([text, each], at) => {
      say(this.workers.children[at], text);
      set(this.workers.children[at], { "data-is": each.gone ? "gone" : null, title: each.pid ? `${each.program}, process ${each.pid}` : "Programs that ask over HTTP or from a shell" });
    });
    say(this.workers.lastChild, count > workers.length ? `and ${count - workers.length} more` : count ? "" : "no process of this agent uses it");
    set(this.workers.lastChild, { title: null, "data-is": null });
  }
}

function noteOf(limit) {
  const part = `1/${limit.fleet} of the rate`;
  if (limit.panic_for !== null && limit.state === "panic") {
    const why = limit.over === "members" ? "Members see different lists" : "No view";
    return [`${why} for ${age(limit.panic_for)}: this agent uses at most ${part}`, "bad"];
  }
  if (limit.starved_for !== null) return [`Starved for ${age(limit.starved_for)}: callers wait, and there is next to nothing`, "bad"];
  if (limit.penalty_for > 0) return [`Slowed down for another ${age(Math.ceil(limit.penalty_for))}: a member was told that it was too much`, "warn"];
  const where = limit.over === "members" ? "The member list" : limit.view ? `View ${limit.view.split("/")[0]}` : "No view yet";
  return [`${where}, ${plural(limit.members, "member")}${limit.fleet > limit.members ? ` of ${limit.fleet}` : ""}`, null];
}

/** Lines over the last two minutes: rate, all members, this agent and its processes; below them those who wait. */
class Plot {
  constructor() {
    this.most = svg("text", { class: "most", x: LEFT, y: TOP - 6 });
    this.lane = svg("text", { class: "most", x: LEFT, y: LANE_TOP - 5 });
    this.panic = svg("path", { class: "panic" });
    this.paths = new Map(["told", "shared", "share", "rate", "waiters"].map((line) => [line, svg("path", { class: line })]));
    this.root = svg("svg", { class: "plot", role: "img", viewBox: `0 0 ${WIDTH} 184` }, this.panic);
    for (const at of [TOP, (TOP + BOTTOM) / 2, BOTTOM, LANE_BOTTOM]) this.root.append(svg("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at }));
    this.root.append(...this.paths.values(), this.most, this.lane);
    for (const [text, x, anchor] of [["2 min ago", LEFT, "start"], ["1 min", (LEFT + RIGHT) / 2, "middle"], ["now", RIGHT, "end"]]) {
      this.root.append(svg("text", { class: "when", x, y: 180, "text-anchor": anchor }, text));
    }
  }

  show(samples, now, label) {
    set(this.root, { "aria-label": label });
    const most = rounded(Math.max(1e-6, ...samples.flatMap((each) => [each.rate, each.shared ?? 0, each.share, each.told])));
    const waiters = Math.max(0, ...samples.map((each) => each.waiters));
    say(this.most, `${amount(most)} per second`);
    say(this.lane, waiters ? `waiters, up to ${waiters}` : "no waiters");
    const x = (at) => Number((RIGHT - ((now - at) / KEPT_MS) * (RIGHT - LEFT)).toFixed(1));
    const y = (value) => Number((BOTTOM - (value / most) * (BOTTOM - TOP)).toFixed(1));
    const lane = (value) => Number((LANE_BOTTOM - (value / Math.max(waiters, LANE_LEAST)) * (LANE_BOTTOM - LANE_TOP)).toFixed(1));
    for (const line of ["rate", "shared", "share"]) this.draw(line, runs(samples, line).map((run) => lineOf(run, line, x, y)));
    this.draw("told", runs(samples, "told").map((run) => areaOf(run, "told", x, y, BOTTOM)));
    this.draw("waiters", waiters ? runs(samples, "waiters").map((run) => areaOf(run, "waiters", x, lane, LANE_BOTTOM)) : []);
    const bad = runs(samples.map((each) => ({ at: each.at, panic: each.panic || null })), "panic");
    set(this.panic, { d: bad.map((run) => `M${x(run[0].at)},${TOP}H${Math.max(x(run.at(-1).at), x(run[0].at) + 1)}V${BOTTOM}H${x(run[0].at)}Z`).join("") || null });
  }

  draw(line, parts) {
    set(this.paths.get(line), { d: parts.join("") || null });
  }
}

/** A little more than this, as people would end an axis. */
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12].find((step) => step * power >= value * 1.02);
}

/** Samples in a row that have a value, without a gap. */
function runs(samples, line) {
  const found = [];
  let before = null;
  for (const each of samples) {
    if (each[line] === null || each[line] === undefined) before = null;
    else {
      if (before === null || each.at - before.at > GAP_MS) found.push([]);
      found.at(-1).push(each);
      before = each;
    }
  }
  return found;
}

const lineOf = (run, line, x, y) => `M${run.map((each) => `${x(each.at)},${y(each[line])}`).join("L")}`;

const areaOf = (run, line, x, y, floor) => `M${x(run[0].at)},${floor}L${run.map((each) => `${x(each.at)},${y(each[line])}`).join("L")}L${x(run.at(-1).at)},${floor}Z`;
