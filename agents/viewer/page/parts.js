// Parts that several views share: passages, checks, the compiler's report, prediction against measurement.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.citation = (passage) =>
    [passage.title || "untitled", passage.section ? `§ ${passage.section}` : "", passage.page !== null && passage.page !== undefined ? `page ${passage.page}` : ""].filter(Boolean);

  // Lines that were broken for a text's width flow again; paragraphs, lists and tables stay.
  const paragraphs = (text) => text.split(/\n\s*\n/).map((part) => h("p", {}, part.replace(/\n(?!\s*(?:[-*|>#]|\d+[.)]))/g, " ")));

  // A cited passage: where it stands, its words, its sources, and where the agents found it.
  ks.passage = function (run, passage, open) {
    const [title, ...place] = ks.citation(passage);
    const body = () =>
      h(
        "div",
        {},
        passage.text ? h("blockquote", { tabindex: "0", "aria-label": `passage ${passage.id}` }, paragraphs(passage.text)) : h("p", { class: "muted" }, "The text is not recorded here."),
        h(
          "ul",
          { class: "sources" },
          String(passage.source || "").split(/\s+/).filter(Boolean).map((url) => h("li", {}, ks.external(url)))
        ),
        h(
          "p",
          { class: "muted" },
          passage.looked_up ? `Source looked up ${passage.looked_up}. ` : "",
          passage.seq ? ["Shown to the agents in ", ks.from(run, passage.seq), "."] : ""
        )
      );
    const summary = h("span", {}, h("span", { class: "cite-title" }, title), place.length ? `, ${place.join(", ")} ` : " ", h("code", { class: "cite-id" }, passage.id));
    const fold = ks.fold(`passage-${passage.id}`, summary, async () => body(), open);
    fold.classList.add("passage");
    return fold;
  };

  ks.citations = function (run, ids, passages, openFirst) {
    if (!ids.length) return h("p", { class: "muted" }, "It cites no passage.");
    return h(
      "div",
      { class: "passages" },
      ids.map((id, place) =>
        passages && passages[id] ? ks.passage(run, passages[id], openFirst && place === 0) : h("p", {}, h("code", {}, id), h("span", { class: "muted" }, " (cited, but never shown to an agent in this run)"))
      )
    );
  };

  ks.checkList = (checks) =>
    h(
      "ul",
      { class: "checks" },
      checks.map((check) =>
        h(
          "li",
          { class: check.passed ? "good" : "bad" },
          h("span", { class: "check-sign", "aria-hidden": "true" }, check.passed ? "✓" : "✗"),
          h("span", { class: "unseen" }, check.passed ? "passed: " : "failed: "),
          h("span", {}, check.name),
          h("span", { class: "muted" }, check.detail ? `: ${check.detail}` : "")
        )
      )
    );

  const RESOURCES = [
    ["VGPRs + AGPRs", (one) => `${one.vgprs} + ${one.agprs}`],
    ["SGPRs", (one) => one.sgprs],
    ["spilled VGPRs, SGPRs", (one) => `${one.vgpr_spills}, ${one.sgpr_spills}`],
    ["LDS bytes", (one) => ks.whole(one.lds_bytes)],
    ["scratch bytes", (one) => ks.whole(one.scratch_bytes)],
    ["occupancy", (one) => `${one.occupancy} waves/SIMD, by ${one.limited_by}`],
  ];

  // The gfx942 compiler's report of kernels side by side: [name, evaluation] each.
  ks.resourceTable = function (named) {
    const reports = named.flatMap(([name, evaluation]) => ((evaluation && evaluation.resources) || []).map((one) => [name, one]));
    const notes = [...new Set(named.map(([, evaluation]) => evaluation && evaluation.resources_note).filter(Boolean))];
    const note = notes.length ? h("p", { class: "muted" }, notes.join("; ")) : null;
    if (!reports.length) return note || h("p", { class: "muted" }, "No report was made.");
    const groups = [...new Set(reports.flatMap(([, one]) => Object.keys(one.instructions)))].filter((group) => reports.some(([, one]) => one.instructions[group]));
    const rows = [
      ...RESOURCES.map(([name, value]) => [name, ...reports.map(([, one]) => String(value(one)))]),
      ...groups.map((group) => [`${ks.words(group)} instructions`, ...reports.map(([, one]) => ks.whole(one.instructions[group]))]),
    ];
    return h("div", {}, ks.table("gfx942 compiler's report", ["", ...reports.map(([name, one]) => `${name}: ${one.kernel}`)], rows), note);
  };

  // The predicted range as a bar and what was measured as a point on one axis of percent.
  ks.prediction = function (row) {
    if (row.predicted_min === null || row.predicted_min === undefined) return null;
    const measured = ks.figure(row.measured_uplift);
    const said = `Predicted ${ks.signed(row.predicted_min)} to ${ks.signed(row.predicted_max)} over its parent; ${measured === null ? "not measured" : `measured ${ks.signed(measured)}`}${row.calibration && row.calibration !== "not measured" ? `, ${row.calibration} the prediction` : ""}.`;
    const values = [row.predicted_min, row.predicted_max, 0, ...(measured === null ? [] : [measured])];
    const bend = (value) => Math.sign(value) * Math.log1p(Math.abs(value) / 10);
    const [low, high] = [bend(Math.min(...values)) - 0.2, bend(Math.max(...values)) + 0.2];
    const x = (value) => 8 + ((bend(value) - low) / (high - low)) * 344;
    const parts = [
      ks.svg("line", { x1: x(0), y1: 4, x2: x(0), y2: 36, class: "grid" }),
      ks.svg("rect", { x: x(row.predicted_min), y: 13, width: Math.max(2, x(row.predicted_max) - x(row.predicted_min)), height: 14, class: "predicted" }),
      measured === null ? null : ks.svg("circle", { cx: x(measured), cy: 20, r: 6, class: "point" }),
    ];
    return h("div", { class: "prediction" }, ks.chartBox(360, 40, said, parts), h("p", {}, said));
  };

  const DONE = { done: ["✓", "good"], changed: ["≈", "open"], "not done": ["✗", "bad"], "not reported": ["?", "open"] };

  // What the Coder says it really implemented: its words, and of each point of the rubric what became of it.
  ks.report = function (report, points) {
    const words = report ? h("p", { class: "said" }, report) : null;
    if (!points || !points.length) return words;
    const list = points.map((one) => {
      const [sign, kind] = DONE[one.status] || ["", "open"];
      return h("li", { class: kind }, h("span", { class: "check-sign", "aria-hidden": "true" }, sign), h("span", { class: "point-text" }, `${one.status}: ${one.item}`, one.why ? h("span", { class: "muted" }, ` (${one.why})`) : ""));
    });
    return h("div", {}, words, h("ul", { class: "checks" }, list));
  };

  ks.facts = (pairs) =>
    h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, ...value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

  ks.faults = (faults) => (faults && faults.length ? h("ul", { class: "notice", "aria-label": "What cannot be read" }, faults.map((one) => h("li", {}, one))) : null);

  ks.heading = (text, ...more) => h("h1", { tabindex: "-1" }, text, more);
})();
