// The ring on the page: the picture, where members are drawn, and words for the facts of the protocol.

import { byId, el } from "../dom.js";
import { nameOf } from "../events.js";
import { spanText } from "../text.js";
import { Ring } from "./ring.js";

export const words = {
  "ring.Suspicion": (f) => ["ask", f.peer, "did not answer: its lease ran out", "Its arbitrators are asked."],
  "ring.Won": (f) => ["ask", f.peer, "lost the arbitration", "This agent has the majority."],
  "ring.Lost": (f) => ["dead", f.peer, "won against this agent", f.why],
  "ring.Removed": (f) => ["", f.id, "is off the list", `${f.reason}; generation ${f.gen}`],
  "ring.BecameMember": (f) => ["hold", f.id, f.founded ? "founded a ring" : "became a member", ""],
  "ring.Departed": (f) => ["dead", f.id, "departed", f.reason],
  "ring.GroupProposed": (f) => ["", f.peer, `gets a group of ${f.size} arbitrators`, `Version ${f.ver}`],
  "ring.NeighbourhoodChanged": (f) => ["", null, "The neighbourhood changed", f.nbrs.map(nameOf).join(", ")],
  "ring.Overslept": (f) => ["doubt", null, `Woke ${spanText(f.seconds)} late`, "What waits in the socket is read before a member is accused."],
  "ring.LinkBroken": (f) => ["doubt", f.peer, "is reached only through others", `For ${spanText(f.seconds)}.`],
  "ring.LinkMended": (f) => ["hold", f.peer, "answers directly again", ""],
};

export default class RingPanel {
  constructor({ choose }) {
    this.ring = new Ring(byId("ring"), choose);
    this.inputs = document.querySelectorAll("input[name=spread]");
    for (const input of this.inputs) input.addEventListener("change", () => this.ring.setSpread(input.value));
    document.querySelector("footer").append(el("a", { href: "v1/ring" }, "Ring as JSON"));
  }

  members(members) {
    this.ring.show(members);
    for (const input of this.inputs) input.checked = (input.value === "even") === this.ring.even;
  }

  pulse(beat) {
    this.ring.pulse(beat);
  }

  event(event) {
    this.ring.event(event);
  }

  mark(name) {
    this.ring.mark(name);
  }
}
