// Angles and lines of the ring. Nothing here touches the page.

export const TURN = 2 * Math.PI;
const TOP = -TURN / 4;

/** A point at an angle; 0 is the top, and it grows clockwise. */
export const at = (centre, radius, angle) => [centre.x + radius * Math.cos(angle + TOP), centre.y + radius * Math.sin(angle + TOP)];

export const wrap = (angle) => ((angle % TURN) + TURN) % TURN;

/** From one angle to another, the shorter way, with its sign. */
export const between = (from, to) => wrap(to - from + TURN / 2) - TURN / 2;

export const point = ([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`;

/** A piece of the circle from `start` to `end`, clockwise. */
export function arc(centre, radius, start, end) {
  const width = Math.min(end - start, TURN - 0.0001);
  if (width <= 0) return "";
  const large = width > TURN / 2 ? 1 : 0;
  return `M${point(at(centre, radius, start))} A${radius} ${radius} 0 ${large} 1 ${point(at(centre, radius, start + width))}`;
}

/** A line between two members, bent towards the middle and never through it. */
export function bow(centre, radius, from, to) {
  const width = between(from, to);
  const away = (2 * Math.abs(width)) / (TURN / 2) - 1; // from -1, beside each other, to 1, opposite
  const pull = radius * (0.6 + (away < 0 ? 0.18 : 0.32) * away * away);
  return `M${point(at(centre, radius, from))} Q${point(at(centre, pull, from + width / 2))} ${point(at(centre, radius, to))}`;
}

/** For members in ring order, as [name, angle]: how far each one's keys reach, backwards and forwards. */
export function lands(places) {
  const found = new Map();
  places.forEach(([name, angle], i) => {
    const before = places[(i + places.length - 1) % places.length][1];
    const after = places[(i + 1) % places.length][1];
    const alone = places.length === 1;
    found.set(name, alone ? [TURN / 2, TURN / 2] : [gap(before, angle) / 2, gap(angle, after) / 2]);
  });
  return found;
}

const gap = (from, to) => wrap(to - from) || TURN;

/** Where the gap of a member that is gone closes: seen from its own angle. */
export function closing(places, angle) {
  if (places.length === 0) return 0;
  const sorted = places.map(([, each]) => wrap(each - angle)).sort((a, b) => a - b);
  const after = sorted[0];
  const before = sorted[sorted.length - 1] - TURN;
  return (before + after) / 2;
}

/** Labels of one side, pushed apart until none covers another; `wanted` are heights in rising order. */
export function apart(wanted, least, top, bottom) {
  const placed = [...wanted];
  for (let i = 1; i < placed.length; i += 1) placed[i] = Math.max(placed[i], placed[i - 1] + least);
  let limit = bottom;
  for (let i = placed.length - 1; i >= 0 && placed[i] > limit; i -= 1) {
    placed[i] = limit;
    limit -= least;
  }
  return placed.map((each) => Math.max(top, each));
}
