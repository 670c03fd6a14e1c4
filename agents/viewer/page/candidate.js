// One candidate: the idea, prediction against measurement, the code with its changes, and the evidence of each check.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;
  let beside = null;

  ks.views.candidates = async function (run, rest, query) {
    const id = rest[0] || "0000";
    const [{ candidates, best_id }, one] = await Promise.all([ks.data.candidates(run), ks.data.get(`runs/${run}/candidates/${id}`)]);
    const against = query.get("against") || one.parent_id;
    const other = against && against !== id ? await ks.data.get(`runs/${run}/candidates/${against}`).catch(() => null) : null;
    return [
      ks.heading(`Candidate ${id}`, " ", ks.verdictMark(one.verdict), " ", id === best_id ? h("span", { class: "status improved" }, "best") : null),
      neighbours(run, candidates, id),
      summary(run, one),
      idea(run, one),
      report(one),
      code(run, one, other, candidates, query),
      evidence(run, one, other),
    ];
  };

  function neighbours(run, candidates, id) {
    const place = candidates.findIndex((one) => one.id === id);
    const [before, after] = [candidates[place - 1], candidates[place + 1]];
    return h(
      "nav",
      { class: "pager", "aria-label": "Other candidates" },
      before ? h("a", { class: "button", rel: "prev", href: ks.candidateAt(run, before.id) }, `← ${before.id}`) : null,
      after ? h("a", { class: "button", rel: "next", href: ks.candidateAt(run, after.id) }, `${after.id} →`) : null,
      h("a", { class: "button", href: ks.place(run, "conversation") + `?candidate=${encodeURIComponent(id)}` }, "Its part of the conversation")
    );
  }

  function summary(run, one) {
    return ks.facts([
      ["Speed-up over the start", one.parent_id === null ? "it is the start" : one.speedup ? [h("strong", {}, ks.times(one.speedup.value)), " ", ks.from(run, one.judged_seq), h("span", { class: "under" }, ks.brief(one.speedup))] : "not measured"],
      one.time_us === null ? null : ["Time a run", ks.time(one.time_us)],
      one.parent_id ? ["Made from", ks.candidateLink(run, one.parent_id), one.reference_id ? [", with ", ks.candidateLink(run, one.reference_id), " as Reference"] : ""] : null,
      ["Generation", String(one.generation), one.attempt > 1 ? `, attempt ${one.attempt}` : ""],
      ["Checks passed", `${one.checks_passed} of ${one.checks}`],
      one.children.length ? ["Built upon by", one.children.map((id, place) => [place ? ", " : "", ks.candidateLink(run, id)])] : null,
    ]);
  }

  function idea(run, one) {
    if (!one.idea) return null;
    return h(
      "section",
      {},
      h("h2", {}, "The plan"),
      h("p", { class: "idea" }, one.idea, " ", ks.from(run, one.plan_seq)),
      h("ul", { class: "rubric" }, one.rubric.map((line) => h("li", {}, line))),
      h("p", { class: "muted" }, `Strategy: ${one.strategy}; innovation ${one.innovation}; chosen as the ${one.criterion}.`),
      h("h3", {}, "Passages it rests on"),
      ks.citations(run, one.citations, one.passages, false),
      h("h3", {}, "Prediction against measurement"),
      ks.prediction(one) || h("p", { class: "muted" }, "Nothing was predicted."),
      one.finding ? ks.facts([["Tried", one.finding.tried], ["Happened", one.finding.happened, " ", ks.from(run, one.finding_seq)], one.finding.next ? ["Next", one.finding.next] : null]) : null
    );
  }

  function code(run, one, other, candidates, query) {
    const options = [h("option", { value: "" }, "nothing"), candidates.filter((c) => c.id !== one.id).map((c) => h("option", { value: c.id, selected: other && other.id === c.id }, `${c.id}${c.id === one.parent_id ? " (its parent)" : ""}`))];
    const select = h("select", { id: "against", "data-key": "against" }, options);
    select.addEventListener("change", () => {
      location.hash = ks.place(run, "candidates", one.id) + (select.value ? `?against=${encodeURIComponent(select.value)}` : "?against=" + encodeURIComponent(one.id));
    });
    if (beside === null) beside = window.matchMedia("(min-width: 900px)").matches;
    const place = h("div", {});
    const draw = () => ks.clear(place).append(other ? ks.diffTable(other.source, one.source, [other.id, one.id], beside) : numbered(one));
    const flip = h("button", { type: "button", class: "quiet", on: { click: () => { beside = !beside; flip.textContent = label(); draw(); } } }, label());
    draw();
    return h("section", {}, h("h2", { id: "code" }, "Code"), h("p", { class: "muted" }, h("code", {}, one.path)), one.source_fault ? h("p", { class: "notice" }, one.source_fault) : null, h("p", { class: "tools" }, h("label", {}, "Compared with ", select), other ? flip : null), place);
  }

  const label = () => (beside ? "Show as one column" : "Show side by side");

  function numbered(one) {
    const lines = one.source.replace(/\n$/, "").split("\n");
    return h("div", { class: "scroll diff", tabindex: "0", role: "region", "aria-label": `source of ${one.id}` }, h("table", { class: "unified" }, h("tbody", {}, lines.map((line, place) => h("tr", {}, h("td", { class: "line-number" }, String(place + 1)), h("td", {}, line || " "))))));
  }

  function evidence(run, one, other) {
    const judged = one.evaluation;
    if (!judged) return h("p", { class: "notice" }, "It has not been judged.");
    const names = ["the start", `candidate ${one.id}`];
    const confirmed = one.comparisons.map((c) => h("p", {}, "In fresh pairs: ", ks.candidateLink(run, c.b_id), " against ", ks.candidateLink(run, c.a_id), ": ", h("strong", {}, ks.interval(c.speedup)), ` ${c.claim} `, ks.from(run, c.seq)));
    return h(
      "section",
      {},
      h("h2", {}, "Evidence"),
      judged.message ? ks.code(judged.message, "evidence of the judge") : null,
      h("h3", {}, "Checks"),
      ks.checkList(judged.checks),
      h("h3", {}, "Times per shape"),
      judged.timings.length ? [ks.legend(["start", names[0]], ["point", names[1]], ["quartiles", "quartiles"], ["light", "speed of light"]), ks.perShape(judged.timings, names), ks.timingTable(judged.timings, names)] : h("p", { class: "muted" }, "It was not timed."),
      confirmed,
      ks.fold("candidate-method", "How the times were taken", async () => h("div", {}, h("p", {}, judged.method || "No account of it was recorded."), judged.notes.length ? h("ul", {}, judged.notes.map((note) => h("li", {}, note))) : null)),
      h("h3", {}, "What the gfx942 compiler makes of it"),
      ks.resourceTable([...(other && other.evaluation ? [[other.id, other.evaluation]] : []), [one.id, judged]]),
      h("h3", {}, "Compile log"),
      one.compile_log ? ks.code(one.compile_log, "compile log") : h("p", { class: "muted" }, "The compiler said nothing.")
    );
  }

  const report = (one) => (one.report || one.points.length ? h("section", {}, h("h2", {}, "The Coder's report"), ks.report(one.report, one.points)) : null);
})();
