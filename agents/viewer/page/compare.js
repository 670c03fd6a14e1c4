// Two runs side by side, from their own records: nothing is measured anew.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.views.compare = async function (run, rest) {
    const { runs } = await ks.data.get("runs");
    const others = runs.filter((one) => one.id !== run && one.status !== "damaged");
    const other = rest[0] || "";
    const select = h("select", { id: "other", "data-key": "other" }, h("option", { value: "" }, "choose a run"), others.map((one) => h("option", { value: one.id, selected: one.id === other }, `${one.id} (${one.problem})`)));
    select.addEventListener("change", () => {
      location.hash = select.value ? ks.place(run, "compare", select.value) : ks.place(run, "compare");
    });
    const head = [ks.heading("Two runs side by side"), h("p", { class: "tools" }, h("label", {}, `${run} and `, select))];
    if (!others.length) return [ks.heading("Two runs side by side"), h("p", {}, "There is no other run to compare with.")];
    if (!other) return [...head, h("p", { class: "muted" }, "Choose the run to lay beside this one.")];
    const sides = await Promise.all([run, other].map(load));
    return [...head, same(sides), facts(sides), chart(sides), shapes(sides), await kernels(sides)];
  };

  async function load(id) {
    const [about, { candidates }] = await Promise.all([ks.data.get(`runs/${id}`), ks.data.candidates(id)]);
    return { id, about, candidates };
  }

  function same([a, b]) {
    const differ = [["problem", "problem_key"], ["starting kernel", "kernel_key"], ["device", "device"]].filter(([, key]) => (a.about.run || {})[key] !== (b.about.run || {})[key]).map(([name]) => name);
    if (!differ.length) return h("p", {}, "Both started from the same kernel of the same problem on the same device. Nothing was measured anew.");
    return h("p", { class: "notice" }, `The runs differ in ${differ.join(" and ")}, so their speed-ups cannot be compared.`);
  }

  function facts(sides) {
    const info = (side) => side.about.run || {};
    const counts = (side) => side.about.counts;
    const rows = [
      ["speed-up of the best", (s) => (s.about.best ? ks.interval(s.about.best.speedup) : "none")],
      ["best kernel", (s) => (s.about.best ? ks.candidateLink(s.id, s.about.best.candidate_id) : "none")],
      ["decisive idea", (s) => (s.about.story ? s.about.story.steps[s.about.story.decisive].idea || "not recorded" : "–")],
      ["why it stopped", (s) => (s.about.live ? "still running" : info(s).stop_reason || "damaged")],
      ["problem", (s) => info(s).problem || "–"],
      ["device", (s) => info(s).device || "–"],
      ["models", (s) => [...new Set(Object.values(info(s).models || {}))].join(", ")],
      ["candidates", (s) => `${ks.whole(counts(s).candidates)}, ${counts(s).verdicts.accepted || 0} accepted`],
      ["tokens", (s) => ks.whole(counts(s).prompt_tokens + counts(s).completion_tokens)],
      ["cost", (s) => ks.money(counts(s).cost_usd)],
      ["time", (s) => ks.duration(s.about.seconds)],
      ["started", (s) => (info(s).started ? ks.day(info(s).started) : "–")],
    ];
    const names = sides.map((s, place) => h("a", { href: ks.place(s.id) }, `${place ? "B" : "A"}: ${s.id}`));
    return ks.table("the two runs", ["", ...names], rows.map(([name, value]) => [name, ...sides.map(value)]), { class: "two" });
  }

  const chart = (sides) => [h("h2", {}, "Best so far"), ks.legend(["point", `A: ${sides[0].id}`], ["point-b", `B: ${sides[1].id}`]), ks.bestSoFar(sides.map((s) => ({ run: s.id, candidates: s.candidates })), null)];

  function shapes(sides) {
    const by = sides.map((s) => new Map(s.about.evidence.timings.map((t) => [ks.shape(t.shape), t])));
    const all = [...new Set(by.flatMap((one) => [...one.keys()]))];
    if (!all.length) return null;
    const cell = (t) => (t ? `${ks.time(t.time_us)}, ${ks.interval(t.speedup)}` : "–");
    return [h("h2", {}, "The best kernels per shape"), ks.table("the best kernels per shape", ["shape", "A", "B"], all.map((shape) => [shape, ...by.map((one) => cell(one.get(shape)))]))];
  }

  async function kernels(sides) {
    const best = await Promise.all(sides.map((s) => (s.about.best ? ks.data.get(`runs/${s.id}/candidates/${s.about.best.candidate_id}`).catch(() => null) : null)));
    if (best.includes(null)) return null;
    const wide = window.matchMedia("(min-width: 900px)").matches;
    return h("section", {}, h("h2", {}, "The best kernels' code"), ks.diffTable(best[0].source, best[1].source, [`A ${best[0].id}`, `B ${best[1].id}`], wide));
  }
})();
