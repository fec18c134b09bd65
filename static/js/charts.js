// Charts with one theme: <figure class="nf-chart" data-chart="URL of JSON" data-chart-title="A question?">.
//
// The JSON is {x: {label, unit, type}, y: {label, unit, type}, series: [{name, x, y, kind, dash, hue}],
// marks: [{x, label, detail, kind}], ended, more, stacked}. A mark is of kind release, fault, attempt or checkpoint; `detail` is shown on hover. `kind` of a series is line, markers or bar; a null in y is a gap and stays one. Where
// `ended` is false, `more` is asked for what came since; its points are put in by their x, the newer one wins.
//
// <… data-chart-marks="URL of JSON"> adds the `marks` of another source. While a chart grows, they are asked for again now and then.

import { csvOf, tableOf } from "./chart-data.js";
import { drawing } from "./chart-theme.js";
import { optionsOf, save, share, updateOptions, withSmoothing } from "./chart-view.js";

const PAUSE = 2000;
const LONGEST_PAUSE = 60000;
const MARKS_PAUSE = 20000;
const MOST_SERIES = 6;
const LATER = 1000;
const charts = new Map();
const labels = document.querySelector("#chart-labels")?.dataset ?? {};

let loading = null;
function plotly() {
  // The library is larger than the page: it comes with the first chart that is looked at. Its own style
  // sheet and the empty template keep it from adding rules by script, which the policy forbids.
  loading ??= new Promise((resolve, reject) => {
    if (window.Plotly) return resolve(window.Plotly);
    if (!document.getElementById("plotly.js-style-global")) {
      const style = document.createElement("link");
      Object.assign(style, { rel: "stylesheet", id: "plotly.js-style-global", className: "no-inline-styles", href: labels.plotlyStyles });
      document.head.append(style);
    }
    if (!document.getElementById(labels.plotlyMark)) {
      const mark = document.createElement("template");
      mark.id = labels.plotlyMark;
      document.body.append(mark);
    }
    const script = document.createElement("script");
    script.src = labels.plotly;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      loading = null;
      reject(new Error("the chart library did not load"));
    });
    document.head.append(script);
  });
  return loading;
}

function part(tag, name, parent) {
  const made = document.createElement(tag);
  made.className = name;
  parent.append(made);
  return made;
}

function titled(element) {
  const title = element.dataset.chartTitle;
  const known = element.querySelector("figcaption");
  if (known || !title) return known?.textContent ?? "";
  return (part("figcaption", "nf-chart-title", element).textContent = title);
}

function frame(element) {
  const title = titled(element);
  const plot = part("div", "nf-plot", element);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", title);
  const note = part("div", "nf-chart-note", element);
  note.setAttribute("role", "status");
  const more = part("div", "nf-chart-more", element);
  const details = part("details", "nf-chart-data", more);
  const summary = part("summary", "", details);
  summary.textContent = labels.table;
  const csv = part("button", "btn btn-sm", details);
  csv.type = "button";
  csv.textContent = labels.csv;
  const table = part("div", "table-responsive", details);
  table.tabIndex = 0;
  table.setAttribute("role", "region");
  table.setAttribute("aria-label", labels.table);
  return { plot, note, more, details, csv, table };
}

function say(state, text, retry) {
  const { note } = state.parts;
  note.replaceChildren();
  if (!text) return;
  note.append(text);
  if (retry) {
    const again = document.createElement("button");
    again.type = "button";
    again.className = "btn btn-sm";
    again.textContent = labels.again;
    again.addEventListener("click", retry);
    note.append(again);
  }
}

const count = (data) => data.series.reduce((sum, one) => sum + one.x.length, 0);

const drawn = ({ data, marks }) => ({ ...data, marks: [...data.marks, ...(marks ?? [])] });

async function draw(state) {
  const { element, parts } = state;
  const data = drawn(state);
  const empty = !count(data);
  parts.plot.hidden = empty;
  parts.more.hidden = empty;
  element.removeAttribute("aria-busy");
  if (empty) return say(state, element.dataset.chartEmpty ?? labels.empty);
  const hidden = data.series.length - MOST_SERIES;
  say(state, hidden > 0 ? labels.hidden.replace("{n}", hidden) : "");
  if (parts.details.open) tableOf(parts.table, data);
  const library = await plotly();
  updateOptions(state);
  const shown = { ...data, series: data.series.slice(0, MOST_SERIES) };
  const { traces, layout, config } = drawing(element, withSmoothing(shown, state.view.smoothing), state.view);
  await library.react(parts.plot, traces, layout, config);
  if (!state.shared) share(state);
  state.shared = true;
}

function merge(data, more) {
  for (const fresh of more.series ?? []) {
    let one = data.series.find((series) => series.name === fresh.name);
    if (!one) {
      one = { ...fresh, x: [], y: [] };
      data.series.push(one);
    }
    const at = new Map(one.x.map((x, index) => [x, index]));
    fresh.x.forEach((x, index) => {
      const known = at.get(x);
      if (known === undefined) {
        at.set(x, one.x.push(x) - 1);
        one.y.push(fresh.y[index]);
      } else {
        one.y[known] = fresh.y[index];
      }
    });
  }
  data.marks = more.marks ?? data.marks;
  data.ended = more.ended;
  data.more = more.more ?? data.more;
}

async function ask(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw Object.assign(new Error(answer.statusText), { status: answer.status });
  return answer.json();
}

/** Whether the marks of the other source are new. A chart without them is better than none. */
async function askMarks(state) {
  const address = state.element.dataset.chartMarks;
  if (!address) return false;
  state.marksAt = Date.now();
  try {
    const { marks } = await ask(new URL(address, location.href));
    const changed = JSON.stringify(marks) !== JSON.stringify(state.marks ?? []);
    state.marks = marks;
    return changed;
  } catch {
    return false;
  }
}

async function follow(state, pause = PAUSE) {
  await new Promise((resume) => setTimeout(resume, pause));
  if (!state.element.isConnected || charts.get(state.element) !== state) return;
  let next = PAUSE;
  if (!document.hidden) {
    try {
      const more = await ask(new URL(state.data.more, state.base));
      const before = count(state.data);
      merge(state.data, more);
      const due = state.data.ended || Date.now() - state.marksAt > MARKS_PAUSE;
      const marked = due && (await askMarks(state));
      if (marked || count(state.data) !== before || more.marks || more.series?.length) await draw(state);
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 429) return;
      next = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }
  if (!state.data.ended) follow(state, next);
}

/** Draws `data` into the element and keeps it in step with theme and width; draws anew when called again. */
export async function chart(element, data, base = location.href) {
  const known = charts.get(element);
  const state = known ?? { element, parts: frame(element) };
  Object.assign(state, { data: { marks: [], ended: true, ...data }, base });
  charts.set(element, state);
  if (!known) {
    state.parts.details.addEventListener("toggle", () => tableOf(state.parts.table, drawn(state)));
    state.parts.csv.addEventListener("click", () => save(csvOf(state.data), element.dataset.chartTitle, "csv"));
    optionsOf(state, state.parts.more, () => draw(state));
    new ResizeObserver(() => state.width !== element.clientWidth && resize(state)).observe(element);
  }
  try {
    await draw(state);
  } catch (error) {
    say(state, labels.failed, () => draw(state));
    throw error;
  }
  return state;
}

function resize(state) {
  const first = state.width === undefined;
  state.width = state.element.clientWidth;
  if (!first && state.width && window.Plotly) draw(state);
}

async function load(element) {
  titled(element);
  element.setAttribute("aria-busy", "true");
  element.querySelector(".nf-chart-failed")?.remove();
  const url = new URL(element.dataset.chart, location.href);
  try {
    const data = await ask(url);
    const state = await chart(element, data, url);
    if (await askMarks(state)) await draw(state);
    if (!state.data.ended && state.data.more) follow(state);
  } catch {
    if (charts.has(element)) return;
    element.removeAttribute("aria-busy");
    const note = document.createElement("div");
    note.className = "nf-chart-note nf-chart-failed";
    note.setAttribute("role", "alert");
    const again = document.createElement("button");
    again.type = "button";
    again.className = "btn btn-sm";
    again.textContent = labels.again;
    again.addEventListener("click", () => load(element));
    note.append(labels.failed ?? "", again);
    element.append(note);
  }
}

function once(element) {
  near.unobserve(element);
  if (element.dataset.chartFound === "loading") return;
  element.dataset.chartFound = "loading";
  load(element);
}

// What is in sight comes first, the rest when the browser has nothing else to do.
const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) once(target);
  },
  { rootMargin: "200px" },
);

function find(root) {
  for (const element of root.querySelectorAll("[data-chart]:not([data-chart-found])")) {
    element.dataset.chartFound = "";
    near.observe(element);
    setTimeout(() => once(element), LATER);
  }
}

document.addEventListener("themechange", () => {
  for (const state of charts.values()) if (state.element.isConnected) draw(state);
});
document.addEventListener("htmx:afterSettle", () => {
  for (const element of charts.keys()) if (!element.isConnected) charts.delete(element);
  find(document);
});
find(document);
