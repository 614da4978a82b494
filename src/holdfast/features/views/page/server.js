// One server of views and the members that are attached to it: a cell each, in a place that it keeps.

import { el, say, set } from "../dom.js";
import { plural } from "../text.js";

const CELLS_MOST = 200; // of one server: a group may have 2,000 members, and a page shows each change of them
const GONE_MS = 6000; // the name of a member that went stays for so long; then its place is free

/** Places are given once: to the members that are there first by name, later to the next one that comes. */
export class ServerBox {
  constructor(name, choose) {
    this.name = name;
    this.places = []; // cells, from the first to the last; `life` is null where the place is free
    this.byLife = new Map();
    this.sum = el("span", { class: "sum" });
    this.note = el("span", { class: "note" });
    this.more = el("p", { class: "more" });
    this.list = el("ol");
    this.root = el("article", { class: "view-server", "data-server": name }, el("h3", {}, el("b", { dir: "auto", title: name }, name), this.sum, this.note), this.list, this.more);
    for (const [type, on] of [["pointerover", true], ["pointerleave", false]]) {
      this.list.addEventListener(type, (event) => choose(on ? event.target.closest("li")?.dataset.member ?? null : null));
    }
  }

  /** `members`: those of the view; null if this server is not in it. `lost`: there is no view, so nothing is known to be otherwise. */
  show(members, { lost = false } = {}) {
    set(this.root, { "data-is": members === null ? "out" : "in" });
    say(this.note, members !== null ? "" : lost ? "no view" : "not in this view");
    if (lost) return;
    const now = new Map((members ?? []).map((each) => [`${each.name}#${each.boot}`, each]));
    const first = this.places.length === 0;
    for (const [life, cell] of this.byLife) if (!now.has(life)) this.leave(life, cell);
    for (const [life, member] of now) this.keep(life, member);
    this.fill(now, first);
    say(this.sum, members === null ? "" : plural(now.size, "member"));
    say(this.more, now.size > this.byLife.size ? `and ${now.size - this.byLife.size} more` : "");
  }

  /** A member that has a place; or whose name has one, after it was started anew. */
  keep(life, member) {
    const cell = this.byLife.get(life) ?? this.places.find((each) => each.life === null && each.name === member.name);
    if (cell) this.put(cell, life, member, cell.life === null);
  }

  /** Those that have none yet. */
  fill(now, first) {
    const free = this.places.filter((each) => each.life === null);
    const later = free.filter((each) => each.timer !== null); // whose last member is still to be seen
    const queue = [...free.filter((each) => each.timer === null)];
    for (const [life, member] of now) {
      if (this.byLife.has(life)) continue;
      const cell = queue.shift() ?? (this.places.length < CELLS_MOST ? this.add() : later.shift());
      if (!cell) return;
      this.put(cell, life, member, !first);
    }
  }

  add() {
    const cell = { root: el("li", { dir: "auto" }), life: null, name: null, timer: null };
    this.places.push(cell);
    this.list.append(cell.root);
    return cell;
  }

  put(cell, life, member, fresh) {
    clearTimeout(cell.timer);
    [cell.life, cell.name, cell.timer] = [life, member.name, null];
    this.byLife.set(life, cell);
    say(cell.root, member.name);
    const title = `${member.name}, life ${member.boot}, ${member.address}, attachment ${member.attach}${member.me ? ", this agent" : ""}`;
    set(cell.root, { "data-is": "in", "data-member": member.name, "data-me": member.me, title });
    if (!fresh) return;
    cell.root.classList.remove("taken");
    void cell.root.offsetWidth; // so that the animation begins anew
    cell.root.classList.add("taken");
  }

  leave(life, cell) {
    this.byLife.delete(life);
    cell.life = null;
    cell.root.classList.remove("taken");
    set(cell.root, { "data-is": "gone", "data-member": null, "data-me": null, title: `${cell.name} is not attached here any more` });
    cell.timer = setTimeout(() => this.free(cell), GONE_MS);
  }

  free(cell) {
    [cell.name, cell.timer] = [null, null];
    say(cell.root, "");
    set(cell.root, { "data-is": "free", title: null });
    while (this.places.length && this.places.at(-1).life === null && this.places.at(-1).timer === null) this.places.pop().root.remove();
  }

  mark(name) {
    for (const cell of this.byLife.values()) cell.root.classList.toggle("chosen", cell.root.dataset.member === name);
  }
}
