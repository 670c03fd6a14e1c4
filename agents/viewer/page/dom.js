// Elements from data. Text of models, candidates and compilers only ever becomes text nodes.
(function () {
  "use strict";
  const ks = (window.ks = window.ks || {});
  const SVG = "http://www.w3.org/2000/svg";

  // Controls, bidirectional marks and overrides, zero-width and tag characters: shown by their code point.
  const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff]|[\u{e0000}-\u{e0fff}]/gu;

  function codePoint(character) {
    return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  }

  // A text as nodes: what cannot be seen, or would steer or reorder the rest, stands there by name.
  ks.text = function (value) {
    const text = String(value).replace(/\r\n/g, "\n");
    const fragment = document.createDocumentFragment();
    let last = 0;
    for (const match of text.matchAll(HIDDEN)) {
      if (match.index > last) fragment.append(text.slice(last, match.index));
      const mark = document.createElement("span");
      mark.className = "hidden-character";
      mark.textContent = codePoint(match[0]);
      fragment.append(mark);
      last = match.index + match[0].length;
    }
    if (last < text.length) fragment.append(text.slice(last));
    return fragment;
  };

  function add(element, children) {
    for (const child of children) {
      if (child === null || child === undefined || child === false || child === "") continue;
      if (Array.isArray(child)) add(element, child);
      else if (child instanceof Node) element.append(child);
      else element.append(ks.text(child));
    }
    return element;
  }

  function set(element, properties) {
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "on") {
        for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
      } else if (name === "href") {
        // Only places in this page, and sources of literature that a person may choose to open.
        if (/^(#|https?:\/\/)/i.test(value)) element.setAttribute("href", value);
      } else {
        element.setAttribute(name, value === true ? "" : String(value));
      }
    }
    return element;
  }

  ks.h = (tag, properties, ...children) => add(set(document.createElement(tag), properties), children);
  ks.svg = (tag, properties, ...children) => add(set(document.createElementNS(SVG, tag), properties), children);
  ks.clear = (element) => (element.replaceChildren(), element);

  // Something long that can be opened; `key` keeps it open while a live page is drawn anew.
  ks.fold = function (key, summary, make, open) {
    const box = ks.h("details", { "data-key": key, class: "fold" }, ks.h("summary", {}, summary));
    let made = false;
    const fill = async () => {
      if (made) return;
      made = true;
      const place = ks.h("div", { class: "fold-body" });
      box.append(place);
      try {
        add(place, [await make()]);
      } catch (error) {
        add(place, [ks.h("p", { class: "notice" }, error.message)]);
      }
    };
    box.addEventListener("toggle", () => box.open && fill());
    if (open) {
      box.open = true;
      fill();
    }
    return box;
  };

  ks.table = function (caption, head, rows, options) {
    const kind = (options && options.class) || "";
    const cell = (value, index) =>
      index === 0 ? ks.h("th", { scope: "row" }, value) : ks.h("td", {}, value);
    return ks.h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      ks.h(
        "table",
        { class: kind },
        ks.h("caption", { class: options && options.caption ? "" : "unseen" }, caption),
        ks.h("thead", {}, ks.h("tr", {}, head.map((one) => (one ? ks.h("th", { scope: "col" }, one) : ks.h("td", {}))))),
        ks.h("tbody", {}, rows.map((row) => ks.h("tr", {}, row.map(cell))))
      )
    );
  };

  ks.code = (text, label) =>
    ks.h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label || "text" }, text);

  ks.external = (url) =>
    /^https?:\/\//i.test(url)
      ? ks.h("a", { href: url, rel: "noopener noreferrer nofollow", target: "_blank" }, url)
      : ks.h("span", {}, url);
})();
