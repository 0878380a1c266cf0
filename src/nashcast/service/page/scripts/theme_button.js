// The button that switches between system, light and dark colours and stores the choice.

import { put } from "./panels.js";

const themes = ["system", "light", "dark"];

function choose(chosen) {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  localStorage.setItem("nashcast-theme", chosen);
  put("theme-words", chosen);
}

export function wireTheme() {
  put("theme-words", document.documentElement.dataset.theme ?? "system");
  document.getElementById("theme").addEventListener("click", () => {
    choose(themes[(themes.indexOf(document.getElementById("theme-words").textContent) + 1) % themes.length]);
  });
}
