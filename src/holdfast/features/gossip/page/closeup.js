// One member close up: what this agent believes of it, asked for once a second while a person looks.

import { byId, el, say, set } from "../dom.js";
import { age, plural, spanText } from "../text.js";

const ASK_EVERY_MS = 1000;
const POINTED_MS = 120; // a pointer that passes over a cell asks nothing about it
const ROWS_MOST = 24; // of what it publishes; a member may have 64
const HIDDEN_ROWS = new Set(["gossip:settled"]); // said in words above

const WORDS = { suspected: "suspected", alive: "alive", dead: "gone", left: "left" };

export class Closeup {
  /** `ask(name)`: what the agent says of a member. */
  constructor(ask) {
    this.ask = ask;
    this.name = null;
    this.askedAt = -Infinity;
    this.facts = new Map();
    this.beat = null;
  }

  pulse(gossip) {
    this.beat = gossip;
  }

  /** Show this member, `cell` in the field. */
  look(name, { pinned, cell }) {
    if (name === null) return;
    const other = name !== this.name;
    if (other) {
      this.name = name;
      say(byId("gossip-zoom-name"), name);
      this.status(cell?.status === "failed" ? "dead" : cell?.status ?? "");
    }
    say(byId("gossip-zoom-note"), pinned ? "kept in view" : this.beat?.name === name ? "this agent" : "");
    if (other) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.inquire(name), POINTED_MS);
    } else if (performance.now() - this.askedAt >= ASK_EVERY_MS) this.inquire(name);
  }

  inquire(name) {
    this.askedAt = performance.now();
    this.ask(name).then((member) => this.name === name && this.show(member), (error) => this.name === name && error.message.endsWith(": 404") && this.gone());
  }

  status(status) {
    const chip = byId("gossip-zoom-status");
    say(chip, WORDS[status] ?? status);
    set(chip, { "data-is": status === "dead" ? "failed" : status, hidden: !status });
  }

  gone() {
    this.status("");
    say(byId("gossip-zoom-story"), "This agent does not remember it any more.");
    this.say(Object.fromEntries([...this.facts.keys()].map((title) => [title, ["\u2013"]])));
    byId("gossip-zoom-rows").replaceChildren();
  }

  show(member) {
    this.status(member.status);
    say(byId("gossip-zoom-story"), story(member, this.beat));
    const list = member.equal === null ? ["not compared"] : [`${member.equal ? "equal" : "differed"}, ${age(member.compared)} ago`, !member.equal];
    this.say({
      "Suspected of late": [member.unhealthy < 0.05 ? "never" : member.unhealthy.toFixed(1), member.unhealthy >= 1.5],
      "False deaths": [member.false_deaths < 0.05 ? "none" : member.false_deaths.toFixed(1), member.false_deaths >= 0.5],
      "Round trip": [member.me ? "\u2013" : member.rtt === null ? "not measured" : spanText(member.rtt)],
      Heard: member.me ? ["\u2013"] : member.one_way ? [`by others, ${member.one_way}x`, member.one_way >= 3] : [member.heard === null ? "by others" : `${time(member.heard)} ago`],
      Incarnation: [String(member.inc)],
      "Its list": member.me ? ["\u2013"] : list,
      Settled: [member.status === "alive" || member.status === "suspected" ? (member.settled ? "all list it" : "not yet") : "\u2013"],
      Address: [member.address],
    });
    const rows = member.rows.filter((each) => !HIDDEN_ROWS.has(each.name));
    const lines = rows.slice(0, ROWS_MOST).map((each) => el("li", { class: "tag", dir: "auto", title: `${each.name}, ${plural(each.bytes, "byte")}` }, el("em", {}, each.name), each.value));
    if (rows.length > ROWS_MOST) lines.push(el("li", { class: "tag" }, `and ${rows.length - ROWS_MOST} more`));
    const now = JSON.stringify(rows);
    if (now === this.rows) return;
    this.rows = now;
    byId("gossip-zoom-rows").replaceChildren(...lines);
  }

  say(facts) {
    for (const [title, [text, warns]] of Object.entries(facts)) {
      let value = this.facts.get(title);
      if (!value) {
        value = el("dd", { dir: "auto" });
        this.facts.set(title, value);
        byId("gossip-zoom-facts").append(el("div", { "data-fact": title }, el("dt", {}, title), value));
      }
      say(value, text);
      set(value, { title: text });
      set(value.parentElement, { "data-is": warns ? "warn" : null });
    }
  }
}

/** One sentence: what is under way. */
function story(member, beat) {
  const { suspicion } = member;
  if (suspicion) {
    const by = named(suspicion.accusers);
    return `Suspected for ${time(suspicion.seconds)}${by ? ` by ${by}` : ""}; ${suspicion.called ? "asked once more" : "it is told"}. Decided dead in ${time(suspicion.ends_in)} unless it answers.`;
  }
  if (member.status === "dead") return `It died ${age(member.gone_for)} ago, as far as this agent knows${member.accusers.length ? `; accused by ${named(member.accusers)}` : ""}.`;
  if (member.status === "left") return `It said goodbye ${age(member.gone_for)} ago.`;
  if (member.me && beat) return beat.lhm ? `Its own probes fail: it probes ${beat.lhm + 1} times slower.` : `Probes one member every ${spanText(beat.timing.probe)}; a suspicion takes ${time(beat.timing.suspicion_min)} to ${time(beat.timing.suspicion_max)}.`;
  return "No suspicion is open.";
}

/** Short times exactly, long ones as people say them. */
const time = (seconds) => (seconds < 60 ? spanText(seconds) : age(seconds));

const named = (names) => (names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", "));
