// Lines of two texts side by side (Myers' greedy algorithm), and the tables that show them.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  // Beyond so many differing lines the middle is shown as replaced whole: the search is quadratic in them.
  const MOST = 2000;

  function trim(a, b) {
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start++;
    let end = 0;
    while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
    return [start, end];
  }

  function edits(a, b) {
    const most = a.length + b.length;
    if (!most) return [];
    if (most > MOST) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
    const reach = { 1: 0 };
    const trace = [];
    for (let d = 0; d <= most; d++) {
      trace.push({ ...reach });
      for (let k = -d; k <= d; k += 2) {
        let x = k === -d || (k !== d && reach[k - 1] < reach[k + 1]) ? reach[k + 1] : reach[k - 1] + 1;
        let y = x - k;
        while (x < a.length && y < b.length && a[x] === b[y]) [x, y] = [x + 1, y + 1];
        reach[k] = x;
        if (x >= a.length && y >= b.length) return walk(a, b, trace, d);
      }
    }
    return [];
  }

  function walk(a, b, trace, depth) {
    const done = [];
    let [x, y] = [a.length, b.length];
    for (let d = depth; d >= 0; d--) {
      const reach = trace[d];
      const k = x - y;
      const from = k === -d || (k !== d && reach[k - 1] < reach[k + 1]) ? k + 1 : k - 1;
      const oldX = d ? reach[from] : 0;
      const oldY = d ? oldX - from : 0;
      while (x > oldX && y > oldY) {
        [x, y] = [x - 1, y - 1];
        done.push([" ", a[x]]);
      }
      if (d) done.push(x === oldX ? ["+", b[--y]] : ["-", a[--x]]);
    }
    return done.reverse();
  }

  // [sign, text, old line number, new line number] in order.
  ks.diffLines = function (old, now) {
    const lines = (text) => text.replace(/\r\n/g, "\n").replace(/\n$/, "").split("\n");
    const [a, b] = [lines(old), lines(now)];
    const [start, end] = trim(a, b);
    const middle = edits(a.slice(start, a.length - end), b.slice(start, b.length - end));
    const same = (line) => [" ", line];
    const all = [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)];
    let [i, j] = [0, 0];
    return all.map(([sign, text]) => [sign, text, sign === "+" ? null : ++i, sign === "-" ? null : ++j]);
  };

  function pairs(lines) {
    const rows = [];
    let removed = [];
    let added = [];
    const flush = () => {
      for (let n = 0; n < Math.max(removed.length, added.length); n++) rows.push([removed[n] || null, added[n] || null]);
      [removed, added] = [[], []];
    };
    for (const line of lines) {
      if (line[0] === "-") removed.push(line);
      else if (line[0] === "+") added.push(line);
      else {
        flush();
        rows.push([line, line]);
      }
    }
    flush();
    return rows;
  }

  const spoken = { "-": "removed: ", "+": "added: ", " ": "" };

  function side(line, number) {
    if (!line) return [ks.h("td", { class: "line-number empty" }), ks.h("td", { class: "empty" })];
    const kind = { "-": "removed", "+": "added", " ": "" }[line[0]];
    return [
      ks.h("td", { class: "line-number" }, line[number]),
      ks.h("td", { class: kind }, ks.h("span", { class: "unseen" }, spoken[line[0]]), line[1] || " "),
    ];
  }

  ks.diffTable = function (old, now, names, beside) {
    const lines = ks.diffLines(old, now);
    const changed = lines.filter((line) => line[0] !== " ").length;
    const label = `changes from ${names[0]} to ${names[1]}`;
    const body = beside
      ? pairs(lines).map(([left, right]) => ks.h("tr", {}, side(left, 2), side(right, 3)))
      : lines.map((line) => ks.h("tr", {}, ks.h("td", { class: "line-number" }, line[2]), side(line, 3)));
    const head = beside ? ["", names[0], "", names[1]] : ["", "", `${names[0]} → ${names[1]}`];
    const heads = head.map((one) => (one ? ks.h("th", { scope: "col" }, one) : ks.h("td", { class: "line-number" })));
    return ks.h(
      "div",
      {},
      ks.h("p", { class: "muted" }, changed ? `${ks.count(changed, "changed line")} of ${lines.length}` : "The two are the same."),
      ks.h(
        "div",
        { class: "scroll diff", tabindex: "0", role: "region", "aria-label": label },
        ks.h("table", { class: beside ? "beside" : "unified" }, ks.h("caption", { class: "unseen" }, label), ks.h("thead", {}, ks.h("tr", {}, heads)), ks.h("tbody", {}, body))
      )
    );
  };
})();
