// One event of the conversation as a card.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  const NAMES = {
    message: "says", model_call: "model call", tool_call: "tool call", passages_retrieved: "looks up",
    candidate_created: "new candidate", evaluation_finished: "judge", comparison_finished: "judge",
    best_changed: "new best", generation_started: "generation", run_started: "start", run_resumed: "goes on", run_finished: "end",
    stop_requested: "is asked to stop", context_cut: "prompt cut", limit_reached: "limit", error: "error", speaker_selected: "is next", evaluation_started: "judge",
  };

  ks.itemCard = function (run, item, aimed) {
    const draw = DRAWN[item.kind] || ((_, one) => raw(one));
    const who = item.agent ? ks.title(item.agent) : "Session";
    const title = h("h3", {}, h("span", { class: `who ${item.agent || "session"}` }, who), " ", h("span", { class: "what" }, NAMES[item.kind] || ks.words(item.kind)));
    const meta = h(
      "p",
      { class: "meta" },
      item.lane ? `lane ${item.lane} · ` : "",
      item.candidates.map((id) => [h("a", { class: "candidate-id", href: ks.candidateAt(run, id) }, id), " · "]),
      `${ks.clock(item.time)} · `,
      ks.from(run, item.seq)
    );
    return h(
      "li",
      { class: `item ${item.kind}${aimed ? " aimed" : ""}`, id: `event-${item.seq}`, tabindex: "-1", "data-key": `event-${item.seq}` },
      h("div", { class: "item-head" }, title, meta),
      h("div", { class: "item-body" }, draw(run, item))
    );
  };

  const say = (text) => (text ? h("p", { class: "said" }, text) : null);
  const raw = (item) => ks.fold(`raw-${item.seq}`, "The event", async () => ks.code(JSON.stringify(item, null, 1), `event ${item.seq}`));

  const whole = (run, seq) => ks.data.get(`runs/${run}/events/${seq}`, { settled: true }).then((one) => one.event);

  // A text of which only the beginning came along.
  function long(run, item, name, text, label) {
    if (!item.more[name]) return text ? ks.code(text, label) : null;
    const rest = item.more[name] - text.length;
    return h("div", {}, ks.code(text + " …", label), ks.fold(`whole-${item.seq}-${name}`, `${ks.whole(rest)} more characters`, async () => ks.code(pick(await whole(run, item.seq), name), label)));
  }

  function pick(event, name) {
    if (name === "answer") return event.response ? event.response.content : "";
    if (name === "thought") return event.response ? event.response.thought : "";
    if (name === "message") return event.evaluation.message;
    return event[name] || "";
  }

  const CONTENT = {
    generation_task: (run, c) => say(`Generation ${c.generation} of ${c.generations}: find a faster kernel.`),
    selection: (run, c) => [h("p", {}, "Base ", ks.candidateLink(run, c.base_id), ", Reference ", c.reference_id ? ks.candidateLink(run, c.reference_id) : "none"), say(c.reasons)],
    hypotheses: (run, c, item) => hypotheses(run, c, item),
    candidate_proposal: (run, c) => [h("p", {}, "Candidate ", ks.candidateLink(run, c.candidate_id), `, attempt ${c.attempt}`), ks.report(c.report, c.rubric)],
    evaluation_failure: (run, c) => [h("p", {}, "Candidate ", ks.candidateLink(run, c.candidate_id), " ", ks.verdictMark(c.verdict), `, ${ks.count(c.tries_left, "try").replace("trys", "tries")} left`), ks.code(c.evidence, "evidence of the judge")],
    finding: (run, c) => finding(run, c),
    step_failed: (run, c) => say(`${ks.title(c.agent)} gave no usable answer: ${c.reason}`),
    stopped: (run, c) => say(`Stopped: ${c.reason}`),
  };

  function hypotheses(run, c, item) {
    if (c.nothing_to_try) return say(c.nothing_to_try);
    const refused = new Map((item.refused || []).map((one) => [one.experiment, one.text]));
    const chosen = new Map(c.chosen.map((choice) => [choice.experiment, choice.criterion]));
    return [
      h("p", {}, `${ks.count(c.experiments.length, "experiment")}, of which ${c.chosen.length} run:`),
      say(item.counts),
      h(
        "ol",
        { class: "experiments" },
        c.experiments.map((one, place) =>
          h(
            "li",
            { class: chosen.has(place) ? "chosen" : "" },
            h("p", { class: "idea" }, one.description),
            h("p", { class: "muted" }, chosen.has(place) ? h("strong", {}, `runs as the ${chosen.get(place)}`) : `not run${refused.has(place) ? `: ${refused.get(place)}` : ""}`, `; predicted ${ks.signed(one.uplift_min)} to ${ks.signed(one.uplift_max)}; innovation ${one.innovation}; ${one.strategy}`),
            ks.fold(`plan-${item.seq}-${place}`, `Changes (${one.rubric.length}) and passages (${one.citations.length})`, async () => h("div", {}, h("ul", {}, one.rubric.map((line) => h("li", {}, line))), ks.citations(run, one.citations, item.passages, false)))
          )
        )
      ),
      ks.fold(`avenues-${item.seq}`, ks.count(c.avenues.length, "avenue"), async () => h("ul", {}, c.avenues.map((one) => h("li", {}, h("strong", {}, one.title), one.rationale ? `: ${one.rationale}` : "")))),
    ];
  }

  function finding(run, c) {
    const row = { predicted_min: c.predicted_min, predicted_max: c.predicted_max, measured_uplift: c.measured_uplift, calibration: c.calibration };
    return [
      h("p", {}, "Candidate ", ks.candidateLink(run, c.candidate_id), " ", ks.verdictMark(c.verdict)),
      ks.facts([["Tried", c.tried], ["Happened", c.happened], c.next ? ["Next", c.next] : null]),
      ks.prediction(row),
      c.author === "agent" ? h("p", { class: "muted" }, "The model gave no usable finding; the figures speak alone.") : null,
    ];
  }

  const DRAWN = {
    message: (run, item) => (CONTENT[item.content.type] || (() => say(item.text)))(run, item.content, item),
    model_call: (run, item) => [
      h("p", { class: "muted" }, `${item.model} (${item.purpose}): ${item.usage.estimated ? "about " : ""}${ks.whole(item.usage.prompt_tokens)} + ${ks.whole(item.usage.completion_tokens)} tokens, ${ks.money(item.cost_usd)}, ${item.seconds.toFixed(2)} s`),
      item.error ? h("p", { class: "bad" }, `try ${item.attempt} failed: ${item.error}`) : null,
      item.asked.length ? h("ul", { class: "asked" }, item.asked.map((one) => h("li", {}, "asks for ", h("code", {}, `${one.tool}(${one.arguments})`)))) : null,
      item.thought ? ks.fold(`thought-${item.seq}`, "The model's own reasoning", async () => long(run, item, "thought", item.thought, "reasoning of the model")) : null,
      item.answer ? ks.fold(`answer-${item.seq}`, "The answer as it came", async () => long(run, item, "answer", item.answer, "answer of the model")) : null,
      item.more.request ? ks.fold(`request-${item.seq}`, `What it was asked (${ks.count(item.new_messages, "new message")}, ${ks.whole(item.more.request)} characters)`, async () => asked(await whole(run, item.seq))) : null,
    ],
    tool_call: (run, item) => [
      h("p", {}, h("code", {}, item.tool), item.called_by === "agent" ? " (called by the agent, for the model did not)" : "", ` in ${item.seconds.toFixed(2)} s`, item.is_error ? h("span", { class: "bad" }, " failed") : ""),
      h("dl", { class: "arguments" }, Object.entries(item.arguments).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))))),
      ks.fold(`result-${item.seq}`, "Its result", async () => long(run, item, "result", item.result, "result of the tool")),
    ],
    passages_retrieved: (run, item) => [
      h("p", {}, `“${item.query}”: ${ks.count(item.passages.length, "passage")}`),
      item.passages.length ? ks.fold(`passages-${item.seq}`, item.passages.map((one) => one.title).filter((one, at, all) => all.indexOf(one) === at).join("; "), async () => h("div", {}, item.passages.map((one) => ks.passage(run, { ...one, seq: null }, false)))) : null,
    ],
    candidate_created: (run, item) => [
      h("p", {}, "Candidate ", ks.candidateLink(run, item.candidate_id), item.parent_id ? [" from ", ks.candidateLink(run, item.parent_id), `, attempt ${item.attempt}`] : ", the starting kernel"),
      item.more.diff ? ks.fold(`diff-${item.seq}`, `Its change to ${item.parent_id}`, async () => unified((await whole(run, item.seq)).diff)) : null,
    ],
    evaluation_finished: (run, item) => [
      h("p", {}, "Candidate ", ks.candidateLink(run, item.candidate_id), " ", ks.verdictMark(item.verdict), ` (${item.tier}), ${item.checks_passed} of ${ks.count(item.checks, "check")} passed, in ${ks.duration(item.seconds)}`),
      item.speedup && item.candidate_id !== "0000" ? h("p", {}, h("strong", {}, ks.interval(item.speedup)), ` over the starting kernel; ${ks.time(item.time_us)} a run`) : item.time_us ? say(`${ks.time(item.time_us)} a run`) : null,
      long(run, item, "message", item.message, "evidence of the judge"),
    ],
    comparison_finished: (run, item) => [
      h("p", {}, "Candidate ", ks.candidateLink(run, item.b_id), " against ", ks.candidateLink(run, item.a_id), ` in ${item.pairs.length ? Math.min(...item.pairs) : "no"} fresh pairs a shape or more, ${ks.duration(item.seconds)}: `, h("strong", {}, ks.interval(item.speedup))),
      say(item.claim),
      h("p", { class: item.improved ? "good" : "bad" }, item.improved ? "An improvement." : "No improvement is shown."),
    ],
    best_changed: (run, item) => h("p", {}, "Best is now ", ks.candidateLink(run, item.candidate_id), `: ${ks.interval(item.speedup)} (${item.tier})`),
    generation_started: (run, item) => h("p", {}, `Generation ${item.generation} of ${item.generations}; best so far `, ks.candidateLink(run, item.best_id), item.best_speedup ? ` at ${ks.times(item.best_speedup)}` : ""),
    run_resumed: (run, item) => [h("p", {}, `Sitting ${item.sitting}: the run goes on in another process.`), item.notes.length ? h("ul", {}, item.notes.map((one) => h("li", {}, one))) : null],
    run_started: (run, item) => h("p", {}, `${item.problem} on ${item.target} (${item.device}), sandbox ${item.sandbox}, ${ks.count(item.generations, "generation")}`),
    run_finished: (run, item) => h("p", {}, `${ks.title(item.status)}: ${item.stop_reason}`),
    limit_reached: (run, item) => say(item.sentence),
    stop_requested: (run, item) => say(`${item.reason}. An evaluation in flight has ${ks.duration(item.grace_s)} to end.`),
    context_cut: (run, item) => [h("p", {}, `The prompt was larger than the model's window of ${ks.whole(item.window)} tokens. Left out of it:`), h("ul", {}, item.cut.map((one) => h("li", {}, one)))],
    error: (run, item) => h("p", { class: "bad" }, `${item.recovered ? "Went on after an error" : "Error"} in ${item.where}: ${item.message}`),
    speaker_selected: (run, item) => h("p", { class: "muted" }, item.attempt ? `attempt ${item.attempt}` : "its turn"),
    evaluation_started: (run, item) => h("p", { class: "muted" }, "Judging ", ks.candidateLink(run, item.candidate_id), ` (${item.tier})`),
  };

  const asked = (event) =>
    h("div", {}, event.request_prefix ? h("p", { class: "muted" }, `After ${ks.count(event.request_prefix, "message")} as in the call before.`) : null, event.request.map((message) => h("div", {}, h("h4", {}, message.type || "message"), ks.code(typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 1), message.type || "message"))));

  function unified(diff) {
    const kind = (line) => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@") ? "muted" : "");
    return h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "the change as a unified diff" }, diff.split("\n").map((line) => h("span", { class: `line ${kind(line)}` }, line + "\n")));
  }
})();
