// Where the page's values come from: the server that sent it, or what an exported page carries itself.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const holder = document.getElementById("embedded");
  const embedded = holder ? JSON.parse(holder.textContent) : null;
  const kept = new Map();
  const KEPT = 60;

  function keep(path, value) {
    kept.delete(path);
    kept.set(path, value);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    return value;
  }

  async function fetched(path, words) {
    const query = words === undefined ? "" : `?q=${encodeURIComponent(words)}`;
    let response;
    try {
      response = await fetch(`/api/${path.split("/").map(encodeURIComponent).join("/")}${query}`, { credentials: "same-origin" });
    } catch {
      throw new Error("The server does not answer; is 'kernel-scientist transcript view' still running?");
    }
    const value = await response.json();
    if (!response.ok) throw Object.assign(new Error(value.error || `The server answered ${response.status}.`), { answered: response.status });
    return value;
  }

  ks.data = {
    exported: embedded !== null,
    leftOut: embedded ? embedded.left_out : [],
    run: embedded ? embedded.run : null,

    // `settled`: the answer never changes, so it may be kept.
    async get(path, { settled = false, words } = {}) {
      if (embedded) return own(path, words);
      if (settled && kept.has(path)) return keep(path, kept.get(path));
      const value = await fetched(path, words);
      return settled ? keep(path, value) : value;
    },
  };

  let rows = { run: "", seq: 0, by: new Map(), list: [] };

  // Every candidate of the run in a line. A run that goes on is asked only for those that changed since.
  ks.data.candidates = async function (run) {
    if (embedded) return own(`runs/${run}/candidates`);
    const mine = rows.run === run ? rows : { run, seq: 0, by: new Map(), list: [] };
    let news = await fetched(`runs/${run}/changed/${mine.seq}`);
    if (news.last_seq < mine.seq) {
      // The record was begun anew.
      Object.assign(mine, { seq: 0, by: new Map(), list: [] });
      news = await fetched(`runs/${run}/changed/0`);
    }
    for (const one of news.candidates) {
      if (!mine.by.has(one.id)) mine.list.push(one.id);
      mine.by.set(one.id, one);
    }
    mine.seq = Math.max(mine.seq, news.last_seq);
    rows = mine;
    return { candidates: mine.list.map((id) => mine.by.get(id)), best_id: news.best_id };
  };

  function own(path, words) {
    if (path.endsWith("search")) return searched(words);
    const state = path.match(/^runs\/[^/]+\/state$/);
    if (state) return { last_seq: -1, live: false };
    const value = embedded.answers[path];
    if (value === undefined) throw new Error("This exported page does not hold that.");
    return value;
  }

  function strings(value, field, found) {
    if (typeof value === "string") found.push([field, value]);
    else if (Array.isArray(value)) value.forEach((one) => strings(one, field, found));
    else if (value && typeof value === "object") for (const [name, one] of Object.entries(value)) strings(one, name, found);
    return found;
  }

  function hit(words, texts) {
    const where = words.map((word) => texts.find(([, text]) => text.toLowerCase().includes(word)));
    if (where.some((one) => !one)) return null;
    const [field, text] = where[0];
    const place = text.toLowerCase().indexOf(words[0]);
    const excerpt = text.slice(Math.max(0, place - 90), place + words[0].length + 90);
    return { field, excerpt: excerpt.split(/\s+/).join(" ") };
  }

  function searched(query) {
    const words = (query.match(/"[^"]+"|\S+/g) || []).map((word) => word.replaceAll('"', "").toLowerCase()).filter(Boolean);
    if (!words.length) throw new Error("There is nothing to look for; give at least one word.");
    const run = embedded.run;
    const sources = new Map();
    const hits = [];
    for (const [path, value] of Object.entries(embedded.answers)) {
      const candidate = path.match(/\/candidates\/([^/]+)$/);
      if (candidate && value.source) sources.set(candidate[1], value.source);
    }
    for (const [path, value] of Object.entries(embedded.answers)) {
      if (!path.startsWith(`runs/${run}/items/`)) continue;
      for (const item of value.items) {
        const whole = embedded.answers[`runs/${run}/events/${item.seq}`] || {};
        const texts = strings([item, whole], "", []).filter(([name]) => !["time", "kind", "key", "path"].includes(name));
        if (item.kind === "candidate_created") texts.push(["source", sources.get(item.candidate_id) || ""]);
        const found = hit(words, texts);
        if (found) hits.push({ run, seq: item.seq, kind: item.kind, agent: item.agent, generation: item.generation, candidates: item.candidates, ...found });
      }
    }
    return { hits, more: false };
  }
})();
