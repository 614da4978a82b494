// Counters: a line per name.

import { byId, el } from "../dom.js";

export const words = {
  CounterBegan: (f) => ["", null, `A member counts ${f.name}`, ""],
};

/** Only there when something is counted. */
export default class CountersPanel {
  constructor() {
    this.lists = { counters: (list) => this.show(list) };
  }

  show({ counters }) {
    const lines = Object.entries(counters).sort();
    byId("counters").hidden = lines.length === 0;
    byId("counter-rows").replaceChildren(...lines.map(([name, value]) => el("tr", {}, el("td", { dir: "auto" }, name), el("td", { class: "num" }, String(value)))));
  }
}
