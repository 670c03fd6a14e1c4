// The first screen: which idea made the kernel faster, where it came from, and why the figure can be believed.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.views = ks.views || {};
  ks.views.overview = async function (run) {
    if (!ks.data.exported && !known.has(run)) {
      const brief = await ks.data.get(`runs/${run}/brief`);
      if (!brief.ready) return [brief.about.run ? hero(run, brief.about) : ks.heading(run), ks.faults(brief.about.faults), whole(run)];
    }
    const about = await ks.data.get(`runs/${run}`);
    known.add(run);
    const drawn = about.counts.candidates > MANY ? later(run, about) : await chartsOf(run, about);
    return [hero(run, about), ks.faults(about.faults), story(run, about), steps(run, about), drawn, meaning(about)];
  };

  const known = new Set();

  // Of a long run the result stands there while its record is read; then the view is drawn anew.
  function whole(run) {
    const place = h("p", { class: "muted waiting", role: "status" }, "Reading the record…");
    ks.data.get(`runs/${run}`).then(
      () => { known.add(run); ks.drawAgain(run, "overview"); },
      (error) => { place.className = "notice"; place.textContent = error.message; }
    );
    return place;
  }

  // From so many candidates on, the result is shown before they are all here.
  const MANY = 500;
  const TRIED = 8;
  let before = { run: "", charts: null };

  async function chartsOf(run, about) {
    const { candidates } = await ks.data.candidates(run);
    return charts(run, about, candidates);
  }

  function later(run, about) {
    const waiting = before.run === run ? before.charts : h("p", { class: "muted waiting" }, `Reading ${ks.whole(about.counts.candidates)} candidates…`);
    const place = h("div", { "aria-busy": "true" }, waiting);
    setTimeout(async () => {
      let found;
      try {
        found = await chartsOf(run, about);
        before = { run, charts: found };
      } catch (error) {
        found = h("p", { class: "notice", role: "alert" }, error.message);
      }
      place.replaceChildren(found);
      place.removeAttribute("aria-busy");
    }, 0);
    return place;
  }

  ks.statusWord = (about) => (about.live ? "still running" : about.run ? ks.words(about.run.status) : "damaged");

  function headline(about) {
    const problem = about.told.problem || about.id;
    if (!about.best || !about.best.speedup) return [h("span", { class: "problem" }, problem), about.live ? ": no faster kernel yet" : ": no faster kernel was found"];
    const figure = h("strong", { class: "figure" }, ks.times(about.best.speedup.value));
    const isSure = about.best.tier === "confirm";
    return [h("span", { class: "problem" }, problem), about.live ? ": so far " : isSure ? " is " : ": ", figure, " faster", isSure || about.live ? "" : ", not confirmed"];
  }

  function claim(run, about) {
    if (!about.best || !about.best.speedup) return about.evidence ? h("p", { class: "lead" }, about.live ? "No correct candidate beats the starting kernel so far." : "Nothing correct beat the starting kernel.") : null;
    const proof = about.evidence && about.evidence.confirmed;
    const pairs = proof && proof.pairs;
    const how = !about.evidence
      ? about.best.tier === "confirm" ? "confirmed in fresh pairs" : `measured while searching (${about.best.tier})`
      : proof
      ? ["confirmed in ", pairs ? `${pairs[0] === pairs[1] ? pairs[0] : `${pairs[0]} to ${pairs[1]}`} fresh pairs a shape ` : "fresh pairs ", ks.from(run, proof.seq)]
      : [`measured while searching (${about.best.tier}), not confirmed yet`];
    return h("p", { class: "lead" }, `${ks.bounds(about.best.speedup)}, over the starting kernel, `, how, about.told.device ? `, on ${about.told.device}` : "", ".");
  }

  function hero(run, about) {
    const info = about.run;
    const counts = about.counts;
    const checks = !about.evidence ? [] : about.evidence.confirmed ? about.evidence.confirmed.checks : about.evidence.judged ? about.evidence.judged.checks : [];
    const passed = checks.filter((one) => one.passed).length;
    const tokens = counts.prompt_tokens + counts.completion_tokens;
    const status = about.live ? "running" : info ? info.status : "damaged";
    return h(
      "section",
      { class: "hero", "aria-label": "The result" },
      ks.heading(headline(about)),
      claim(run, about),
      ks.facts([
        ["Why it stopped", h("span", { class: `status ${status}` }, about.live ? "still running" : about.told.stop_reason || "not recorded"), " ", ks.from(run, about.finished_seq)],
        ["Best kernel", about.best ? ["candidate ", ks.candidateLink(run, about.best.candidate_id)] : "none"],
        ["Checks passed", checks.length ? `${passed} of ${checks.length}` : about.evidence ? (about.live ? "none yet" : "no best to check") : "…"],
        ["Cost", `${ks.money(counts.cost_usd)}, ${counts.estimated ? "about " : ""}${ks.count(tokens, "token")}${about.told.models.map((one) => `, ${one}`).join("")}`],
        ["Time", ks.duration(info && !about.live && info.totals.seconds ? info.totals.seconds : about.seconds)],
        ["Tried", `${ks.count(counts.candidates, "candidate")}, ${counts.verdicts.accepted || 0} accepted`],
      ])
    );
  }

  function story(run, about) {
    if (!about.story) return null;
    const step = about.story.steps[about.story.decisive];
    return h(
      "div",
      { class: "cards" },
      card(1, "Which idea made it faster", [
        h("p", { class: "idea" }, step.idea || "The idea is not recorded."),
        h(
          "p",
          {},
          step.gain ? [h("strong", {}, ks.times(step.gain)), ` over ${step.parent_id === "0000" ? "the starting kernel" : `candidate ${step.parent_id}`} in this one step, as `] : "It became ",
          "candidate ", ks.candidateLink(run, step.id), `, generation ${step.generation}`, step.criterion ? `, chosen as the ${step.criterion}` : "", "."
        ),
        about.story.rubric.length ? h("ul", { class: "rubric" }, about.story.rubric.map((one) => h("li", {}, one))) : null,
        about.story.report || about.story.points.length ? ks.fold("overview-report", "What the Coder says it implemented", async () => ks.report(about.story.report, about.story.points)) : null,
        h("p", { class: "links" }, h("a", { href: ks.candidateAt(run, step.id, step.parent_id) }, "See the change in the code"), " · ", h("a", { href: ks.place(run, "conversation") + `?candidate=${step.id}` }, "Read how it was made")),
      ]),
      card(2, "Where the idea came from", [
        h("p", {}, "The Researcher proposed it ", step.plan_seq ? ["in ", ks.from(run, step.plan_seq)] : "", step.citations.length ? `, citing ${ks.count(step.citations.length, "passage")}:` : "."),
        ks.citations(run, step.citations, about.story.passages, true),
      ]),
      card(3, "Why the figure can be believed", belief(run, about))
    );
  }

  const card = (number, title, parts) => h("section", { class: "card", "aria-labelledby": `card-${number}` }, h("h2", { id: `card-${number}` }, h("span", { class: "card-number", "aria-hidden": "true" }, number), title), parts);

  function belief(run, about) {
    const { confirmed, judged } = about.evidence;
    const checks = confirmed ? confirmed.checks : judged ? judged.checks : [];
    const held = checks.filter((one) => one.name.startsWith("held-out") && one.passed).length;
    const shares = about.evidence.timings.map((one) => one.light_share).filter((one) => one !== null && one !== undefined);
    const seen = judged || {};
    const points = [
      checks.length ? ["Its outputs were right: ", h("strong", {}, `${checks.filter((one) => one.passed).length} of ${checks.length} checks`), held ? `, ${held} of them on shapes that nobody knew beforehand.` : "."] : null,
      confirmed ? ["Measured again before the claim, in fresh processes, in pairs with the starting kernel: ", h("strong", {}, ks.interval(confirmed.speedup)), " ", ks.from(run, confirmed.seq), "."] : ["So far measured only while searching; a claim needs fresh pairs."],
      shares.length ? [`At most ${ks.percent(Math.max(...shares))} of the speed of light, so no shape is faster than physics allows.`] : null,
      seen.sandbox && seen.sandbox.startsWith("none") ? ["The kernel ran without a cage on this machine: only its outputs and times speak for it."] : null,
      seen.sandbox && !seen.sandbox.startsWith("none") ? [`The judge ran apart from the kernel, which was caged (${seen.sandbox}) and could reach neither the clock nor the check.`] : null,
      about.story.tried_otherwise > 0 ? [`${ks.count(about.story.tried_otherwise, "other candidate")} of the run did less well, and `, h("a", { href: ks.place(run, "lineage") }, "are shown too"), "."] : null,
    ];
    const notes = (confirmed && confirmed.notes) || seen.notes || [];
    return [
      h("ul", { class: "points" }, points.filter(Boolean).map((one) => h("li", {}, one))),
      checks.length ? ks.fold("overview-checks", checks.length === 1 ? "The check" : `The ${checks.length} checks`, async () => ks.checkList(checks)) : null,
      ks.fold("overview-method", "How the times were taken", async () => h("div", {}, h("p", {}, (confirmed && confirmed.method) || seen.method || "No account of it was recorded."), notes.length ? h("ul", {}, notes.map((one) => h("li", {}, one))) : null)),
    ];
  }

  function steps(run, about) {
    if (!about.story) return null;
    const start = h("li", {}, h("a", { href: ks.candidateAt(run, "0000") }, "0000"), h("span", { class: "step-figure" }, "1×"), h("span", { class: "muted" }, "the starting kernel"));
    const list = about.story.steps.map((step, place) =>
      h("li", { class: place === about.story.decisive ? "decisive" : "" }, h("a", { href: ks.candidateAt(run, step.id) }, step.id), h("span", { class: "step-figure" }, step.speedup ? ks.times(step.speedup.value) : "–"), h("span", { class: "muted" }, step.gain ? `${ks.times(step.gain)} in this step` : "", place === about.story.decisive ? ", the largest" : ""))
    );
    return h("section", {}, h("h2", {}, "The way from the start to the best"), h("ol", { class: "steps" }, start, list), h("p", { class: "muted" }, "Figures of the steps are from the search, with few pairs each; only the best is measured again."));
  }

  function charts(run, about, candidates) {
    const light = ks.lightSpeedup(about.evidence.timings);
    const rows = candidates.filter((one) => one.speedup && one.accepted).map((one) => [ks.candidateLink(run, one.id), ks.interval(one.speedup), ks.words(one.tier || ""), String(one.generation)]);
    const names = ["the start", about.best ? `candidate ${about.best.candidate_id}` : "the kernel"];
    return h(
      "section",
      {},
      about.story ? null : tried(run, candidates),
      h("h2", { id: "charts" }, "Best so far"),
      ks.legend(["point", "candidate with its interval"], ["failed", "not accepted"], ["best", "best so far"], ...(light ? [["light", "speed of light"]] : [])),
      ks.bestSoFar([{ run, candidates }], light),
      ks.fold("best-table", "The same as a table", async () => ks.table("speed-up of each measured candidate", ["candidate", "speed-up", "tier", "generation"], rows)),
      about.evidence.timings.length
        ? [
            h("h2", {}, "Times per shape"),
            ks.legend(["start", names[0]], ["point", names[1]], ["quartiles", "quartiles"], ["light", "speed of light"]),
            ks.perShape(about.evidence.timings, names),
            ks.fold("shape-table", "The same as a table", async () => ks.timingTable(about.evidence.timings, names)),
          ]
        : null,
      about.evidence.judged && about.evidence.start
        ? [h("h2", {}, "What the MI300 compiler makes of it"), h("p", { class: "muted" }, "Compiled for gfx942 and not run there."), ks.resourceTable([["start", about.evidence.start], ["best", about.evidence.judged]])]
        : null
    );
  }

  // Without a better kernel: what was tried instead, the fastest first.
  function tried(run, candidates) {
    const figure = (one) => (one.accepted && one.speedup ? one.speedup.value : 0);
    const made = candidates.filter((one) => one.parent_id !== null).sort((a, b) => figure(b) - figure(a));
    if (!made.length) return null;
    const rows = made.slice(0, TRIED).map((one) => [ks.candidateLink(run, one.id), ks.verdictMark(one.verdict), figure(one) ? [h("strong", {}, ks.times(one.speedup.value)), h("span", { class: "under" }, ks.brief(one.speedup))] : "", h("span", { class: "idea-cell" }, one.idea || "not recorded")]);
    return [
      h("h2", {}, "What was tried"),
      ks.table("what was tried", ["candidate", "verdict", "of the start's speed", "idea"], rows, { class: "candidates" }),
      h("p", {}, made.length > TRIED ? `These are the first ${TRIED} of ${ks.whole(made.length)}. ` : "", h("a", { href: ks.place(run, "lineage") }, "All candidates"), " · ", h("a", { href: ks.place(run, "ideas") }, "What came of each strategy")),
    ];
  }

  function meaning(about) {
    if (about.told.target !== "cpu") return null;
    return h("aside", { class: "meaning", "aria-label": "What the figures mean" }, h("p", {}, h("strong", {}, "What the figures mean: "), "HIP source ran on one core of this CPU, its outputs were checked against the NumPy reference, and the times are of those runs. ", h("strong", {}, "What they do not mean: "), "they predict nothing for an MI300, whose memory, LDS and matrix units this CPU does not have."));
  }
})();
