// The conversation: who said, looked up, called and measured what, filtered by the address, a page at a time.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;
  const SHOWN = 60;
  const FILTERS = ["agent", "kind", "generation", "lane", "candidate", "verdict"];
  // Only fill the record: shown when asked for by kind.
  const QUIET = new Set(["speaker_selected", "evaluation_started"]);

  ks.loadHeads = async function (run, known) {
    const heads = known || { seq: [], kind: [], agent: [], generation: [], lane: [], candidates: [] };
    const more = await ks.data.get(`runs/${run}/heads/${ks.data.exported ? 0 : heads.seq.length}`);
    if (ks.data.exported) return more;
    for (const name of Object.keys(heads)) for (const one of more[name]) heads[name].push(one);
    return heads;
  };

  let kept = { run: "", heads: null };

  ks.views.conversation = async function (run, rest, query) {
    if (kept.run !== run) kept = { run, heads: null };
    kept.heads = await ks.loadHeads(run, kept.heads);
    const heads = kept.heads;
    const { candidates } = await ks.data.candidates(run);
    const verdicts = new Map(candidates.map((one) => [one.id, one.verdict]));
    const chosen = select(heads, query, verdicts);
    const aim = Number(query.get("event")) || 0;
    const [first, last] = span(chosen.map((place) => heads.seq[place]), aim, query.get("from"));
    const shown = chosen.slice(first, last);
    const items = await load(run, shown, heads);
    const drawn = items.map((item) => ks.itemCard(run, item, item.seq === aim));
    return [
      ks.heading("Conversation"),
      filters(run, heads, query, verdicts),
      h("p", { class: "muted", id: "shown" }, counted(chosen.length, heads.seq.length, first, last)),
      pager(run, query, first, last, chosen.length, "above"),
      h("ol", { class: "conversation" }, grouped(drawn, items, heads)),
      pager(run, query, first, last, chosen.length, "below"),
    ];
  };

  function counted(chosen, all, first, last) {
    if (!chosen) return `None of the ${ks.count(all, "event")} meets the filters.`;
    return `${first + 1} to ${last} of ${ks.count(chosen, "event")}${chosen < all ? ` (of ${ks.whole(all)} in the record)` : ""}`;
  }

  function select(heads, query, verdicts) {
    const want = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) || ""]));
    const aim = Number(query.get("event")) || 0;
    const places = [];
    for (let at = 0; at < heads.seq.length; at++) {
      if (want.agent && heads.agent[at] !== want.agent) continue;
      if (want.kind ? heads.kind[at] !== want.kind : QUIET.has(heads.kind[at]) && heads.seq[at] !== aim) continue;
      if (want.generation && String(heads.generation[at]) !== want.generation) continue;
      if (want.lane && String(heads.lane[at]) !== want.lane) continue;
      const about = heads.candidates[at].split(" ");
      if (want.candidate && !about.includes(want.candidate)) continue;
      if (want.verdict && !about.some((id) => id && (verdicts.get(id) || "not judged") === want.verdict)) continue;
      places.push(at);
    }
    return places;
  }

  function span(seqs, aim, from) {
    let first = Number(from) || 0;
    const place = aim ? seqs.indexOf(aim) : -1;
    if (place >= 0 && from === null) first = Math.floor(place / SHOWN) * SHOWN;
    first = Math.min(Math.max(first, 0), Math.max(seqs.length - 1, 0));
    return [first, Math.min(first + SHOWN, seqs.length)];
  }

  async function load(run, places, heads) {
    const total = heads.seq.length;
    const pages = [...new Set(places.map((place) => Math.floor(place / 100)))];
    const answers = await Promise.all(
      // A page that is full never changes.
      pages.map((page) => ks.data.get(`runs/${run}/items/${page}`, { settled: (page + 1) * 100 <= total }))
    );
    // By their numbers: an event that cannot be read is missing from its page.
    const by = new Map(answers.flatMap((answer) => answer.items.map((item) => [item.seq, item])));
    return places.map((place) => by.get(heads.seq[place])).filter(Boolean);
  }

  function filters(run, heads, query, verdicts) {
    const values = {
      agent: [...new Set(heads.agent)].filter(Boolean),
      kind: [...new Set(heads.kind)].sort(),
      generation: [...new Set(heads.generation)].sort((a, b) => a - b).map(String),
      lane: [...new Set(heads.lane)].filter(Boolean).sort((a, b) => a - b).map(String),
      candidate: [...verdicts.keys()],
      verdict: [...new Set(verdicts.values())].sort(),
    };
    const form = h(
      "form",
      { class: "filters", "aria-label": "Filters" },
      // There is a choice of lanes only where several conversations went on at a time.
      FILTERS.filter((name) => name !== "lane" || values.lane.length > 1 || query.get("lane")).map((name) =>
        h(
          "label",
          {},
          ks.title(name),
          h("select", { name, "data-key": `filter-${name}` }, h("option", { value: "" }, "all"), values[name].map((value) => h("option", { value, selected: query.get(name) === value }, name === "kind" ? ks.words(value) : value)))
        )
      ),
      h("a", { class: "button", href: ks.place(run, "conversation") }, "Clear")
    );
    form.addEventListener("change", () => {
      const next = new URLSearchParams();
      for (const name of FILTERS) if (form.elements[name]?.value) next.set(name, form.elements[name].value);
      location.hash = ks.place(run, "conversation") + (next.size ? `?${next}` : "");
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    return form;
  }

  function pager(run, query, first, last, total, where) {
    if (total <= SHOWN) return null;
    const to = (from) => {
      const next = new URLSearchParams(query);
      next.delete("event");
      next.set("from", String(Math.max(0, from)));
      return `${ks.place(run, "conversation")}?${next}`;
    };
    return h(
      "nav",
      { class: "pager", "aria-label": `Pages of events, ${where}` },
      first > 0 ? h("a", { class: "button", href: to(0) }, "First") : null,
      first > 0 ? h("a", { class: "button", href: to(first - SHOWN) }, "Earlier") : null,
      last < total ? h("a", { class: "button", href: to(last) }, "Later") : null,
      last < total ? h("a", { class: "button", href: to(Math.floor((total - 1) / SHOWN) * SHOWN) }, "Last") : null
    );
  }

  function grouped(drawn, items) {
    const rows = [];
    let generation = null;
    items.forEach((item, place) => {
      if (item.generation !== generation) {
        generation = item.generation;
        rows.push(h("li", { class: "generation" }, h("h2", {}, generation ? `Generation ${generation}` : "Outside the generations")));
      }
      rows.push(drawn[place]);
    });
    return rows;
  }
})();
