// Numbers and times as people read them.

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export function timeOf(at, { exact = false } = {}) {
  const date = new Date(at * 1000);
  const thousandths = String(date.getMilliseconds()).padStart(3, "0");
  return clock.format(date) + (exact ? `.${thousandths}` : "");
}

/** Seconds with a unit that fits: ["0.62", "s"], ["0.4", "ms"]. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return ["\u2013", ""];
  if (seconds < 0.0995) return [(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0), "ms"];
  return [seconds.toFixed(seconds < 9.995 ? 2 : 1), "s"];
}

export const spanText = (seconds) => span(seconds).join("\u202f").trim();

export function age(seconds) {
  if (!(seconds >= 0)) return "\u2013";
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export const bytes = (count) => [(count / (1 << 20)).toFixed(count < 10485760 ? 1 : 0), "MiB"];

export const short = (text, length) => ([...text].length > length ? [...text].slice(0, Math.max(1, length - 1)).join("") + "\u2026" : text);

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
