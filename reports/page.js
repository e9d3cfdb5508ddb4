// Hover, zoom and links for the figures of a page. The figures can be read without.
"use strict";
(() => {
  const kUnits = {
    s: [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]],
    B: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]],
    "B/s": [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]],
    "%": [[1, "%"]],
    "-": [[1, ""]],
  };

  // The largest unit of which the value is at least one.
  const unitOf = (unit, value) =>
    kUnits[unit].find(([size]) => Math.abs(value) >= size * (1 - 1e-9)) || kUnits[unit].at(-1);

  const figureText = (unit, value) => {
    const [size, name] = value === 0 ? kUnits[unit].at(-1) : unitOf(unit, value);
    return `${Number((value / size).toPrecision(4))} ${name}`.trim();
  };

  // "lin 0 0.3 s" as scale.cc writes it.
  const axisOf = (text) => {
    if (!text) return null;
    const [kind, least, most, unit] = text.split(" ");
    return { log: kind === "log", least: Number(least), most: Number(most), unit };
  };

  const shareOf = (axis, value) => {
    if (!axis.log) return (value - axis.least) / (axis.most - axis.least);
    return value <= axis.least ? 0 : Math.log(value / axis.least) / Math.log(axis.most / axis.least);
  };

  const valueAt = (axis, share) =>
    axis.log
      ? axis.least * (axis.most / axis.least) ** share
      : axis.least + share * (axis.most - axis.least);

  // 1, 2 or 5 times a power of ten.
  const roundStep = (least) => {
    const power = 10 ** Math.floor(Math.log10(least) + 1e-9);
    return power * ([1, 2, 5, 10].find((times) => power * times >= least * (1 - 1e-9)) || 10);
  };

  // Between the ends of a zoom, as scale.cc chooses them for the whole figure.
  const ticksOf = (axis, from, to) => {
    const kWanted = 8;
    const ticks = [];
    if (axis.log && axis.unit === "B") {
      const stride = Math.max(1, Math.ceil(Math.log2(to / from) / kWanted));
      for (let p = Math.ceil(Math.log2(from) - 1e-9); 2 ** p <= to * (1 + 1e-9); p += stride) {
        ticks.push([2 ** p, figureText("B", 2 ** p)]);
      }
      if (ticks.length > 1) return ticks;
      ticks.length = 0;
    } else if (axis.log && to / from > 10) {
      const between = to / from < 1000 ? [1, 2, 5] : [1];
      for (let p = Math.floor(Math.log10(from)); 10 ** p <= to; ++p) {
        for (const value of between.map((times) => times * 10 ** p)) {
          if (value >= from && value <= to) ticks.push([value, figureText(axis.unit, value)]);
        }
      }
      return ticks;
    }
    const largest = Math.max(Math.abs(axis.least), Math.abs(axis.most));
    const [size] = axis.log ? unitOf(axis.unit, to) : unitOf(axis.unit, largest);
    const step = roundStep((to - from) / size / kWanted);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let n = Math.ceil(from / size / step - 1e-9); n * step * size <= to + step * size * 1e-9; ++n) {
      const value = n * step * size;
      ticks.push([value, axis.log ? figureText(axis.unit, value) : (n * step).toFixed(digits)]);
    }
    return ticks;
  };

  const svgElement = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // What the pointer is at -------------------------------------------------------------------

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const showTip = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const room = document.documentElement;
    const left = Math.min(event.clientX + 14, room.clientWidth - tip.offsetWidth - 6);
    const below = event.clientY + 18 + tip.offsetHeight < room.clientHeight;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${below ? event.clientY + 16 : event.clientY - tip.offsetHeight - 8}px`;
  };
  const hideTip = () => { tip.hidden = true; };

  // The browser's own tip would stand beside ours.
  const takeTitles = (svg) => {
    for (const title of svg.querySelectorAll("title")) {
      title.parentNode.dataset.tip = title.textContent;
      title.parentNode.setAttribute("aria-label", title.textContent);
      title.remove();
    }
  };

  // A series' points, read once.
  const seriesOf = (plot) =>
    [...plot.querySelectorAll(".series")].map((group) => ({
      group,
      name: group.dataset.name,
      labels: group.dataset.labels ? group.dataset.labels.split("\n") : [],
      points: group.dataset.points
        ? group.dataset.points.split(" ").map((pair) => pair.split(",").map(Number))
        : [],
    }));

  const nearestPoint = (state, x, y) => {
    let best = null;
    let least = 30 * 30;
    for (const series of state.series) {
      series.points.forEach(([px, py], i) => {
        const dx = (shareOf(state.x, px) * state.width - state.from) * state.width / state.span - x;
        const dy = (1 - shareOf(state.y, py)) * state.height - y;
        if (dx * dx + dy * dy < least) {
          least = dx * dx + dy * dy;
          best = { series, i, px, py };
        }
      });
    }
    return best;
  };

  const pointText = (state, { series, i, px, py }) => {
    const label = series.labels[i] ? `${series.labels[i]}\n` : series.name ? `${series.name}\n` : "";
    return `${label}${figureText(state.x.unit, px)}: ${figureText(state.y.unit, py)}`;
  };

  // Where a pointer is in the plot's own pixels. Of a drawing inside another, browsers do not agree
  // on the box.
  const placeIn = (state, event) => {
    const box = state.svg.getBoundingClientRect();
    const scale = state.svg.viewBox.baseVal.width / box.width;
    return [
      (event.clientX - box.left) * scale - state.left,
      (event.clientY - box.top) * scale - state.top,
    ];
  };

  const hover = (state, event) => {
    const named = event.target.closest("[data-tip]");
    if (state.x && state.y) {
      const [x, y] = placeIn(state, event);
      const found = nearestPoint(state, x, y);
      if (found) return showTip(pointText(state, found), event);
    }
    if (named && named.dataset.tip) return showTip(named.dataset.tip, event);
    return hideTip();
  };

  // Zoom -----------------------------------------------------------------------------------------

  const drawTicks = (state) => {
    if (state.span === state.width) {
      state.grid.setAttribute("d", state.wholeGrid);
      state.below.replaceChildren(...state.wholeBelow);
      return;
    }
    const from = valueAt(state.x, state.from / state.width);
    const to = valueAt(state.x, (state.from + state.span) / state.width);
    let grid = state.rows;
    state.below.replaceChildren();
    for (const [value, text] of ticksOf(state.x, from, to)) {
      const share = (shareOf(state.x, value) * state.width - state.from) / state.span;
      if (share < -1e-6 || share > 1 + 1e-6) continue;
      const x = state.left + share * state.width;
      grid += `M${x.toFixed(1)} ${state.top}v${state.height}`;
      const label = svgElement("text", { x, y: state.top + state.height + 16, "text-anchor": "middle" });
      label.textContent = text;
      state.below.append(label);
    }
    state.grid.setAttribute("d", grid);
  };

  const zoomTo = (state, from, span) => {
    state.span = Math.min(state.width, Math.max(state.width / 4096, span));
    state.from = Math.min(state.width - state.span, Math.max(0, from));
    state.plot.setAttribute("viewBox", `${state.from} 0 ${state.span} ${state.height}`);
    state.buttons.querySelector(".all").disabled = state.span === state.width;
    drawTicks(state);
  };

  const zoomAround = (state, share, factor) => {
    const span = Math.min(state.width, state.span * factor);
    zoomTo(state, state.from + share * (state.span - span), span);
  };

  const addButtons = (state, figure) => {
    state.buttons = document.createElement("div");
    state.buttons.className = "zoom";
    const add = (text, title, css, action) => {
      const button = document.createElement("button");
      button.textContent = text;
      button.title = title;
      button.className = css;
      button.addEventListener("click", action);
      state.buttons.append(button);
    };
    add("+", "zoom in (or drag over the figure)", "in", () => zoomAround(state, 0.5, 0.5));
    add("\u2212", "zoom out", "out", () => zoomAround(state, 0.5, 2));
    add("\u2190", "to the left", "left", () => zoomTo(state, state.from - state.span / 3, state.span));
    add("\u2192", "to the right", "right", () => zoomTo(state, state.from + state.span / 3, state.span));
    add("all", "the whole figure", "all", () => zoomTo(state, 0, state.width));
    figure.prepend(state.buttons);
  };

  // Dragging over a stretch zooms to it; a double click shows all again.
  const addDrag = (state) => {
    let start = null;
    let shade = null;
    state.plot.addEventListener("dragstart", (event) => event.preventDefault());
    state.plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      start = placeIn(state, event)[0];
      shade = null;
    });
    state.plot.addEventListener("pointermove", (event) => {
      if (start === null) return hover(state, event);
      hideTip();
      const x = placeIn(state, event)[0];
      if (!shade) {
        if (Math.abs(x - start) < 5) return undefined;
        shade = svgElement("rect", { class: "band c6", y: 0, height: state.height });
        state.plot.append(shade);
        state.plot.setPointerCapture(event.pointerId);
      }
      const scale = state.span / state.width;
      shade.setAttribute("x", state.from + Math.min(start, x) * scale);
      shade.setAttribute("width", Math.abs(x - start) * scale);
      return undefined;
    });
    state.plot.addEventListener("pointerup", (event) => {
      if (shade) {
        shade.remove();
        const x = placeIn(state, event)[0];
        const scale = state.span / state.width;
        zoomTo(state, state.from + Math.min(start, x) * scale, Math.abs(x - start) * scale);
        // What was dragged over is no click on a link.
        window.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
      }
      start = null;
      shade = null;
    });
    state.plot.addEventListener("dblclick", () => zoomTo(state, 0, state.width));
    state.plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomAround(state, placeIn(state, event)[0] / state.width, event.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
  };

  const wake = (figure) => {
    const svg = figure.querySelector("svg.chart");
    const plot = svg && svg.querySelector("svg.plot");
    if (!plot) return;
    takeTitles(svg);
    const number = (name) => Number(plot.getAttribute(name));
    const state = {
      svg, plot, left: number("x"), top: number("y"), width: number("width"), height: number("height"),
      x: axisOf(plot.dataset.x), y: axisOf(plot.dataset.y), from: 0, span: number("width"),
      grid: svg.querySelector(".grid"), below: svg.querySelector(".below"), series: seriesOf(plot),
    };
    state.wholeGrid = state.grid.getAttribute("d");
    state.wholeBelow = [...state.below.childNodes];
    // A drawing takes events only where something is drawn.
    plot.prepend(svgElement("rect", {
      width: state.width, height: state.height, fill: "none", "pointer-events": "all",
    }));
    // The grid's level lines stay as they are.
    state.rows = (state.grid.getAttribute("d").match(/M[^M]*h[^M]*/g) || []).join("");
    plot.addEventListener("pointerleave", hideTip);
    if (!state.x) {
      plot.addEventListener("pointermove", (event) => hover(state, event));
      return;
    }
    addButtons(state, figure);
    addDrag(state);
    zoomTo(state, 0, state.width);
  };

  // A link into a table that is folded unfolds it.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView({ block: "center" });
  };

  for (const figure of document.querySelectorAll("figure")) wake(figure);
  window.addEventListener("hashchange", unfold);
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  unfold();
})();
