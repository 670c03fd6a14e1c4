// What the run has learnt: what came of each strategy, and which passage of literature moved which experiment.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.views.ideas = async function (run) {
    const learnt = await ks.data.get(`runs/${run}/learnt`);
    return [ks.heading("Ideas and their sources"), strategies(run, learnt), literature(run, learnt.passages)];
  };

  function strategies(run, learnt) {
    const head = h("h2", {}, "What came of each strategy");
    if (!learnt.strategies.length) return [head, h("p", { class: "muted" }, "No experiment has been carried to its end yet.")];
    const rows = learnt.strategies.map((one) => [
      one.strategy,
      h("a", { href: `${ks.place(run, "lineage")}?strategy=${encodeURIComponent(one.strategy)}` }, String(one.tried)),
      String(one.accepted),
      ks.signed(one.median_uplift),
      one.best_id ? [ks.signed(one.best_uplift), " ", ks.candidateLink(run, one.best_id)] : "not measured",
      one.calibration ? `${one.calibration.within} of ${one.calibration.measured}` : "",
    ]);
    return [
      head,
      h("p", { class: "muted" }, "Uplift is over the kernel that the experiment was tried on."),
      ks.table("what came of each strategy", ["strategy", "tried", "accepted", "median uplift", "best uplift", "predictions that held"], rows, { class: "figures" }),
      learnt.calibration_text ? h("p", { class: "muted" }, `${learnt.calibration_text[0].toUpperCase()}${learnt.calibration_text.slice(1)}.`) : null,
    ];
  }

  function literature(run, passages) {
    const head = h("h2", {}, "Which passage moved which experiment");
    if (!passages.length) return [head, h("p", { class: "muted" }, "No experiment cites a passage.")];
    return [
      head,
      h("p", { class: "muted" }, "The passage whose experiments gained most comes first. Open one to read it."),
      h("ol", { class: "moved" }, passages.map((one) => h("li", {}, ks.passage(run, one, false), h("ul", { class: "experiments-moved" }, one.experiments.map((experiment) => moved(run, experiment)))))),
    ];
  }

  const moved = (run, one) =>
    h("li", {}, ks.candidateLink(run, one.candidate_id), " ", one.measured_uplift === null ? ks.verdictMark(one.verdict) : h("strong", {}, ks.signed(one.measured_uplift)), " ", ks.from(run, one.finding_seq || one.plan_seq));
})();
