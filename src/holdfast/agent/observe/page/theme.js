// Light or dark: as the system says, until the button is pressed.

import { byId } from "./dom.js";

const KEY = "holdfast-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export function startTheme() {
  const button = byId("theme");
  let chosen = kept();
  const show = () => {
    const isDark = chosen ? chosen === "dark" : dark.matches;
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    button.setAttribute("aria-pressed", String(isDark));
  };
  button.addEventListener("click", () => {
    const isDark = chosen ? chosen === "dark" : dark.matches;
    chosen = isDark ? "light" : "dark";
    try {
      localStorage.setItem(KEY, chosen);
    } catch { /* A browser that keeps nothing: the choice lasts as long as the page. */ }
    show();
  });
  dark.addEventListener("change", show);
  show();
}

function kept() {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : null;
  } catch {
    return null;
  }
}
