// Tabs: one panel at a time, selected by pointer or arrow keys; its name in the address makes it linkable.

export function wireTabs(list, shown = () => {}) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const choose = (chosen, focus) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panel(tab).hidden = tab !== chosen;
    }
    if (focus) chosen.focus();
    history.replaceState(null, "", chosen === tabs[0] ? location.pathname + location.search : `#${panel(chosen).id}`);
    shown(panel(chosen).id);
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(tab, false);
  });
  list.addEventListener("keydown", (event) => {
    const now = tabs.indexOf(document.activeElement), ways = { ArrowLeft: -1, ArrowRight: 1, Home: -now, End: tabs.length - 1 - now };
    if (!(event.key in ways) || now < 0) return;
    event.preventDefault();
    choose(tabs[(now + ways[event.key] + tabs.length) % tabs.length], true);
  });
  const asked = tabs.find((tab) => `#${panel(tab).id}` === location.hash);
  if (asked) choose(asked, false);
}
