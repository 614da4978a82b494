// The field: a cell for each name that the agent remembers, at the place that the agent gave it. Drawn on a canvas, because thousands of elements
// would cost more than the rest of the page: only cells that changed are drawn again, all changes of one frame at once.

import { short } from "../text.js";

const ASPECT = 1.75; // of the field: about that of its room on a screen
const CELLS_LEAST = 16; // the field has room for so many, then for twice as many, and so on
const NAMED_MOST = 128; // up to so many places each cell has its name in it
const NAME_LEAST = 44; // pixels of a cell with a name
const NAMED_COLUMNS = new Map([[16, 4], [32, 4], [64, 6], [128, 8]]);
const CELL_MOST = { width: 230, height: 84 }; // a group of three is no wall
const STAGE_MS = 750; // a doubt and a decision are shown at least so long: they may be milliseconds apart
const TOLD_MS = 1500; // an event is newer than a list that was asked for before it: for so long the list says nothing about its member
const UNHEALTHY = [0.25, 1.5]; // suspicions of late, decayed: from the first on a small mark, from the second on a large one

export const STATUSES = ["alive", "suspected", "decided", "failed", "left"];

/** Where cells stand in a room of this size: columns follow from the number of places alone, so nothing moves when the window does. */
export function layout(places, { width, height }) {
  let room = CELLS_LEAST;
  while (room < places) room *= 2;
  const columns = NAMED_COLUMNS.get(room) ?? Math.ceil(Math.sqrt(room * ASPECT));
  const rows = Math.ceil(room / columns);
  const named = room <= NAMED_MOST;
  const [most, least] = [width / columns, height / rows];
  const cell = named ? { width: Math.min(CELL_MOST.width, most), height: Math.min(CELL_MOST.height, least) } : { width: Math.min(most, least), height: Math.min(most, least) };
  return { columns, rows, ...cell, left: (width - columns * cell.width) / 2, top: (height - rows * cell.height) / 2, named: named && cell.width >= NAME_LEAST };
}

/** 0: healthy, 1: suspected lately, 2: suspected again and again. */
export const levelOf = (unhealthy) => UNHEALTHY.filter((least) => unhealthy >= least).length;

export class Field {
  /** `changed(cell)`: a cell shows another status now. */
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    this.context = canvas.getContext("2d");
    this.cells = new Map(); // by name
    this.at = []; // by place
    this.places = 0;
    this.size = { width: 0, height: 0 };
    this.colours = null;
    this.dirty = new Set(); // places
    this.frame = null;
    this.drawn = 0; // cells, since the page was opened: tests see that only changes are drawn
  }

  // What is known.

  /** All cells, as the agent has them. What is not among them is forgotten, and its place is free. */
  show({ places, cells }, me) {
    const names = new Set(cells.map((each) => each.name));
    for (const [name, cell] of this.cells) if (!names.has(name)) this.forget(cell);
    const now = performance.now();
    for (const { name, place, status, unhealthy } of cells) {
      const cell = this.cells.get(name) ?? this.add(name, place);
      if (cell.place !== place) this.move(cell, place);
      const wanted = status === "dead" ? "failed" : status;
      if (cell.fresh) {
        cell.wanted = wanted;
        cell.fresh = false;
        this.wear(cell, wanted);
      } else if (cell.wanted !== wanted && now - cell.toldAt > TOLD_MS) this.stage(cell, wanted);
      this.mark(cell, levelOf(unhealthy), name === me);
    }
    if (places !== this.places) {
      this.places = places;
      this.place();
    }
  }

  /** A status that an event told; the next list says the same. */
  told(name, status) {
    const cell = this.cells.get(name);
    if (!cell) return;
    cell.toldAt = performance.now();
    if (cell.wanted !== status) this.stage(cell, status);
  }

  /** The worst of the members, which the agent tells several times a second. */
  health(name, unhealthy) {
    const cell = this.cells.get(name);
    if (cell) this.mark(cell, levelOf(unhealthy), cell.me);
  }

  /** This agent's own name is known. */
  own(name) {
    for (const cell of this.cells.values()) this.mark(cell, cell.level, cell.name === name);
  }

  add(name, place) {
    const cell = { name, place, status: "alive", wanted: "alive", queue: [], timer: null, level: 0, me: false, toldAt: -Infinity, fresh: true };
    this.cells.set(name, cell);
    this.at[place] = cell;
    this.redraw(place);
    return cell;
  }

  move(cell, place) {
    if (this.at[cell.place] === cell) this.at[cell.place] = undefined;
    this.redraw(cell.place);
    cell.place = place;
    this.at[place] = cell;
    this.redraw(place);
  }

  forget(cell) {
    clearTimeout(cell.timer);
    this.cells.delete(cell.name);
    if (this.at[cell.place] === cell) this.at[cell.place] = undefined;
    this.redraw(cell.place);
    cell.status = cell.wanted = "forgotten";
    this.changed(cell);
  }

  mark(cell, level, me) {
    if (cell.level === level && cell.me === me) return;
    [cell.level, cell.me] = [level, me];
    this.redraw(cell.place);
  }

  /** One status after the other, each for as long as an eye needs. */
  stage(cell, status) {
    cell.wanted = status;
    cell.queue.push(status);
    if (!cell.timer) this.nextStage(cell);
  }

  nextStage(cell) {
    cell.timer = null;
    const status = cell.queue.shift();
    if (status === undefined) return;
    this.wear(cell, status);
    cell.timer = setTimeout(() => this.nextStage(cell), status === "alive" ? 0 : STAGE_MS);
  }

  wear(cell, status) {
    if (cell.status === status) return;
    cell.status = status;
    this.redraw(cell.place);
    this.changed(cell);
  }

  // Where it is.

  resize(width, height) {
    if (width === 0 || (width === this.size.width && height === this.size.height && this.ratio === devicePixelRatio)) return;
    this.size = { width, height };
    this.ratio = devicePixelRatio;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.place();
  }

  place() {
    if (this.size.width === 0) return;
    this.grid = layout(this.places, this.size);
    this.redrawAll();
  }

  /** Left, top, width and height of a place, on whole pixels of the screen. */
  box(place) {
    const { columns, left, top, width, height } = this.grid;
    const [column, row] = [place % columns, Math.floor(place / columns)];
    const snap = (value) => Math.round(value * this.ratio) / this.ratio;
    const [x, y] = [snap(left + column * width), snap(top + row * height)];
    return { x, y, width: snap(left + (column + 1) * width) - x, height: snap(top + (row + 1) * height) - y };
  }

  /** The cell under a point. */
  under(x, y) {
    if (!this.grid) return null;
    const { columns, left, top, width, height } = this.grid;
    const [column, row] = [Math.floor((x - left) / width), Math.floor((y - top) / height)];
    return column >= 0 && column < columns && row >= 0 ? this.at[row * columns + column] ?? null : null;
  }

  /** The next cell in a direction: `step` places on, past free ones. */
  beside(cell, step) {
    for (let place = cell.place + step; place >= 0 && place < this.places; place += step) if (this.at[place]) return this.at[place];
    return cell;
  }

  get first() {
    return this.at.find(Boolean) ?? null;
  }

  get last() {
    return this.at.findLast(Boolean) ?? null;
  }

  // How it is drawn.

  recolour(colours) {
    this.colours = colours;
    this.redrawAll();
  }

  redrawAll() {
    this.whole = true;
    this.redraw(0);
  }

  redraw(place) {
    this.dirty.add(place);
    this.frame ??= requestAnimationFrame(() => this.flush());
  }

  flush() {
    this.frame = null;
    if (!this.colours || !this.grid) return;
    const { context, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.whole) context.clearRect(0, 0, this.size.width, this.size.height);
    const places = this.whole ? Array(this.places).keys() : this.dirty;
    for (const place of places) {
      const box = this.box(place);
      if (!this.whole) context.clearRect(box.x, box.y, box.width, box.height);
      draw(context, box, this.at[place] ?? null, this.colours, this.grid.named);
      this.drawn += 1;
    }
    this.whole = false;
    this.dirty.clear();
    this.canvas.dataset.drawn = this.drawn;
  }
}

/** One cell, or a free place. Each status has a form of its own beside its colour. */
export function draw(context, box, cell, colours, named = false) {
  const least = Math.min(box.width, box.height);
  const gap = least >= 30 ? 4 : least >= 11 ? 2 : least >= 5 ? 1 : 0.5;
  const [x, y, width, height] = [box.x + gap / 2, box.y + gap / 2, box.width - gap, box.height - gap];
  const side = Math.min(width, height);
  const round = least >= 30 ? 7 : least >= 11 ? 3 : least >= 7 ? 1.5 : 0;
  const line = side >= 9 ? 1.5 : 1;
  const shape = (inset = 0) => {
    context.beginPath();
    context.roundRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, Math.max(0, round - inset));
  };
  if (!cell) {
    context.fillStyle = colours.line;
    const dot = Math.min(2, side / 3);
    context.fillRect(x + (width - dot) / 2, y + (height - dot) / 2, dot, dot);
    return;
  }
  const { status } = cell;
  if (status === "alive" || status === "suspected" || status === "decided") {
    context.fillStyle = colours[status];
    shape();
    context.fill();
  } else {
    context.strokeStyle = status === "failed" ? colours.failed : colours.left;
    context.lineWidth = line;
    shape(line / 2);
    context.stroke();
  }
  if (status === "alive" && cell.level > 0) corner(context, x + width, y + height, side * (cell.level > 1 ? 0.8 : 0.5) * (named ? 0.6 : 1), colours.suspected);
  const at = named ? [x + Math.min(15, width / 4), y + height / 2] : [x + width / 2, y + height / 2];
  const size = named ? Math.min(4.5, side / 4) : side / 4;
  if (status === "suspected") dot(context, at, Math.max(1, named ? 4 : side / 6), colours.card);
  if (status === "decided") cross(context, at, size, colours.card, Math.max(1, Math.min(2.5, side / 6)));
  if (status === "failed") cross(context, at, size, colours.decided, line);
  if (status === "left" && named) dot(context, at, 2, colours.left);
  if (cell.me) {
    context.strokeStyle = colours.ink;
    context.lineWidth = side >= 9 ? 2 : 1;
    shape(context.lineWidth / 2);
    context.stroke();
  }
  if (named) write(context, cell, x, y, width, height, colours);
}

function corner(context, x, y, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x, y);
  context.lineTo(x - size, y);
  context.fill();
}

function dot(context, [x, y], radius, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, Math.PI * 2);
  context.fill();
}

function cross(context, [x, y], size, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
}

function write(context, cell, x, y, width, height, colours) {
  const room = cell.status === "alive" ? 11 : Math.min(15, width / 4) + 10;
  const size = Math.min(13, height - 8);
  if (size < 8) return;
  context.font = `${cell.me ? 600 : 450} ${size}px ${colours.font}`;
  context.fillStyle = cell.status === "suspected" || cell.status === "decided" ? colours.card : cell.status === "alive" ? colours.ink : colours.soft;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(x, y, width - 6, height);
  context.clip();
  context.fillText(short(cell.name, Math.max(2, Math.floor((width - room - 6) / (size * 0.56)))), x + room, y + height / 2 + 0.5);
  context.restore();
}
