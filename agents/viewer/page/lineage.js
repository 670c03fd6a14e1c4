// The tree of candidates with their verdicts, a column a generation; the same as a table beneath.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h, svg } = ks;
  const [COLUMN, ROW, WIDE, HIGH] = [190, 62, 150, 46];
  const DRAWN = 400;
  const ROWS = 200;

  ks.views.lineage = async function (run, rest, query) {
    const { candidates, best_id } = await ks.data.candidates(run);
    const way = ancestry(candidates, best_id);
    const shown = candidates.length > DRAWN ? candidates.filter((one) => one.accepted || way.has(one.id)).slice(-DRAWN) : candidates;
    return [
      ks.heading("Lineage"),
      h("p", { class: "muted" }, "Each candidate stands right of the one it was made from. The way to the best is drawn strong. Predicted and measured are over its parent."),
      shown.length < candidates.length ? h("p", { class: "notice" }, `The tree shows ${ks.whole(shown.length)} of ${ks.whole(candidates.length)} candidates, accepted ones first; the table has all.`) : null,
      tree(run, shown, way, best_id),
      h("h2", {}, "All candidates"),
      table(run, candidates, best_id, query),
    ];
  };

  function ancestry(candidates, id) {
    const by = new Map(candidates.map((one) => [one.id, one]));
    const way = new Set();
    for (let one = by.get(id); one && !way.has(one.id); one = by.get(one.parent_id)) way.add(one.id);
    return way;
  }

  function layout(candidates) {
    const children = new Map();
    const known = new Set(candidates.map((one) => one.id));
    const roots = [];
    for (const one of candidates) {
      if (one.parent_id !== null && known.has(one.parent_id)) children.set(one.parent_id, [...(children.get(one.parent_id) || []), one]);
      else roots.push(one);
    }
    const at = new Map();
    let row = 0;
    let deepest = 0;
    const stack = roots.reverse().map((one) => [one, 0]);
    while (stack.length) {
      const [one, depth] = stack.pop();
      const below = children.get(one.id) || [];
      at.set(one.id, { x: depth, y: row });
      deepest = Math.max(deepest, depth);
      if (!below.length) row++;
      for (const child of [...below].reverse()) stack.push([child, depth + 1]);
    }
    return { at, rows: Math.max(row, 1), columns: deepest + 1 };
  }

  function tree(run, candidates, way, best) {
    const { at, rows, columns } = layout(candidates);
    const [width, height] = [columns * COLUMN + 10, rows * ROW + 10];
    const edges = candidates.map((one) => {
      const [from, to] = [at.get(one.parent_id), at.get(one.id)];
      if (!from || !to) return null;
      const [x1, y1] = [from.x * COLUMN + WIDE + 5, from.y * ROW + HIGH / 2 + 5];
      const [x2, y2] = [to.x * COLUMN + 5, to.y * ROW + HIGH / 2 + 5];
      return svg("path", { d: `M ${x1} ${y1} C ${x1 + 24} ${y1} ${x2 - 24} ${y2} ${x2} ${y2}`, class: way.has(one.id) ? "edge strong" : "edge" });
    });
    const nodes = candidates.map((one) => node(run, one, at.get(one.id), way.has(one.id), one.id === best));
    const box = ks.chartBox(width, height, `Tree of ${ks.count(candidates.length, "candidate")}`, edges, nodes);
    box.setAttribute("width", width);
    box.setAttribute("height", height);
    box.classList.add("tree");
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "tree of candidates" }, box);
  }

  function node(run, one, { x, y }, onWay, isBest) {
    const kind = one.accepted ? "accepted" : one.verdict === "not judged" ? "open" : "failed";
    const figure = one.parent_id === null ? "the start" : one.accepted ? ks.times(one.speedup ? one.speedup.value : null) : ks.words(one.verdict);
    const words = `candidate ${one.id}, generation ${one.generation}: ${one.parent_id === null ? "the starting kernel" : one.accepted ? ks.interval(one.speedup) : ks.words(one.verdict)}${isBest ? ", the best" : ""}`;
    const sign = isBest ? "★" : kind === "accepted" ? "✓" : kind === "failed" ? "✗" : "…";
    return svg(
      "a",
      { href: ks.candidateAt(run, one.id), class: `node ${kind}${onWay ? " strong" : ""}`, "aria-label": words },
      svg("title", {}, one.idea ? `${words}. ${one.idea}` : words),
      svg("rect", { x: x * COLUMN + 5, y: y * ROW + 5, width: WIDE, height: HIGH, rx: 6 }),
      svg("text", { x: x * COLUMN + 15, y: y * ROW + 25, class: "node-id" }, `${sign} ${one.id}`),
      svg("text", { x: x * COLUMN + 15, y: y * ROW + 42, class: "node-figure" }, figure)
    );
  }

  const COLUMNS = [
    ["candidate", (one) => one.id],
    ["from", (one) => one.parent_id || ""],
    ["generation", (one) => one.generation],
    ["verdict", (one) => one.verdict],
    ["speed-up", (one) => (one.speedup ? -one.speedup.value : 0)],
    ["predicted", (one) => one.predicted_max ?? -Infinity],
    ["measured", (one) => -(ks.figure(one.measured_uplift) ?? -Infinity)],
    ["idea", (one) => one.idea || ""],
  ];

  function table(run, candidates, best, query) {
    const by = Math.min(Math.max(Number(query.get("sort")) || 0, 0), COLUMNS.length - 1);
    const verdict = query.get("verdict") || "";
    const strategy = query.get("strategy") || "";
    const key = COLUMNS[by][1];
    const rows = candidates.filter((one) => (!verdict || one.verdict === verdict) && (!strategy || one.strategy_group === strategy)).sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    const to = (changes) => {
      const next = new URLSearchParams(query);
      for (const [name, value] of Object.entries(changes)) value === "" ? next.delete(name) : next.set(name, value);
      return ks.place(run, "lineage") + (next.size ? `?${next}` : "");
    };
    const verdicts = [...new Set(candidates.map((one) => one.verdict))].sort();
    const head = COLUMNS.map(([name], place) => h("a", { href: to({ sort: String(place), from: "" }), "aria-label": `sort by ${name}` }, name, place === by ? " ▾" : ""));
    const first = Math.min(Math.max(Number(query.get("from")) || 0, 0), Math.max(rows.length - 1, 0));
    const last = Math.min(first + ROWS, rows.length);
    const cells = rows.slice(first, last).map((one) => [
      h("span", {}, ks.candidateLink(run, one.id), one.id === best ? " ★" : ""),
      one.parent_id ? ks.candidateLink(run, one.parent_id) : "",
      String(one.generation),
      ks.verdictMark(one.verdict),
      one.speedup && one.parent_id !== null ? h("span", {}, h("strong", {}, ks.times(one.speedup.value)), h("span", { class: "under" }, ks.brief(one.speedup))) : "",
      one.predicted_min === null ? "" : `${ks.signed(one.predicted_min)} to ${ks.signed(one.predicted_max)}`,
      one.measured_uplift === null ? "" : ks.signed(one.measured_uplift),
      h("span", { class: "idea-cell" }, one.idea || (one.parent_id === null ? "the starting kernel" : "")),
    ]);
    return [
      verdicts.length > 1 ? h("p", { class: "chips" }, "Verdict: ", [["", "all"], ...verdicts.map((one) => [one, ks.words(one)])].map(([value, name]) => h("a", { class: "chip", href: to({ verdict: value, from: "" }), "aria-current": value === verdict ? "true" : null }, name))) : null,
      strategy ? h("p", { class: "chips" }, "Strategy: ", h("a", { class: "chip", href: to({ strategy: "", from: "" }), "aria-current": "true", "aria-label": `strategy ${strategy}; show all` }, `${strategy} ✕`)) : null,
      rows.length > ROWS ? pager(to, first, last, rows.length) : null,
      ks.table("all candidates", head, cells, { class: "candidates" }),
    ];
  }

  function pager(to, first, last, total) {
    const link = (name, from) => h("a", { class: "button", href: to({ from: String(Math.max(0, from)) }) }, name);
    return h(
      "nav",
      { class: "pager", "aria-label": "Pages of candidates" },
      h("span", { class: "muted" }, `${ks.whole(first + 1)} to ${ks.whole(last)} of ${ks.whole(total)} `),
      first > 0 ? link("Earlier", first - ROWS) : null,
      last < total ? link("Later", last) : null
    );
  }
})();
