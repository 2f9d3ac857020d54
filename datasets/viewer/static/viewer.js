// Keys and live updates. Every page can be read without this script.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const EVERY_MS = 2000;
  const rows = () => [...document.querySelectorAll("main table.rows tbody tr")].filter((row) => row.querySelector("a[href]"));
  const field = () => document.querySelector('input[type="search"]');
  const keys = document.getElementById("keys");
  let afterG = false;

  function move(step) {
    const sections = [...document.querySelectorAll(".sections a")];
    const list = sections.length ? sections.map((a) => document.querySelector(a.getAttribute("href"))) : rows();
    if (!list.length) return;
    const here = list.findIndex((item) => item.classList.contains("here"));
    const next = Math.min(list.length - 1, Math.max(0, here < 0 ? (step > 0 ? 0 : list.length - 1) : here + step));
    list.forEach((item, number) => item.classList.toggle("here", number === next));
    list[next].scrollIntoView({ block: sections.length ? "start" : "nearest" });
    if (!sections.length) list[next].querySelector("a[href]").focus({ preventScroll: true });
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && typing) return event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    if (afterG) {
      afterG = false;
      const page = /^[a-z]$/.test(event.key) && document.querySelector(`.top nav a[data-key="${event.key}"]`);
      if (page) { event.preventDefault(); page.click(); }
      return;
    }
    const link = { "[": 'a[rel="prev"]', "]": 'a[rel="next"]' }[event.key];
    if (link) document.querySelector(link)?.click();
    else if (event.key === "g") afterG = true;
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") keys.showModal();
    else if (event.key === "/" && field()) { event.preventDefault(); field().focus(); field().select(); }
  });

  // Choosing a filter shows the result at once; without the script there is a button.
  document.addEventListener("change", (event) => {
    if (event.target.matches(".filters select, .filters input[type=checkbox]")) event.target.form.requestSubmit();
  });

  // Live: ask whether anything changed; if so, replace the content, keeping what is open, typed and scrolled.
  async function update() {
    const { live, version } = document.body.dataset;
    const busy = document.hidden || keys.open || document.activeElement?.matches("input, select") || !getSelection().isCollapsed;
    try {
      if (!busy && (await (await fetch(live)).json()).version !== version) {
        const text = await (await fetch(location.href)).text();
        const fresh = new DOMParser().parseFromString(text, "text/html");
        const focused = document.activeElement?.getAttribute("href");
        const open = [...document.querySelectorAll("main details")].map((item) => item.open);
        document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
        document.querySelector(".set").replaceChildren(...fresh.querySelector(".set").childNodes);
        document.body.dataset.version = fresh.body.dataset.version;
        document.querySelectorAll("main details").forEach((item, number) => { item.open = open[number] ?? item.open; });
        if (focused) [...document.querySelectorAll("main a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
      }
    } catch { /* the server is gone or busy: the page stays as it is */ }
    setTimeout(update, EVERY_MS);
  }
  if (document.body.dataset.live) setTimeout(update, EVERY_MS);
})();
