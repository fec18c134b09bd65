// What a user changes about a chart: the visible range, a logarithmic axis, smoothing; and the picture of it.
//
// Charts of one `.nf-grid` with the same x axis share cursor and range.

import { smoothed } from "./chart-data.js";

const MOST_SMOOTHING = 0.95;
const STEP = 0.05;
const PICTURE_SCALE = 2;
const labels = document.querySelector("#chart-labels")?.dataset ?? {};
const shared = new Set();

const isLine = (series) => series.kind !== "bar" && series.kind !== "markers";
const values = (data) => data.series.flatMap(({ y }) => y.filter((one) => one !== null && one !== undefined));

/** Whether a logarithmic axis can show all of the values. */
export const canBeLogarithmic = (data) => values(data).every((one) => one > 0);

/** The data with smoothed lines; the measured ones stay behind them, faint. */
export function withSmoothing(data, weight) {
  if (!weight) return data;
  return {
    ...data,
    series: data.series.flatMap((series, index) =>
      isLine(series)
        ? [
            { ...series, colour: index, faint: true },
            { ...series, colour: index, y: smoothed(series.y, weight) },
          ]
        : [{ ...series, colour: index }],
    ),
  };
}

function button(parent, text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "btn btn-sm";
  made.textContent = text;
  made.addEventListener("click", action);
  parent.append(made);
  return made;
}

function field(parent, text, attributes, change) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), attributes);
  input.className = attributes.type === "checkbox" ? "form-check-input" : "form-range";
  input.addEventListener("input", () => change(input));
  label.append(...(attributes.type === "checkbox" ? [input, text] : [text, input]));
  parent.append(label);
  return { label, input };
}

/** The disclosure with the options of a chart; `redraw` draws it anew. */
export function optionsOf(state, parent, redraw) {
  const details = document.createElement("details");
  details.className = "nf-chart-options";
  const summary = document.createElement("summary");
  summary.textContent = labels.options;
  const tools = document.createElement("div");
  details.append(summary, tools);
  parent.append(details);
  state.view = { logarithmic: false, smoothing: 0 };
  button(tools, labels.zoomIn, () => move(state, { factor: 0.5 }));
  button(tools, labels.zoomOut, () => move(state, { factor: 2 }));
  button(tools, labels.panLeft, () => move(state, { shift: -0.5 }));
  button(tools, labels.panRight, () => move(state, { shift: 0.5 }));
  button(tools, labels.reset, () => reset(state));
  const logarithmic = field(tools, labels.logarithmic, { type: "checkbox" }, ({ checked }) => {
    state.view.logarithmic = checked;
    redraw();
  });
  const smoothing = field(
    tools,
    labels.smoothing,
    { type: "range", min: 0, max: MOST_SMOOTHING, step: STEP, value: 0 },
    ({ valueAsNumber }) => {
      state.view.smoothing = valueAsNumber;
      redraw();
    },
  );
  button(tools, labels.png, () => savePicture(state));
  state.options = { details, logarithmic, smoothing };
}

/** Offers only what the data allows. */
export function updateOptions(state) {
  const { logarithmic, smoothing } = state.options;
  const possible = canBeLogarithmic(state.data);
  logarithmic.input.disabled = !possible;
  logarithmic.label.title = possible ? "" : labels.positive;
  if (!possible) state.view.logarithmic = logarithmic.input.checked = false;
  smoothing.label.hidden = !state.data.series.some(isLine);
}

const axisOf = (state) => state.parts.plot._fullLayout?.xaxis;

function move(state, { factor = 1, shift = 0 }) {
  const axis = axisOf(state);
  if (!axis) return;
  const [low, high] = axis.range.map((one) => axis.r2l(one));
  const middle = (low + high) / 2 + (high - low) * shift;
  const half = ((high - low) / 2) * factor;
  window.Plotly.relayout(state.parts.plot, { "xaxis.range": [middle - half, middle + half].map((one) => axis.l2r(one)) });
}

function reset(state) {
  if (axisOf(state)) window.Plotly.relayout(state.parts.plot, { "xaxis.autorange": true, "yaxis.autorange": true });
}

const neighbours = (state) =>
  [...shared].filter(
    (other) =>
      other !== state &&
      other.element.isConnected &&
      other.parts.plot._fullLayout &&
      other.group === state.group &&
      other.data.x.type === state.data.x.type &&
      other.data.x.label === state.data.x.label,
  );

// A range or a cursor that comes from a neighbour is not passed on again. A flag of each chart, not of all: a range
// that is chosen while the cursor is being passed on would be lost.
function inNeighbours(state, action) {
  if (state.following) return;
  for (const other of neighbours(state)) {
    other.following = (other.following ?? 0) + 1;
    Promise.resolve(action(other)).finally(() => (other.following -= 1));
  }
}

/** Shows cursor and range of the chart in the charts beside it; called once, after the first drawing. */
export function share(state) {
  const { plot } = state.parts;
  state.group = state.element.closest(".nf-grid");
  if (!state.group || state.data.x.type === "category") return;
  for (const other of shared) if (!other.element.isConnected) shared.delete(other);
  shared.add(state);
  plot.on("plotly_hover", ({ xvals }) => {
    // A time is told as text, and wanted as a number.
    if (xvals) inNeighbours(state, (other) => window.Plotly.Fx.hover(other.parts.plot, { xval: axisOf(other).d2c(xvals[0]) }, "xy"));
  });
  plot.on("plotly_unhover", () => inNeighbours(state, (other) => window.Plotly.Fx.unhover(other.parts.plot)));
  plot.on("plotly_relayout", (change) => {
    const keys = Object.keys(change).filter((key) => key.startsWith("xaxis."));
    const range = Object.fromEntries(keys.map((key) => [key, change[key]]));
    if (keys.length) inNeighbours(state, (other) => window.Plotly.relayout(other.parts.plot, range));
  });
}

async function savePicture(state) {
  const { plot } = state.parts;
  const { width, height } = plot._fullLayout;
  // By way of a data URL: the policy allows no pictures from blobs, which the library would make.
  const drawn = new Image();
  drawn.src = await window.Plotly.toImage(plot, { format: "svg", width, height });
  await drawn.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * PICTURE_SCALE, height: height * PICTURE_SCALE });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(state.element).getPropertyValue("--nf-chart-surface").trim();
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(drawn, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((picture) => save(picture, state.element.dataset.chartTitle, "png"));
}

/** Downloads a blob under the title of a chart. */
export function save(content, title, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `${(title || "chart").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
