"use strict";
// Draws the samples of a case twice: in measuring order, and as a cumulative distribution (ECDF).
const drawSamples = (processes, about, [typical, low, high]) => {
  const WIDTH = 560, HEIGHT = 200, LEFT = 62, RIGHT = 12, TOP = 10, BOTTOM = 38, TICKS = 5, MOST_LINES = 120;
  const paragraph = text => Object.assign(document.createElement("p"), { className: "note", textContent: text });
  const blocks = processes.flat();
  const samples = blocks.flat();
  if (!samples.length) return [paragraph(about.kind === "none" ? `Samples are ${about.samples_are}` : "This case has no samples.")];

  const time = ms => {
    const [factor, unit] = ms >= 1000 ? [1e-3, "s"] : ms >= 1 ? [1, "ms"] : ms >= 1e-3 ? [1e3, "µs"] : [1e6, "ns"];
    return `${Number((ms * factor).toPrecision(3))} ${unit}`;
  };
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = (sorted[(samples.length - 1) >> 1] + sorted[samples.length >> 1]) / 2;
  const least = Math.min(sorted[0], low ?? sorted[0]), most = Math.max(sorted.at(-1), high ?? 0);
  const pad = (most - least) * 0.06 || most * 0.05;
  const range = [least - pad, most + pad];
  const ticks = ([from, to]) => {
    const rough = (to - from) / TICKS, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find(factor => factor * power >= rough) ?? 10);
    return Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, place) => (Math.ceil(from / step) + place) * step);
  };
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const scale = ([from, to], start, end) => value => (start + ((value - from) / (to - from)) * (end - start)).toFixed(1);
  const axes = (label, x_range, y_range, x_text, y_text, x_ticks, y_ticks) => {
    const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "samples" });
    const x = scale(x_range, LEFT, WIDTH - RIGHT), y = scale(y_range, HEIGHT - BOTTOM, TOP);
    for (const [at, text] of y_ticks) {
      svg.append(draw("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(at), y2: y(at) }));
      svg.append(draw("text", { x: LEFT - 6, y: y(at), dy: "0.35em", "text-anchor": "end" }, text));
    }
    for (const [at, text] of x_ticks) svg.append(draw("text", { x: x(at), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" }, text));
    svg.append(draw("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, x_text));
    svg.append(draw("text", { transform: `translate(11 ${(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)`, "text-anchor": "middle" }, y_text));
    return [svg, x, y];
  };

  const what = about.kind === "medians" ? "block medians" : "calls";
  const text = `${samples.length} ${what} in ${blocks.length} blocks of ${processes.length === 1 ? "1 process" : `${processes.length} processes`}: ` +
    `lowest ${time(sorted[0])}, median ${time(middle)}, highest ${time(sorted.at(-1))}`;
  const counts = ticks([1, samples.length + 1]).filter(Number.isInteger).map(at => [at, at]);
  const times = ticks(range).map(at => [at, time(at)]);
  const [strip, x, y] = axes(`${text}, in order`, [0.5, samples.length + 0.5], range, `${what}, in measuring order`, "time", counts, times);
  if (low && high) strip.append(draw("rect", { class: "interval", x: LEFT, width: WIDTH - RIGHT - LEFT, y: y(high), height: Math.max(1, y(low) - y(high)) }));
  if (typical) strip.append(draw("line", { class: "typical", x1: LEFT, x2: WIDTH - RIGHT, y1: y(typical), y2: y(typical) }));
  let taken = 0;
  for (const [number, process] of processes.entries()) {
    if (number) strip.append(draw("line", { class: "process", x1: x(taken + 0.5), x2: x(taken + 0.5), y1: TOP, y2: HEIGHT - BOTTOM }));
    for (const [place, block] of process.entries()) {
      if (place && about.kind === "calls" && blocks.length <= MOST_LINES)
        strip.append(draw("line", { class: "rule", x1: x(taken + 0.5), x2: x(taken + 0.5), y1: TOP, y2: HEIGHT - BOTTOM }));
      for (const sample of block) strip.append(draw("circle", { cx: x(++taken), cy: y(sample), r: samples.length > 300 ? 1.5 : 2.5 }));
    }
  }
  const shares = [0, 0.25, 0.5, 0.75, 1].map(share => [share, `${100 * share} %`]);
  const [steps, across, up] = axes(`${text}, as shares`, range, [0, 1], "time", `share of ${what}`, times, shares);
  const path = sorted.map((sample, place) => `H${across(sample)}V${up((place + 1) / sorted.length)}`).join("");
  if (low && high) steps.append(draw("rect", { class: "interval", x: across(low), width: Math.max(1, across(high) - across(low)), y: TOP, height: HEIGHT - BOTTOM - TOP }));
  steps.append(draw("path", { class: "steps", d: `M${LEFT} ${up(0)}${path}H${WIDTH - RIGHT}` }));
  const note = paragraph(`${text}. The line is the latency, the band its 95 % interval. Shown are ${about.samples_are}`);
  return [note, strip, steps];
};
