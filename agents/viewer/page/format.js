// Figures for people: units, intervals, places in the page.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});

  const significant = (value, digits) => {
    const rounded = Number(value.toPrecision(digits));
    return Math.abs(rounded) >= 1e6 || (rounded && Math.abs(rounded) < 1e-4) ? rounded.toExponential(2) : String(rounded);
  };

  // A figure of the record; an open end is null, or the word that JSON has for it elsewhere.
  const figure = (value) => (value === null || value === undefined ? null : Number(value));

  ks.figure = figure;
  // Three figures, zeros kept: 21.0 says more than 21.
  const ratio = (value) => (Math.abs(value) >= 1000 ? significant(value, 3) : value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2));
  ks.times = (value) => (figure(value) === null ? "not measured" : `${ratio(Number(value))}×`);
  ks.tick = (value) => `${significant(value, 2)}×`;
  ks.bounds = function (one) {
    if (!one) return "not measured";
    const high = figure(one.high);
    const upper = high === null || !Number.isFinite(high) ? "no upper bound" : ks.times(high);
    return `${ks.times(one.low)} to ${upper} at ${significant(one.level * 100, 3)} % confidence`;
  };
  ks.brief = (one) => (one ? `${ks.times(one.low)} to ${figure(one.high) === null ? "∞" : ks.times(one.high)}, ${significant(one.level * 100, 3)} %` : "");
  ks.interval = (one) => (one ? `${ks.times(one.value)} (${ks.bounds(one)})` : "not measured");
  ks.time = function (us) {
    if (us === null || us === undefined) return "not measured";
    if (us >= 1e6) return `${significant(us / 1e6, 3)} s`;
    if (us >= 1e3) return `${significant(us / 1e3, 3)} ms`;
    return `${significant(us, 3)} µs`;
  };
  ks.duration = function (seconds) {
    const whole = Math.max(0, Math.round(seconds || 0));
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const parts = h ? [h, "h", m, "min"] : m ? [m, "min", s, "s"] : [s, "s"];
    return parts.join("\u00a0");
  };
  ks.percent = (share) => (figure(share) === null ? "not known" : `${significant(share * 100, 3)} %`);
  ks.signed = (value) =>
    figure(value) === null ? "not measured" : `${value >= 0 ? "+" : "−"}${significant(Math.abs(value), 3)} %`;
  ks.money = (usd) => (figure(usd) === null ? "not known" : `$${usd.toFixed(usd && usd < 0.1 ? 4 : 2)}`);
  ks.whole = (value) => Number(value || 0).toLocaleString("en-US");
  ks.count = (number, noun) => `${ks.whole(number)} ${noun}${number === 1 ? "" : "s"}`;
  ks.shape = (shape) => Object.entries(shape).map(([name, size]) => `${name}=${size}`).join(" ");
  ks.words = (name) => String(name).replaceAll("_", " ");
  ks.title = (name) => (name ? name[0].toUpperCase() + ks.words(name).slice(1) : "");
  ks.clock = (iso) => new Date(iso).toISOString().slice(11, 19);
  ks.day = (iso) => new Date(iso).toISOString().slice(0, 16).replace("T", " ") + " UTC";

  const step = encodeURIComponent;
  ks.place = (run, ...rest) => "#/runs/" + [run, ...rest].map((one) => step(one)).join("/");
  ks.candidateAt = (run, id, against) => ks.place(run, "candidates", id) + (against ? `?against=${step(against)}` : "");
  ks.eventAt = (run, seq) => ks.place(run, "conversation") + `?event=${seq}`;

  // The event that a figure comes from, as a link.
  ks.from = (run, seq) =>
    seq ? ks.h("a", { class: "ref", href: ks.eventAt(run, seq), "aria-label": `event ${seq} of the record` }, `#${seq}`) : null;
  ks.candidateLink = (run, id) => ks.h("a", { class: "candidate-id", href: ks.candidateAt(run, id) }, id);
  ks.verdictMark = function (verdict) {
    const kind = verdict === "accepted" ? "good" : verdict === "not judged" ? "open" : "bad";
    const sign = { good: "✓", bad: "✗", open: "…" }[kind];
    return ks.h("span", { class: `verdict ${kind}` }, ks.h("span", { "aria-hidden": "true" }, sign + " "), ks.words(verdict));
  };
})();
