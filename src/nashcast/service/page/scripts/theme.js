// Runs before the first paint, so that the page does not flash in the wrong colours.
"use strict";
{
  const chosen = localStorage.getItem("nashcast-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
