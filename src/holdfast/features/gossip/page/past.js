// The last ten minutes: the measured c and the members under suspicion as lines, turbulence as a band below them.

import { byId, set, svg } from "../dom.js";
import { plural } from "../text.js";

const WINDOW = 600; // seconds
const [WIDTH, HEIGHT] = [320, 122];
const [LEFT, RIGHT, TOP, BOTTOM] = [1, 319, 18, 88];
const BAND = [93, 99]; // of turbulence
const LEAST = 4; // members that the height stands for at least: c = 1 is no wall
const LIVE_MS = 1000; // between two drawings

export class Past {
  constructor() {
    this.samples = []; // { at, c, turbulent, suspected }; seconds on the clock of the page, which does not jump
    this.drawnAt = -Infinity;
    this.most = svg("text", { x: LEFT, y: TOP - 5 });
    this.band = svg("path", { class: "turbulent" });
    this.lines = { c: svg("path", { class: "c" }), suspected: svg("path", { class: "suspected" }) };
    const root = byId("gossip-plot");
    set(root, { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
    for (const y of [TOP, (TOP + BOTTOM) / 2, BOTTOM]) root.append(svg("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y, y2: y }));
    root.append(this.band, this.lines.suspected, this.lines.c, this.most);
    for (const [text, x, anchor] of [["10 min ago", LEFT, "start"], ["5 min", (LEFT + RIGHT) / 2, "middle"], ["now", RIGHT, "end"]]) {
      const label = svg("text", { x, y: HEIGHT - 8, "text-anchor": anchor });
      label.textContent = text;
      root.append(label);
    }
    this.root = root;
  }

  /** What the agent has kept: a sample every five seconds. */
  show({ interval, ago, c, turbulent, suspected }) {
    const now = performance.now() / 1000;
    this.gap = 3 * interval;
    this.samples = ago.map((seconds, i) => ({ at: now - seconds, c: c[i], turbulent: turbulent[i], suspected: suspected[i] }));
    this.draw();
  }

  /** How it is now. */
  now({ c, turbulent, suspects }) {
    this.latest = { c, turbulent, suspected: suspects };
    if (performance.now() - this.drawnAt >= LIVE_MS) this.draw();
  }

  draw() {
    this.drawnAt = performance.now();
    const now = this.drawnAt / 1000;
    const samples = this.samples.filter((each) => now - each.at <= WINDOW);
    if (this.latest) samples.push({ at: now, ...this.latest });
    if (samples.length === 0) return;
    const most = Math.max(LEAST, ...samples.map((each) => Math.max(each.c, each.suspected)));
    const x = (at) => (RIGHT - ((now - at) / WINDOW) * (RIGHT - LEFT)).toFixed(1);
    const y = (value) => (BOTTOM - (value / most) * (BOTTOM - TOP)).toFixed(1);
    for (const [name, line] of Object.entries(this.lines)) {
      // A number stays until the next sample says another one; where no sample is, no line says what was there.
      const steps = samples.map((each, i) => (i === 0 || each.at - samples[i - 1].at > this.gap ? `M${x(each.at)} ${y(each[name])}` : `H${x(each.at)}V${y(each[name])}`));
      set(line, { d: steps.join("") });
    }
    const bands = samples.flatMap((each, i) => (each.turbulent ? [`M${x(samples[i - 1]?.at ?? each.at - 5)} ${BAND[0]}H${x(each.at)}V${BAND[1]}H${x(samples[i - 1]?.at ?? each.at - 5)}Z`] : []));
    set(this.band, { d: bands.join("") });
    this.most.textContent = plural(most, "member");
    const last = samples.at(-1);
    set(this.root, { "aria-label": `c is ${last.c}, ${plural(last.suspected, "member")} suspected, ${last.turbulent ? "turbulent" : "calm"}; the most of the last ten minutes: ${Math.max(...samples.map((each) => each.c))} and ${Math.max(...samples.map((each) => each.suspected))}` });
  }
}
