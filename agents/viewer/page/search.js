// Full text search, in one run or in all; and the list of runs.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.views.search = async function (run, rest, query) {
    const words = query.get("q") || "";
    const everywhere = query.get("all") === "1" || !run;
    const field = h("input", { type: "search", name: "q", id: "q", value: words, "data-key": "q", autocomplete: "off" });
    const all = h("input", { type: "checkbox", name: "all", checked: everywhere, disabled: !run || ks.data.exported });
    const form = h("form", { class: "search", role: "search" }, h("label", { for: "q" }, "Words, or a phrase in quotes"), h("span", { class: "search-row" }, field, h("button", { type: "submit" }, "Search")), run && !ks.data.exported ? h("label", { class: "check" }, all, " in all runs") : null);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const next = new URLSearchParams({ q: field.value });
      if (all.checked && run) next.set("all", "1");
      location.hash = (run ? ks.place(run, "search") : "#/search") + `?${next}`;
    });
    const parts = [ks.heading(run && !everywhere ? "Search this run" : "Search all runs"), form];
    if (!words.trim()) return parts;
    const answer = await ks.data.get(everywhere ? "search" : `runs/${run}/search`, { words });
    const found = answer.hits.length;
    parts.push(h("p", { class: "muted", id: "found" }, answer.more ? `More than ${ks.whole(found)} places hold these words; the first ${ks.whole(found)} are shown.` : `${ks.count(found, "place")} found.`));
    parts.push(h("ol", { class: "hits" }, answer.hits.map((one) => hit(one, words, everywhere))));
    return parts;
  };

  function hit(one, query, everywhere) {
    const words = (query.match(/"[^"]+"|\S+/g) || []).map((word) => word.replaceAll('"', "").toLowerCase());
    const place = one.kind === "candidate_created" && one.candidates[0] ? ks.candidateAt(one.run, one.candidates[0]) : ks.eventAt(one.run, one.seq);
    const who = one.agent ? `${ks.title(one.agent)}, ` : "";
    return h(
      "li",
      { tabindex: "-1" },
      h("a", { href: place }, `${who}${ks.words(one.kind)} #${one.seq}`),
      h("span", { class: "muted" }, `${everywhere ? ` in ${one.run}` : ""}${one.generation ? `, generation ${one.generation}` : ""}${one.candidates.length ? `, candidate ${one.candidates.join(" ")}` : ""}, in “${ks.words(one.field || "text")}”`),
      h("p", { class: "excerpt" }, marked(one.excerpt, words))
    );
  }

  function marked(text, words) {
    const lower = text.toLowerCase();
    const parts = [];
    let at = 0;
    while (at < text.length) {
      const next = words.map((word) => [lower.indexOf(word, at), word]).filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next || lower.length !== text.length) break;
      parts.push(text.slice(at, next[0]), h("mark", {}, text.slice(next[0], next[0] + next[1].length)));
      at = next[0] + next[1].length;
    }
    return [...parts, text.slice(at)];
  }

  ks.views.runs = async function () {
    const { runs } = await ks.data.get("runs");
    const rows = runs.map((one) =>
      one.status === "damaged"
        ? [h("a", { href: ks.place(one.id) }, one.id), "–", h("span", { class: "status failed" }, "damaged"), h("span", { class: "fault-cell" }, one.damage), "–", "–"]
        : [
            h("a", { href: ks.place(one.id) }, one.id),
            one.problem,
            h("span", { class: `status ${one.status}` }, ks.words(one.status)),
            one.best ? [h("strong", {}, ks.times(one.best.speedup.value)), h("span", { class: "under" }, ks.brief(one.best.speedup))] : "–",
            ks.duration(one.totals.seconds),
            `${one.totals.candidates}`,
          ]
    );
    const title = [ks.heading("Runs"), ks.data.exported ? null : h("p", {}, h("a", { href: "#/search" }, "Search all runs"))];
    return [...title, rows.length ? ks.table("runs, newest first", ["run", "problem", "status", "speed-up of the best", "time", "candidates"], rows, { class: "figures" }) : h("p", {}, "There is no run yet; make one with ", h("code", {}, "kernel-scientist run matmul"), ".")];
  };
})();
