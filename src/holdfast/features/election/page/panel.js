// Elections: a line per name, and how the last election that began at this agent went.

import { byId, el, say, set, svg } from "../dom.js";
import { age, spanText } from "../text.js";

export const words = {};
export default class ElectionsPanel {
  constructor() {
    this.lists = { elections: (list) => this.show(list) };
  }
  show() {}
}
