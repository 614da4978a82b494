// Elections: a line per name, and a picture of how the last election that began at this agent went.

import { byId, el, say, set, svg } from "../dom.js";
import { age, plural, short, spanText } from "../text.js";

const ROWS_MOST = 40;
const LANES_MOST = 16; // members in a picture; of a large group the first that were asked
const LANE = 17; // pixels
const WIDTH = 420;
const OUTCOMES = {
  "": "runs", elected: "its nominee leads", yielded: "given up for another initiator", responses: "too few answers", notify: "its nominee did not answer",
  overtaken: "a leader was heard of before it ended", empty: "all candidates were excluded",
};

export const words = {
  "election.Initiated": (f) => ["ask", null, `This agent asks ${plural(f.asked.length, "member")} who shall lead ${f.name}`, `Why: ${f.why}`],
  "election.Nominated": (f) => ["ask", f.nominee, `is named to lead ${f.name}`, `Term ${f.term}${f.final ? "" : ", not final yet"}`],
  "election.Yielded": (f) => ["ask", f.initiator, `elects the leader of ${f.name} instead of this agent`, "Both had begun; it ranks first."],
  "election.Tentative": (f) => ["", null, `This agent is named to lead ${f.name}`, `Term ${f.term}: it may not act yet.`],
  "election.TentativeExpired": (f) => ["doubt", null, `This agent was named to lead ${f.name}, and may not`, `Term ${f.term} was not confirmed in time.`],
  "election.Elected": (f) => ["hold", null, `This agent leads ${f.name}`, `Term ${f.term}`],
  "election.Unsure": (f) => ["doubt", null, `This agent stood still as the leader of ${f.name}`, `It asks whether term ${f.term} still holds.`],
  "election.SteppedDown": (f) => ["doubt", null, `This agent leads ${f.name} no more`, f.why],
  "election.ElectionFailed": (f) => ["doubt", null, `An election of ${f.name} came to nothing`, `${f.got} of ${f.needed} answers`],
  "election.RankViolation": (f) => ["doubt", f.leader, `leads ${f.name} and ranks behind this agent`, "Lists differed by more than was measured."],
  "election.TermConflict": (f) => ["doubt", f.other, `leads ${f.name} under this agent's own term`, `Both give up term ${f.term}.`],
  "election.VoterReady": (f) => ["", null, `This agent votes on ${f.name}`, f.answers ? `${plural(f.answers, "member")} told it what it may have promised.` : "It has forgotten no promise."],
  "election.CBound": (f) => ["", null, `Elections of ${f.name} count with other numbers`, `${plural(f.c, "list")} may lack a member (c), ${plural(f.f, "member")} may be down (f).`],
  "election.CBoundUnusable": (f) => ["doubt", null, `Lists differ too much for the best-ranked leader of ${f.name}`, `c should be ${f.want}, and at most ${f.most} can be asked for.`],
};

/** Only there when some name is, or was, led by election. */
export default class ElectionsPanel {
  constructor() {
    this.lists = { elections: (list) => this.show(list) };
    this.rows = new Map();
    this.body = byId("election-rows");
  }

  show({ elections, hold }) {
    byId("elections").hidden = elections.length === 0;
    const shown = elections.slice(0, ROWS_MOST);
    const names = new Set(shown.map((each) => each.name));
    for (const [name, row] of this.rows) if (!names.has(name)) this.drop(name, row);
    shown.forEach((line, at) => {
      const row = this.rows.get(line.name) ?? this.add(line.name);
      this.update(row, line);
      for (const [below, part] of [[2 * at, row.root], [2 * at + 1, row.picture]]) {
        if (this.body.children[below] !== part) this.body.insertBefore(part, this.body.children[below] ?? null);
      }
    });
    const led = elections.filter((each) => each.leader !== null).length;
    say(byId("election-count"), elections.length > ROWS_MOST ? `${ROWS_MOST} of ${plural(elections.length, "name")}` : String(led));
    say(byId("election-promise"), hold ? `Not exclusive: a leader that is cut off stops after ${spanText(hold)}` : "");
  }

  add(name) {
    const row = { leader: el("b", { dir: "auto" }), mark: el("span", { class: "me" }), token: el("td", { class: "num token" }), age: el("td", { class: "num age" }), how: el("td", { class: "how" }), candidates: el("td", { class: "candidates", dir: "auto" }), drawn: "" };
    row.root = el("tr", { "data-election": name }, el("td", { dir: "auto" }, name), el("td", {}, row.leader, row.mark), row.token, row.age, row.how, row.candidates);
    row.last = el("td", { colspan: "6" });
    row.picture = el("tr", { class: "last" }, row.last);
    this.rows.set(name, row);
    return row;
  }

  drop(name, row) {
    row.root.remove();
    row.picture.remove();
    this.rows.delete(name);
  }

  update(row, line) {
    row.since = line.since;
    say(row.leader, line.leader ?? "no leader");
    say(row.mark, line.state === "tentative" ? "tentative" : line.me ? "this agent" : "");
    say(row.token, String(line.token));
    say(row.how, `${line.variant}, voters ${line.voters}, ${line.rank.join(" ")}; c ${line.c}, f ${line.f}`);
    say(row.candidates, line.candidates.join(", ") || "\u2013");
    set(row.root, { "data-leader": line.leader, "data-is": line.state });
    const drawn = JSON.stringify(line.last);
    if (drawn === row.drawn) return;
    row.drawn = drawn;
    row.picture.hidden = line.last === null;
    row.last.replaceChildren(...(line.last === null ? [] : [picture(line.last), el("p", { class: "told" }, told(line.last))]));
  }

  tick(now) {
    for (const row of this.rows.values()) say(row.age, row.since > 0 ? age(now - row.since) : "\u2013");
  }
}

/** One lane per member: a line to it if it was asked, a dot if it answered, its excluded and its choice. */
function picture(last) {
  const answers = new Map(last.answers.map((each) => [each.member, each]));
  const lanes = [...new Set([...answers.keys(), ...Object.keys(last.asked), ...last.candidates, ...Object.keys(last.excluded)])];
  const shown = lanes.slice(0, LANES_MOST);
  const height = Math.max(2, shown.length) * LANE + 6;
  const root = svg("svg", { class: "picture", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": told(last) });
  const middle = height / 2;
  root.append(svg("circle", { class: "asker", cx: 12, cy: middle, r: 5 }));
  shown.forEach((name, at) => root.append(lane(name, at * LANE + LANE / 2 + 3, middle, last, answers.get(name))));
  return root;
}

function lane(name, y, middle, last, answer) {
  const out = name in last.excluded;
  const is = name === last.nominee ? "nominee" : out ? "excluded" : answer ? "answered" : "silent";
  const said = answer === undefined ? (last.asked[name] ? "no answer" : "") : `${spanText(answer.after)}: ${answer.candidates.map((each) => short(each, 10)).join(" ") || "no candidate"}`;
  const root = svg("g", { "data-member": name, "data-is": is });
  if (name in last.asked || answer) root.append(svg("path", { d: `M17 ${middle}C70 ${middle} 70 ${y} 122 ${y}`, "data-answered": answer !== undefined }));
  root.append(svg("circle", { cx: 127, cy: y, r: 4.5 }));
  const label = svg("text", { x: 138, y: y + 4, dir: "auto" }, short(name, 16));
  const mark = is === "nominee" ? `named, term ${last.term}` : out ? `left out: ${last.excluded[name].toFixed(1)}` : "";
  root.append(label, svg("text", { class: "said", x: 250, y: y + 4 }, short([mark, said].filter(Boolean).join("; "), 34)));
  return root;
}

function told(last) {
  const names = Object.keys(last.excluded);
  const out = names.length ? `, left out ${names.map((each) => short(each, 16)).join(", ")}` : "";
  return `Last election here (${last.why}): ${plural(Object.keys(last.asked).length, "member")} asked, ${plural(last.answers.length, "answer")} with its own${out}; ${OUTCOMES[last.outcome] ?? last.outcome}${last.took > 0 ? ` after ${spanText(last.took)}` : ""}.`;
}
