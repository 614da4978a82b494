// Server-sent events over fetch. EventSource cannot send a token, and says nothing about when it tries again.

const BACKOFF_FIRST = 500; // milliseconds
const BACKOFF_MOST = 15000;
const SILENCE_MOST = 6000; // the agent pulses four times a second; so much silence is a dead connection

export class Unauthorised extends Error {}

export async function getJson(path, token) {
  const response = await fetch(path, { headers: headers(token), cache: "no-store", credentials: "omit" });
  if (response.status === 401) throw new Unauthorised();
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

export class Stream {
  /** `on` has: open(), event(name, data), down(since, nextAt), unauthorised(). */
  constructor(path, on, token) {
    this.path = path;
    this.on = on;
    this.token = token;
    this.lastId = null;
    this.heardAt = Date.now();
    this.backoff = BACKOFF_FIRST;
    this.run();
  }

  async run() {
    for (;;) {
      try {
        await this.read();
      } catch (error) {
        if (error instanceof Unauthorised) await this.on.unauthorised();
      }
      const nextAt = Date.now() + this.backoff;
      this.on.down(this.heardAt, nextAt);
      await new Promise((done) => setTimeout(done, this.backoff));
      this.backoff = Math.min(BACKOFF_MOST, this.backoff * 2);
    }
  }

  async read() {
    const abort = new AbortController();
    let alarm = setTimeout(() => abort.abort(), SILENCE_MOST);
    try {
      const more = this.lastId === null ? {} : { "Last-Event-ID": this.lastId };
      const response = await fetch(this.path, { headers: { ...headers(this.token()), ...more }, signal: abort.signal, cache: "no-store", credentials: "omit" });
      if (response.status === 401) throw new Unauthorised();
      if (!response.ok) throw new Error(String(response.status));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      this.on.open();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(alarm);
        alarm = setTimeout(() => abort.abort(), SILENCE_MOST);
        this.heardAt = Date.now();
        this.backoff = BACKOFF_FIRST;
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) this.take(block);
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  take(block) {
    let name = "message";
    let data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("id: ")) this.lastId = line.slice(4);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data) this.on.event(name, JSON.parse(data));
  }
}

const headers = (token) => (token ? { Authorization: `Bearer ${token}` } : {});
