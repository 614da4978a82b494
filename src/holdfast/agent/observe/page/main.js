// One agent, as it sees its group: what comes in, and which part of the page shows it.

import { byId, say, set } from "./dom.js";
import { Events } from "./events.js";
import { HealthPanel, LeadersPanel, MembersPanel, showGrants, showSeats } from "./panels.js";
import { PoolsPanel } from "./pools.js";
import { Ring } from "./ring.js";
import { Stream, Unauthorised, getJson } from "./stream.js";
import { timeOf } from "./text.js";
import { startTheme } from "./theme.js";

const RECENT = 120; // events of before that are shown at the start
const LOOK_EVERY_MS = 10000;
const TOKEN = "holdfast-token";

const ring = new Ring(byId("ring"), choose);
const members = new MembersPanel(choose);
const leaders = new LeadersPanel();
const pools = new PoolsPanel();
const health = new HealthPanel();
const events = new Events();
let clockAhead = 0; // the agent's wall clock minus ours, in seconds
let life = null;
let downAt = null; // since when nothing was heard
let nextAt = 0;

function choose(name) {
  ring.mark(name);
  members.mark(name);
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
  ring.show(list.members);
  showSpread();
  tick();
}

function showLeaders(list) {
  leaders.show(list);
  tick();
}

function showPulse(beat) {
  clockAhead = beat.at - Date.now() / 1000;
  const state = byId("state");
  state.hidden = false;
  say(state, beat.state);
  set(state, { "data-is": beat.state });
  byId("ring-card").hidden = !beat.ring; // another membership has no ring
  if (beat.ring) ring.pulse(beat);
  health.show(beat.health, beat.ring?.timing);
  showGrants(beat.grants);
}

function showSpread() {
  for (const input of document.querySelectorAll("input[name=spread]")) input.checked = (input.value === "even") === ring.even;
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
  else if (name === "leaders") showLeaders(data);
  else if (name === "tickets") pools.show(data);
  else if (name === "message") {
    events.add(data);
    ring.event(data);
  } else if (name === "lost") {
    events.note(data.count === null ? "Events may be missing" : `${data.count} events were missed`, "The page read too slowly, or the agent was started again. Lists are right.");
  } else if (name === "hello") {
    if (life !== null && life !== data.life) introduce().catch(() => {});
    life = data.life;
  }
}

/** Who is speaking: asked again when the agent was started anew. */
async function introduce() {
  const info = await getJson("v1/info", token());
  say(byId("group"), info.group ?? "");
  say(byId("agent"), info.name ?? "");
  say(byId("version"), `Holdfast ${info.version ?? ""}`);
  document.title = `${info.name ?? "agent"} \u00b7 ${info.group ?? ""} \u00b7 Holdfast`;
}

/** What changes seldom, and what the stream says only together with something else: seats, and who stands for a name. */
async function look() {
  try {
    const [seats, led, tickets] = await Promise.all(["seats", "leaders", "tickets"].map((what) => getJson(`v1/${what}`, token())));
    showSeats(seats.seats);
    showLeaders(led);
    pools.show(tickets);
  } catch { /* The stream says whether the agent is there. */ }
}

function tick() {
  members.tick(Date.now() / 1000 + clockAhead);
  leaders.tick(Date.now() / 1000 + clockAhead);
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
  for (const input of document.querySelectorAll("input[name=spread]")) input.addEventListener("change", () => ring.setSpread(input.value));
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
