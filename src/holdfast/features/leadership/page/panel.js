// Leaders: a line per name that is, or was, led.

import { byId, el, say, set } from "../dom.js";
import { age, spanText } from "../text.js";

const STORY_SECONDS = 120; // a new leader belongs to a vacancy that is not older

export const words = {
  LeaderChanged: (f) => [f.leader ? "hold" : "doubt", f.leader, f.leader ? `leads ${f.name}` : `No leader of ${f.name} is known`, f.leader ? `Token ${f.token}${f.by === "election" ? ", by election" : ""}` : ""],
  LeaderSuspected: (f) => [f.cleared ? "hold" : "doubt", f.leader, f.cleared ? `leads ${f.name}: cleared` : `leads ${f.name}: suspected`, f.cleared ? "The suspicion was wrong." : "It was not heard in time. Nothing is decided."],
  "detection.FoundDead": (f) => ["ask", f.life, "is missed by a majority of the seats", `Another one shall lead ${f.names.join(", ")}.`],
  "detection.RoundAsked": (f) => ["", null, `This agent asks to lead ${f.name}`, `Token ${f.number}`],
  "detection.Leading": (f) => ["hold", null, `This agent leads ${f.name}`, `Token ${f.number}`],
  "detection.LostLead": (f) => ["doubt", null, `This agent leads ${f.name} no more`, f.why],
};

/** Only there when something is, or was, led. */
export default class LeadersPanel {
  constructor() {
    this.lists = { leaders: (list) => this.show(list) };
    this.vacantAt = new Map(); // what was led -> since when no leader of it is known
    this.rows = new Map();
    this.body = byId("leader-rows");
  }

  show({ leaders, timing }) {
    byId("leaders").hidden = leaders.length === 0;
    const names = new Set(leaders.map((each) => each.name));
    for (const [name, row] of this.rows) if (!names.has(name)) this.drop(name, row);
    leaders.forEach((line, at) => {
      const row = this.rows.get(line.name) ?? this.add(line.name);
      this.update(row, line, timing);
      if (this.body.children[at] !== row.root) this.body.insertBefore(row.root, this.body.children[at] ?? null);
    });
    say(byId("leader-count"), String(leaders.filter((each) => each.leader !== null).length));
    say(byId("leader-promise"), timing?.bound ? `The next one leads within ${spanText(timing.bound)} of a death` : "");
  }

  add(name) {
    const row = { leader: el("b", { dir: "auto" }), mark: el("span", { class: "me" }), token: el("td", { class: "num token" }), age: el("td", { class: "num age" }), terms: el("td", { class: "num" }), vacant: el("td", { class: "num vacant" }), candidates: el("td", { class: "candidates", dir: "auto" }) };
    row.root = el("tr", { "data-lead": name }, el("td", { dir: "auto" }, name), el("td", {}, row.leader, row.mark), row.token, row.age, row.terms, row.vacant, row.candidates);
    this.rows.set(name, row);
    return row;
  }

  drop(name, row) {
    row.root.remove();
    this.rows.delete(name);
  }

  update(row, line, timing) {
    const taken = row.token.textContent !== "" && row.token.textContent !== String(line.token);
    row.since = line.since;
    say(row.leader, line.leader ?? "no leader");
    say(row.mark, line.me ? "this agent" : "");
    say(row.token, String(line.token));
    say(row.terms, String(line.terms));
    say(row.vacant, line.vacant === null ? "\u2013" : spanText(line.vacant));
    say(row.candidates, line.candidates.join(", ") || "\u2013");
    set(row.root, { "data-leader": line.leader, "data-is": line.leader === null ? "vacant" : "led" });
    set(row.vacant, { "data-is": timing?.bound && line.vacant > timing.bound ? "warn" : null });
    if (taken && line.leader !== null) this.light(row.root);
  }

  /** A new term: its line lights up once. */
  light(root) {
    root.classList.remove("taken");
    void root.offsetWidth; // so that the animation begins anew
    root.classList.add("taken");
  }

  tick(now) {
    for (const row of this.rows.values()) say(row.age, age(now - row.since));
  }

  /** How long no leader was known. */
  story({ name, at, fields }) {
    if (name !== "LeaderChanged") return null;
    const since = this.vacantAt.get(fields.name);
    this.vacantAt.delete(fields.name);
    if (fields.leader === null) this.vacantAt.set(fields.name, at);
    return fields.leader !== null && at - since < STORY_SECONDS ? { text: `+${spanText(at - since)}`, title: "no leader was known" } : null;
  }
}
