// Charts drawn as SVG. Each has a sentence for those who do not see it, and its figures as a table beneath.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h, svg } = ks;
  const MARKS = 400;

  // On a phone a chart is drawn narrower, so that its letters stay readable.
  const isNarrow = () => window.matchMedia("(max-width: 40rem)").matches;

  function ticks(low, high, logarithmic, most = 8) {
    if (!logarithmic) {
      const raw = (high - low) / 5 || 1;
      const unit = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((n) => n * unit).find((one) => one >= raw);
      const found = [];
      for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(at);
      return found;
    }
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const n of [1, 2, 5]) found.push(n * 10 ** power);
    const inside = found.filter((one) => one >= low * 0.999 && one <= high * 1.001);
    return inside.length > most ? inside.filter((one) => /^1/.test(one.toExponential())) : inside;
  }

  function scale(low, high, from, to, logarithmic) {
    const at = logarithmic ? Math.log : (x) => x;
    const span = at(high) - at(low) || 1;
    return (value) => from + ((at(Math.min(Math.max(value, low), high)) - at(low)) / span) * (to - from);
  }

  ks.chartBox = (width, height, label, ...parts) =>
    svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "group", "aria-label": label }, svg("title", {}, label), parts);

  const scrolled = (title, box) => h("div", { class: "chart-scroll", tabindex: "0", role: "region", "aria-label": title }, box);

  const label = (x, y, text, kind, anchor) =>
    svg("text", { x, y, class: kind || "tick", "text-anchor": anchor || "start" }, text);
  const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });

  // Speed-up that the speed of light allows over the start, as the geometric mean over shapes.
  ks.lightSpeedup = function (timings) {
    const ratios = (timings || []).map((one) => (one.bound_us && one.baseline_us ? one.baseline_us / one.bound_us : null));
    if (!ratios.length || ratios.includes(null)) return null;
    return Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  };

  // Speed-up of each candidate in the order it was made, and the best so far. `series` may hold two runs.
  ks.bestSoFar = function (series, light) {
    const wide = isNarrow() ? 400 : 860;
    const [width, height, left, right, top, bottom] = [wide, 320, 52, 14, 18, 40];
    const measured = series.flatMap((one) => one.candidates.filter((c) => c.accepted && c.speedup));
    if (!measured.length) return h("p", { class: "muted" }, "No candidate has been measured yet.");
    const highs = measured.map((c) => ks.figure(c.speedup.high) ?? c.speedup.value).filter(Number.isFinite);
    const lows = measured.map((c) => Math.max(c.speedup.low, 0.01));
    const high = Math.max(...highs, light || 1, 1) * 1.15;
    const low = Math.min(...lows, 1) * 0.85;
    const logarithmic = high / low > 4;
    const most = Math.max(...series.map((one) => one.candidates.length), 2) - 1;
    const y = scale(low, high, height - bottom, top, logarithmic);
    const x = scale(0, most, left + 12, width - right - 12, false);
    const grid = ticks(low, high, logarithmic).flatMap((at) => [line(left, y(at), width - right, y(at), "grid"), label(left - 8, y(at) + 4, ks.tick(at), "tick", "end")]);
    const steps = ticks(0, most, false).filter(Number.isInteger);
    const bottomTicks = steps.map((at) => label(x(at), height - bottom + 18, String(at), "tick", "middle"));
    const limit = light ? [line(left, y(light), width - right, y(light), "light"), label(width - right, y(light) - 6, `speed of light ${ks.times(light)}`, "light-text", "end")] : [];
    const drawn = series.map((one, index) => drawSeries(one, index, x, y, series.length > 1));
    const leftOut = series.reduce((sum, one) => sum + Math.max(0, one.candidates.length - shownOf(one.candidates).size), 0);
    const axis = label((left + width - right) / 2, height - 4, isNarrow() ? "candidates in order (0 is the start)" : "candidates in the order they were made (0 is the start)", "tick", "middle");
    const last = measured.reduce((best, c) => (c.speedup.value > best.speedup.value ? c : best));
    const sentence = `Speed-up over the starting kernel of ${ks.count(measured.length, "measured candidate")}; the highest is ${ks.interval(last.speedup)}, candidate ${last.id}.`;
    const box = scrolled("chart of the speed-ups", ks.chartBox(width, height, sentence, grid, limit, bottomTicks, axis, drawn));
    if (!leftOut) return box;
    return h("div", {}, box, h("p", { class: "muted" }, `The line is of all candidates. Only some candidates have a mark: ${ks.whole(leftOut)} marks are left out; the table beneath has all that were measured.`));
  };

  // Places of the candidates that get a mark: all, or where they would be too many the first few hundred bests and an even choice.
  function shownOf(candidates) {
    const step = Math.ceil(candidates.length / MARKS);
    const shown = new Set();
    let best = 1;
    let leading = 0;
    candidates.forEach((c, place) => {
      const leads = c.accepted && c.speedup && c.speedup.value > best;
      if (leads) best = c.speedup.value;
      if (place % step === 0 || (leads && leading++ < MARKS)) shown.add(place);
    });
    return shown;
  }

  function drawSeries(one, index, x, y, several) {
    let best = 1;
    let path = `M ${x(0)} ${y(1)}`;
    const marks = [];
    const shown = shownOf(one.candidates);
    one.candidates.forEach((c, place) => {
      const at = x(place);
      const value = c.accepted && c.speedup ? c.speedup.value : null;
      if (value !== null && value > best) {
        path += ` L ${at} ${y(best)}`;
        best = value;
        path += ` L ${at} ${y(best)}`;
      }
      if (shown.has(place)) marks.push(mark(one.run, c, at, y, value, index));
    });
    path += ` L ${x(Math.max(one.candidates.length - 1, 0))} ${y(best)}`;
    return svg("g", { class: `series series-${index}${several ? " of-two" : ""}` }, svg("path", { d: path, class: "best-line" }), marks);
  }

  function mark(run, c, at, y, value, index) {
    const isStart = c.parent_id === null;
    const words = isStart
      ? `candidate ${c.id}, the starting kernel`
      : `candidate ${c.id}: ${value === null ? ks.words(c.verdict) : ks.interval(c.speedup)}`;
    const shape =
      value === null && !isStart
        ? [svg("path", { d: `M ${at - 5} ${y(1) - 5} l 10 10 m 0 -10 l -10 10`, class: c.accepted || c.verdict === "not judged" ? "waiting" : "failed" })]
        : [
            c.speedup ? line(at, y(c.speedup.low), at, y(ks.figure(c.speedup.high) ?? c.speedup.value), "error-bar") : null,
            index ? svg("rect", { x: at - 5, y: y(value ?? 1) - 5, width: 10, height: 10, class: "point" }) : svg("circle", { cx: at, cy: y(value ?? 1), r: 5.5, class: "point" }),
          ];
    return svg("a", { href: ks.candidateAt(run, c.id), "aria-label": words }, svg("title", {}, words), svg("circle", { cx: at, cy: y(value ?? 1), r: 13, class: "target" }), shape);
  }

  // Per shape: the start, the kernel with its quartiles, and the speed of light, on one axis of time.
  ks.perShape = function (timings, names) {
    if (!timings || !timings.length) return h("p", { class: "muted" }, "Nothing was timed.");
    const narrow = isNarrow();
    const [width, row, above, left, right, top] = narrow ? [400, 68, 30, 12, 24, 14] : [860, 54, 17, 16, 30, 8];
    const height = top + timings.length * row + 34;
    const all = timings.flatMap((t) => [t.time_us, t.low_us, t.high_us, t.baseline_us, t.bound_us]).filter((one) => one > 0);
    const [low, high] = [Math.min(...all) * 0.8, Math.max(...all) * 1.25];
    const logarithmic = high / low > 4;
    const x = scale(low, high, left, width - right, logarithmic);
    const grid = ticks(low, high, logarithmic, narrow ? 5 : 8).flatMap((at) => [line(x(at), top, x(at), height - 30, "grid"), label(x(at), height - 12, ks.time(at), "tick", "middle")]);
    const rows = timings.map((t, place) => {
      const y = top + place * row + 36;
      const said = ks.time(t.time_us) + (t.speedup ? `, ${ks.times(t.speedup.value)}` : "");
      const half = said.length * 3.8;
      return svg(
        "g",
        {},
        svg("text", { x: left, y: y - above, class: "row-label" }, `${ks.shape(t.shape)}`),
        line(left, y, width - right, y, "grid"),
        t.baseline_us ? line(x(t.time_us), y, x(t.baseline_us), y, "gain") : null,
        t.bound_us ? line(x(t.bound_us), y - 12, x(t.bound_us), y + 12, "light") : null,
        t.baseline_us ? svg("circle", { cx: x(t.baseline_us), cy: y, r: 6, class: "start-point" }, svg("title", {}, `${names[0]}: ${ks.time(t.baseline_us)}`)) : null,
        line(x(t.low_us), y, x(t.high_us), y, "quartiles"),
        svg("circle", { cx: x(t.time_us), cy: y, r: 6, class: "point" }, svg("title", {}, `${names[1]}: ${ks.time(t.time_us)}`)),
        svg("text", { x: Math.min(Math.max(x(t.time_us), left + half), width - half), y: y - 11, class: "row-value", "text-anchor": "middle" }, said)
      );
    });
    const sentence = `Times on ${ks.count(timings.length, "shape")}: ${names[0]}, ${names[1]} and the speed of light. The table beneath has the figures.`;
    return scrolled("chart of the times per shape", ks.chartBox(width, height, sentence, grid, rows));
  };

  ks.legend = (...entries) =>
    h("p", { class: "legend" }, entries.map(([kind, text]) => h("span", { class: "legend-entry" }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text)));

  ks.timingTable = function (timings, names) {
    const rows = timings.map((t) => [
      ks.shape(t.shape),
      t.baseline_us ? ks.time(t.baseline_us) : "–",
      ks.time(t.time_us),
      `${ks.time(t.low_us)} to ${ks.time(t.high_us)}`,
      ks.interval(t.speedup),
      String(t.batches),
      t.bound_us ? `${ks.percent(t.bound_us / t.time_us)}${t.bound_by ? ` (${t.bound_by})` : ""}` : "not known",
    ]);
    return ks.table("times per shape", ["shape", names[0], names[1], "quartiles", "speed-up", "pairs", "of the speed of light"], rows);
  };

  // What grew over time, a line an agent. `values(point)` gives the figures by agent.
  ks.growth = function (points, agents, values, unit, title) {
    const [width, height, left, right, top, bottom] = [isNarrow() ? 400 : 860, 260, 62, 96, 14, 34];
    const end = Math.max(...points.map((one) => one.at_s), 1);
    const high = Math.max(...points.flatMap((one) => agents.map((agent) => Number(values(one)[agent] || 0))), 0) * 1.08;
    if (!high) return h("p", { class: "muted" }, `${title}: nothing to draw, it stays at ${unit(0)}.`);
    const x = scale(0, end, left, width - right, false);
    const y = scale(0, high, height - bottom, top, false);
    const grid = ticks(0, high, false).flatMap((at) => [line(left, y(at), width - right, y(at), "grid"), label(left - 8, y(at) + 4, unit(at), "tick", "end")]);
    const times = ticks(0, end, false).map((at) => label(x(at), height - 12, ks.duration(at), "tick", "middle"));
    const ends = agents.map((agent) => y(Number(values(points[points.length - 1])[agent] || 0)));
    const order = agents.map((_, index) => index).sort((a, b) => ends[b] - ends[a]);
    const at = [];
    let lowest = height;
    for (const index of order) at[index] = lowest = Math.min(ends[index] + 4, lowest - 15);
    const lines = agents.map((agent, index) => {
      let path = `M ${x(0)} ${y(0)}`;
      let before = 0;
      for (const one of points) {
        const value = Number(values(one)[agent] || 0);
        path += ` L ${x(one.at_s)} ${y(before)} L ${x(one.at_s)} ${y(value)}`;
        before = value;
      }
      path += ` L ${x(end)} ${y(before)}`;
      return svg("g", { class: `agent-line agent-${index % 4}` }, svg("path", { d: path }), label(width - right + 6, at[index], agent, "line-label"));
    });
    const totals = agents.map((agent) => `${agent} ${unit(values(points[points.length - 1])[agent] || 0)}`).join(", ");
    return scrolled(`chart: ${title}`, ks.chartBox(width, height, `${title}: ${totals}.`, grid, times, lines));
  };
})();
