// What the run used: tokens, cost and time per agent, in total and as they grew.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const { h } = ks;

  ks.views.cost = async function (run) {
    const cost = await ks.data.get(`runs/${run}/cost`);
    const agents = Object.keys(cost.agents);
    if (!agents.length) return [ks.heading("Cost"), h("p", { class: "muted" }, "No model has been called.")];
    const rows = agents.map((name) => {
      const one = cost.agents[name];
      const about = one.estimated ? "about " : "";
      return [ks.title(name), String(one.calls), String(one.failed), about + ks.whole(one.prompt_tokens), about + ks.whole(one.completion_tokens), ks.money(one.cost_usd), `${one.seconds.toFixed(1)} s`];
    });
    return [
      ks.heading("Cost and tokens"),
      ks.table("use per agent", ["agent", "calls", "failed", "prompt tokens", "completion tokens", "cost", "time in models"], rows, { class: "figures" }),
      h("p", { class: "muted" }, `The judge took ${ks.duration(cost.judging_s)}.`, agents.some((name) => cost.agents[name].estimated) ? " Tokens marked “about” were counted here, for the model reported none." : ""),
      h("h2", {}, "Tokens over time"),
      ks.growth(cost.points, agents, (one) => one.tokens, ks.whole, "Tokens"),
      h("h2", {}, "Cost over time"),
      ks.growth(cost.points, agents, (one) => one.cost_usd, ks.money, "Cost"),
      ks.fold("cost-points", "The same as a table", async () => ks.table("tokens as they grew", ["at", ...agents], cost.points.map((one) => [ks.duration(one.at_s), ...agents.map((name) => ks.whole(one.tokens[name] || 0))]))),
    ];
  };
})();
