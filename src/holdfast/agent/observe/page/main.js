// One agent, as it sees its group: what comes in, and which part of the page shows it.

import { byId, say, set } from "./dom.js";
import { Events } from "./events.js";
import { HealthPanel, MembersPanel, showGrants, showSeats } from "./panels.js";
import { Stream, Unauthorised, getJson } from "./stream.js";
import { timeOf } from "./text.js";
import { startTheme } from "./theme.js";

const RECENT = 120; // events of before that are shown at the start
const LOOK_EVERY_MS = 10000;
const TOKEN = "holdfast-token";

const members = new MembersPanel(choose);
const health = new HealthPanel();
const events = new Events();
const panels = []; // of the membership and of features
let clockAhead = 0; // the agent's wall clock minus ours, in seconds
let life = null;
let downAt = null; // since when nothing was heard
let nextAt = 0;

function choose(name) {
  for (const panel of panels) panel.mark?.(name);
  members.mark(name);
}

/** The agent says in the page which panels it has. */
async function loadPanels() {
  const places = document.body.dataset.panels.split(" ").filter(Boolean);
  for (const { default: Panel, words, numbered } of await Promise.all(places.map((place) => import(`./${place}`)))) {
    const panel = new Panel({ choose, ask: (path) => getJson(path, token()) });
    panels.push(panel);
    events.learn({ words, numbered, story: panel.story ? (event) => panel.story(event) : null });
  }
}

const token = () => sessionStorage.getItem(TOKEN) ?? "";

function askToken() {
  const dialog = byId("token");
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN, byId("token-input").value.trim());
      done();
    }, { once: true });
    dialog.showModal();
  });
}

function showMembers(list) {
  document.body.dataset.version = list.version;
  members.show(list.members);
  for (const panel of panels) panel.members?.(list.members);
  tick();
}

/** A list of a feature. */
function showList(name, list) {
  for (const panel of panels) panel.lists?.[name]?.(list);
  tick();
}

function showPulse(beat) {
  clockAhead = beat.at - Date.now() / 1000;
  const state = byId("state");
  state.hidden = false;
  say(state, beat.state);
  set(state, { "data-is": beat.state });
  for (const panel of panels) panel.pulse?.(beat);
  health.show(beat.health);
  showGrants(beat.grants);
}

function showLink() {
  const body = document.body;
  if (downAt === null) {
    body.dataset.link = "live";
    say(byId("link-text"), "Live");
    return;
  }
  body.dataset.link = "stale";
  const seconds = Math.max(0, Math.ceil((nextAt - Date.now()) / 1000));
  say(byId("link-text"), `Stale since ${timeOf(downAt / 1000)}, ${seconds ? `trying again in ${seconds} s` : "trying now"}`);
}

function onEvent(name, data) {
  if (name === "pulse") showPulse(data);
  else if (name === "members") showMembers(data);
  else if (name === "message") {
    events.add(data);
    for (const panel of panels) panel.event?.(data);
  } else if (name === "lost") {
    events.note(data.count === null ? "Events may be missing" : `${data.count} events were missed`, "The page read too slowly, or the agent was started again. Lists are right.");
  } else if (name === "hello") {
    if (life !== null && life !== data.life) introduce().catch(() => {});
    life = data.life;
  } else showList(name, data);
}

/** Who is speaking: asked again when the agent was started anew. */
async function introduce() {
  const info = await getJson("v1/info", token());
  say(byId("group"), info.group ?? "");
  say(byId("agent"), info.name ?? "");
  say(byId("version"), `Holdfast ${info.version ?? ""}`);
  document.title = `${info.name ?? "agent"} \u00b7 ${info.group ?? ""} \u00b7 Holdfast`;
}

/** What changes seldom, and what the stream says only together with something else: seats, and the lists of features. */
async function look() {
  try {
    const names = panels.flatMap((panel) => Object.keys(panel.lists ?? {}));
    const [seats, ...lists] = await Promise.all(["seats", ...names].map((what) => getJson(`v1/${what}`, token())));
    showSeats(seats.seats);
    lists.forEach((list, at) => showList(names[at], list));
  } catch { /* The stream says whether the agent is there. */ }
}

function tick() {
  const now = Date.now() / 1000 + clockAhead;
  members.tick(now);
  for (const panel of panels) panel.tick?.(now);
  if (downAt !== null) showLink();
}

async function begin() {
  for (;;) {
    try {
      await introduce();
      return await getJson(`v1/events?internal=true&limit=${RECENT}`, token());
    } catch (error) {
      if (!(error instanceof Unauthorised)) return null;
      await askToken();
    }
  }
}

async function start() {
  startTheme();
  await loadPanels();
  const recent = await begin();
  for (const event of recent?.events ?? []) events.add(event, false);
  await look();
  const on = {
    open: () => {
      downAt = null;
      showLink();
    },
    event: onEvent,
    down: (heardAt, again) => {
      downAt ??= heardAt;
      nextAt = again;
      showLink();
    },
    unauthorised: askToken,
  };
  const stream = new Stream("events?internal=true&pulse=true", on, token);
  stream.lastId = recent?.last ?? null;
  setInterval(tick, 1000);
  setInterval(() => document.hidden || look(), LOOK_EVERY_MS);
}

start();
