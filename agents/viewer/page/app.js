// Addresses to views, keys, themes, and following a run that goes on.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;
  const main = document.getElementById("main");
  const POLL_MS = 1500;

  const TABS = [["overview", "Overview"], ["conversation", "Conversation"], ["lineage", "Lineage"], ["ideas", "Ideas"], ["cost", "Cost"], ["compare", "Compare"], ["search", "Search"]];

  function address() {
    const [path, query] = location.hash.replace(/^#/, "").split("?");
    const parts = path.split("/").filter(Boolean).map((one) => { try { return decodeURIComponent(one); } catch { return one; } });
    const search = new URLSearchParams(query || "");
    if (parts[0] === "search") return { run: "", view: "search", rest: [], query: search };
    if (parts[0] !== "runs" || !parts[1]) return { run: "", view: "runs", rest: [], query: search };
    const view = Object.hasOwn(ks.views, parts[2] || "") ? parts[2] : "overview";
    return { run: parts[1], view, rest: parts.slice(3), query: search };
  }

  function drawBar(here) {
    const bar = ks.clear(document.getElementById("bar-run"));
    const nav = ks.clear(document.getElementById("nav"));
    if (!here.run) return;
    bar.append(h("a", { href: ks.place(here.run) }, here.run), ks.data.leftOut.length ? h("span", { class: "left-out" }, ` left out of this copy: ${ks.data.leftOut.join(", ")}`) : "");
    const current = here.view === "candidates" ? "lineage" : here.view;
    const left = nav.scrollLeft;
    nav.append(...TABS.map(([view, name]) => h("a", { href: view === "overview" ? ks.place(here.run) : ks.place(here.run, view), "aria-current": view === current ? "page" : null }, name)));
    // Where the views do not fit on one line, the present one is in sight.
    const [chosen, frame] = [nav.querySelector("[aria-current]"), nav.getBoundingClientRect()];
    nav.scrollLeft = left;
    if (chosen && chosen.getBoundingClientRect().right > frame.right) nav.scrollLeft += chosen.getBoundingClientRect().right - frame.right + 24;
    if (chosen && chosen.getBoundingClientRect().left < frame.left) nav.scrollLeft -= frame.left - chosen.getBoundingClientRect().left + 24;
  }

  let drawing = 0;

  async function draw({ quietly = false } = {}) {
    const mine = ++drawing;
    const here = address();
    let parts;
    main.setAttribute("aria-busy", "true");
    try {
      parts = await ks.views[here.view](here.run, here.rest, here.query);
    } catch (error) {
      parts = [ks.heading("This cannot be shown"), h("p", { class: "notice", role: "alert" }, error.message)];
    }
    if (mine !== drawing) return;
    const kept = quietly ? state() : null;
    drawBar(here);
    ks.clear(main).append(...[parts].flat(3).filter(Boolean));
    main.removeAttribute("aria-busy");
    const heading = main.querySelector("h1");
    document.title = `${heading ? heading.textContent : "Runs"}${here.run ? ` · ${here.run}` : ""} · kernel-scientist`;
    if (kept) restore(kept);
    else arrive(here, heading);
    follow(here.run);
  }

  ks.drawAgain = function (run, view) {
    const here = address();
    if (here.run === run && here.view === view) draw({ quietly: true });
  };

  // A live page is drawn anew: what was open stays open, what had the focus keeps it.
  function state() {
    const active = document.activeElement;
    return {
      open: [...main.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key),
      shut: [...main.querySelectorAll("details:not([open])[data-key]")].map((one) => one.dataset.key),
      focus: active && active.dataset ? active.dataset.key || active.id : "",
      link: active && active.getAttribute ? active.getAttribute("href") : null,
      y: window.scrollY,
      left: [...main.querySelectorAll(".scroll, .chart-scroll")].map((one) => one.scrollLeft),
    };
  }

  function restore(kept) {
    for (const one of main.querySelectorAll("details[data-key]")) {
      if (kept.open.includes(one.dataset.key)) one.open = true;
      else if (kept.shut.includes(one.dataset.key)) one.open = false;
    }
    main.querySelectorAll(".scroll, .chart-scroll").forEach((one, place) => { one.scrollLeft = kept.left[place] || 0; });
    const by = kept.focus ? [...main.querySelectorAll("[data-key],[id]")].find((one) => (one.dataset.key || one.id) === kept.focus) : null;
    const link = kept.link ? [...main.querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === kept.link) : null;
    const found = by || link;
    if (found && !found.contains(document.activeElement)) found.focus({ preventScroll: true });
    window.scrollTo(0, kept.y);
  }

  let first = true;

  function arrive(here, heading) {
    const aim = here.view === "conversation" && here.query.get("event");
    const item = aim ? document.getElementById(`event-${aim}`) : null;
    if (item) {
      item.scrollIntoView({ block: "center" });
      item.focus({ preventScroll: true });
    } else if (here.view === "search" && !here.query.get("q")) {
      document.getElementById("q").focus();
    } else {
      window.scrollTo(0, 0);
      if (!first && heading) heading.focus({ preventScroll: true });
    }
    first = false;
  }

  let timer = null;
  let seen = { run: "", seq: -1 };

  function follow(run) {
    clearTimeout(timer);
    if (seen.run !== run) seen = { run, seq: -1 };
    if (!run || ks.data.exported) return;
    timer = setTimeout(() => look(run), seen.seq < 0 ? 0 : POLL_MS);
  }

  async function look(run) {
    const badge = document.getElementById("live");
    let now;
    try {
      now = await ks.data.get(`runs/${run}/state`);
    } catch (error) {
      badge.hidden = Boolean(error.answered);
      badge.textContent = "not connected";
      badge.classList.add("off");
      // A server that answers that there is no such run will not say otherwise.
      if (!error.answered) timer = setTimeout(() => look(run), 3 * POLL_MS);
      return;
    }
    if (run !== address().run) return;
    badge.hidden = !now.live;
    badge.textContent = "live";
    badge.classList.remove("off");
    const mark = `${now.last_seq}/${now.live}`;
    const news = seen.seq !== -1 && seen.seq !== mark;
    const ended = news && !now.live && String(seen.seq).endsWith("true");
    seen.seq = mark;
    if (ended) document.getElementById("announce").textContent = "The run has ended.";
    const typing = /^(INPUT|SELECT)$/.test(document.activeElement.tagName) || ["search", "compare"].includes(address().view);
    if (news && !typing) return draw({ quietly: true });
    if (news) seen.seq = "";
    if (now.live || news) timer = setTimeout(() => look(run), POLL_MS);
  }

  const THEMES = ["system", "light", "dark"];
  const stored = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch {
      // A page opened from disk may have no storage; the choice then lasts as long as the page.
    }
    return value ?? null;
  };

  function theme(name) {
    document.documentElement.dataset.theme = name;
    document.getElementById("theme").textContent = `Theme: ${name}`;
    stored("theme", name);
  }

  function nextTheme() {
    theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
  }

  const KEYS = [["1 to 7", "the views of the run"], ["/", "search"], ["j, k", "next and previous event or place found"], ["n, p", "next and previous candidate, or page of events"], ["r", "list of runs"], ["t", "theme"], ["?", "this list"], ["Esc", "close it"]];
  let keysOn = stored("keys") !== "off";

  function showKeys() {
    const dialog = ks.clear(document.getElementById("keys"));
    const box = h("input", { type: "checkbox", checked: keysOn, id: "keys-on" });
    box.addEventListener("change", () => { keysOn = box.checked; stored("keys", keysOn ? "on" : "off"); });
    dialog.append(
      h("h2", { id: "keys-title" }, "Keys"),
      h("dl", { class: "keys" }, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
      h("p", {}, h("label", { class: "check" }, box, " single keys are on")),
      h("form", { method: "dialog" }, h("button", { type: "submit" }, "Close"))
    );
    dialog.showModal();
  }

  function move(by) {
    const all = [...main.querySelectorAll(".item, .hits > li")];
    const at = all.findIndex((one) => one.contains(document.activeElement));
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) {
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    }
  }

  function turn(word) {
    const link = main.querySelector(`.pager a[rel="${word}"]`) || [...main.querySelectorAll(".pager a")].find((one) => one.textContent === (word === "next" ? "Later" : "Earlier"));
    if (link) link.click();
  }

  function press(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysOn) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
    const run = address().run || ks.data.run;
    const tab = TABS[Number(event.key) - 1];
    const acts = { "?": showKeys, t: nextTheme, j: () => move(1), k: () => move(-1), n: () => turn("next"), p: () => turn("prev"), r: () => { location.hash = "#/runs"; }, "/": () => { location.hash = run ? ks.place(run, "search") : "#/search"; } };
    if (tab && run) location.hash = tab[0] === "overview" ? ks.place(run) : ks.place(run, tab[0]);
    else if (Object.hasOwn(acts, event.key)) acts[event.key]();
    else return;
    event.preventDefault();
  }

  document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("help").addEventListener("click", showKeys);
  document.addEventListener("keydown", press);
  window.addEventListener("hashchange", () => draw());
  theme(THEMES.includes(stored("theme")) ? stored("theme") : "system");
  if (ks.data.exported && !location.hash) history.replaceState(null, "", ks.place(ks.data.run));
  draw();
})();
