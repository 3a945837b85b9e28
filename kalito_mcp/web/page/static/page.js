// Keys, and dates in the reader's own time zone. Everything else works without this file.
(() => {
  "use strict";
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  document.documentElement.classList.add("has-script");

  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const localise = () => {
    for (const time of all("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const text = whole.format(at);
      if (time.textContent !== text) {
        time.textContent = text;
        time.title = time.dateTime;
      }
    }
  };

  const shown = (element) => element.checkVisibility();
  const items = () => all("[data-item]").filter(shown);
  const current = () => document.activeElement && document.activeElement.closest("[data-item]");
  const move = (step) => {
    const found = items();
    const place = found.indexOf(current());
    const next = found[place < 0 ? (step > 0 ? 0 : found.length - 1) : place + step];
    if (!next) return;
    const target = next.matches("label") ? one("input", next) : next;
    target.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  // An act may take away what has the focus: then what comes in its place gets it.
  let acted = null;
  const keepFocus = () => {
    const holder = document.activeElement;
    const isKept = holder && holder !== document.body && shown(holder);
    if (acted !== null && !isKept) (items()[acted] || one("#main")).focus({ preventScroll: true });
    acted = null;
  };
  const press = (key) => {
    const button = one(`[data-key="${key}"]`, key === "u" ? document : current() || document.createElement("p"));
    if (button) button.click();
  };
  const edit = () => {
    const details = current() && one("[data-edit]", current());
    if (!details) return;
    if (details.matches("a")) { details.click(); return; }
    details.open = true;
    one("textarea", details).focus();
  };
  const tick = () => {
    const box = current() && one("input[type=checkbox]", current());
    if (box) box.click();
  };
  const search = () => {
    const field = one("[data-search]");
    if (field) { field.focus(); field.select(); } else { location.href = "/ask"; }
  };
  const help = () => one("#keys").showModal();
  const keys = {
    "/": search, j: () => move(1), k: () => move(-1), e: edit, f: () => press("f"), u: () => press("u"), x: tick, "?": help,
    Enter: () => { const open = document.activeElement.matches("[data-item]") && one("a.open", current()); if (open) open.click(); },
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const element = event.target;
    if (element.closest("dialog")) return;
    const writes = element.matches("textarea, select, input:not([type=checkbox]), [contenteditable]");
    if (event.key === "Escape" && writes) {
      const details = element.closest("details[data-edit]");
      element.blur();
      if (details) { details.open = false; const item = details.closest("[data-item]"); if (item) item.focus(); }
      return;
    }
    if (writes || !Object.hasOwn(keys, event.key)) return;
    if (event.key === "Enter" && !element.matches("[data-item]")) return;
    event.preventDefault();
    keys[event.key]();
  });
  addEventListener("click", (event) => {
    const opens = event.target.closest("[data-opens]");
    if (opens) one("#" + opens.dataset.opens).showModal();
    const ticks = event.target.closest("[data-ticks]");
    if (ticks) for (const box of all("input[type=checkbox]", ticks.closest("form"))) box.checked = ticks.checked;
  });
  addEventListener("submit", (event) => {
    if (event.target.method === "post") acted = items().indexOf(event.target.closest("[data-item]"));
  }, true);
  addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  });

  const marked = one(".turn.here");
  if (marked && !location.hash) marked.scrollIntoView({ block: "center" });
  localise();
  document.addEventListener("htmx:after:swap", () => { localise(); keepFocus(); });
  document.addEventListener("DOMContentLoaded", localise);
})();
