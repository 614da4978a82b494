// The stream of events, newest first, in words.

import { byId, el } from "./dom.js";
import { spanText, timeOf } from "./text.js";

const SHOWN_MOST = 300;
const INTRODUCED_SECONDS = 3; // who joins says who it is a moment later: that is one line
const STORY_SECONDS = 120; // an event of a member belongs to a suspicion that is not older

export const nameOf = (value) => (value && typeof value === "object" ? value.name ?? value.position ?? "?" : String(value));

const tagsOf = (member) => Object.entries(member.tags ?? {}).map(([key, value]) => `${key} ${value}`).join(", ");

const NUMBERED = new Set(); // kinds of grants that give one name several times: panels say which

/** The number of a grant as text; "" where its kind has none. */
export const numberOf = (grant) => (NUMBERED.has(grant.kind) ? String(grant.number) : "");

const heldOf = (grant) => `${grant.kind} ${grant.name}${NUMBERED.has(grant.kind) ? ` number ${grant.number}` : ""}`;

// What each event is called: [class, who or null, what happened, what it means].
const WORDS = {
  Joined: (f) => ["hold", f.member, "joined", [f.member.address, tagsOf(f.member)].filter(Boolean).join(", ")],
  Suspected: (f) => ["doubt", f.member, "is suspected", "It has not answered in time. Nothing is decided."],
  Cleared: (f) => ["hold", f.member, "is cleared", "The doubt was wrong: it is a member as before."],
  Decided: (f) => ["dead", f.member, "is decided dead", "A majority of its arbitrators agree: route away."],
  Failed: (f) => ["out", f.member, "is declared out", f.certain ? "Certain: it can no longer act, its keys may be taken over." : "Not certain: do not take over its keys."],
  Left: (f) => ["", f.member, "left", "It said goodbye."],
  Updated: (f) => ["", f.member, "changed what it publishes", tagsOf(f.member)],
  Expelled: (f) => ["dead", null, "This agent was put out of the group", `${f.why}. It comes back by itself, under a new id.`],
  Granted: (f) => ["hold", null, `${heldOf(f.grant)} granted`, `Token ${f.grant.token}`],
  AtRisk: (f) => ["doubt", null, `${heldOf(f.grant)} at risk`, "It was not renewed in time."],
  Lost: (f) => ["dead", null, `${heldOf(f.grant)} lost`, f.why],
  Released: (f) => ["", null, `${heldOf(f.grant)} released`, ""],
  EventsLost: (f) => ["doubt", null, `${f.count} events were missed`, "The member list is right again."],
  Paused: (f) => ["doubt", null, `This agent stood still for ${spanText(f.seconds)}`, "It accuses no member before it has caught up."],
  ConfigMismatch: (f) => ["doubt", f.peer, `counts with another ${f.field}`, `Ours ${f.ours}, theirs ${f.theirs}: its messages are dropped.`],
  StorageFailed: (f) => ["dead", null, "The disk refused a write", f.why],
};

export class Events {
  constructor() {
    this.list = byId("events").firstElementChild;
    this.suspectedAt = new Map();
    this.stories = []; // of panels: (event) => how long it took, as { text, title }, or null
    this.joined = new Map(); // name -> when, and the line that says so
    const inner = byId("inner");
    inner.addEventListener("change", () => byId("events").classList.toggle("with-inner", inner.checked));
  }

  /** What a panel knows of events: words for them, which kinds of grants have numbers, and how long a story took. */
  learn({ words = {}, numbered = [], story = null }) {
    Object.assign(WORDS, words);
    for (const kind of numbered) NUMBERED.add(kind);
    if (story) this.stories.push(story);
  }

  /** One event of the agent. `fresh`: it happened while the page was open. */
  add(event, fresh = true) {
    const [kind, who, what, more] = this.words(event);
    const name = who ? nameOf(who) : null;
    if (event.name === "Updated" && this.introduced(event, name)) return;
    const line = el("li", { class: `${kind} ${event.internal ? "inner" : ""} ${fresh ? "fresh" : ""}`.trim(), "data-event": event.name, "data-member": name, "data-id": event.id });
    const text = el("p", {}, ...(name === null ? [what] : [el("b", { dir: "auto" }, name), ` ${what}`]));
    line.append(text, el("time", { datetime: new Date(event.at * 1000).toISOString() }, timeOf(event.at, { exact: true })));
    const after = this.after(event, name);
    if (more || after) line.append(el("p", { class: "more" }, more), after ? el("span", { class: "after", title: after.title }, after.text) : "");
    if (event.name === "Joined") this.joined.set(name, { at: event.at, line });
    this.put(line);
  }

  introduced(event, name) {
    const joined = this.joined.get(name);
    if (!joined?.line.isConnected || event.at - joined.at > INTRODUCED_SECONDS) return false;
    joined.line.querySelector(".more").textContent = [event.fields.member.address, tagsOf(event.fields.member)].filter(Boolean).join(", ");
    return true;
  }

  /** Something about the page itself. */
  note(text, more = "") {
    const at = Date.now() / 1000;
    const line = el("li", { class: "doubt fresh", "data-event": "page" }, el("p", {}, text), el("time", {}, timeOf(at, { exact: true })));
    if (more) line.append(el("p", { class: "more" }, more));
    this.put(line);
  }

  put(line) {
    this.list.prepend(line);
    while (this.list.childElementCount > SHOWN_MOST) this.list.lastElementChild.remove();
  }

  words(event) {
    try {
      const words = WORDS[event.name];
      if (words) return words(event.fields);
    } catch { /* A newer agent with other fields: shown as it is. */ }
    return ["", null, event.name, JSON.stringify(event.fields)];
  }

  after(event, name) {
    for (const story of this.stories) {
      const told = story(event);
      if (told) return told;
    }
    if (name === null || event.internal) return null;
    const since = this.suspectedAt.get(name);
    if (event.name === "Suspected") this.suspectedAt.set(name, event.at);
    if (since === undefined || !["Decided", "Failed"].includes(event.name)) return null;
    if (event.name === "Failed") this.suspectedAt.delete(name);
    const seconds = event.at - since;
    return seconds >= 0 && seconds < STORY_SECONDS ? { text: `+${spanText(seconds)}`, title: "since the suspicion" } : null;
  }
}
