// How every chart looks. Colours come from the style sheet, so that a chart and a badge have the same ones.

const NARROW = 520;
const LINE_HEIGHT = 16;
const TICK_WIDTH = 110;
const MARK_FONT = 11;
const NAME_FONT = 12;
// Of the vertical axis with its title, and of the space beside the points.
const AXIS_WIDTH = 80;
const MARK_DASHES = { release: "solid", fault: "dash", attempt: "dot", checkpoint: "dashdot" };
const DASHES = { dash: "dash", dot: "dot", dashed: "dash", dotted: "dot" };

function palette(element) {
  const style = getComputedStyle(element);
  const token = (name) => style.getPropertyValue(name).trim();
  return {
    text: token("--nf-chart-text"),
    grid: token("--nf-chart-grid"),
    surface: token("--nf-chart-surface"),
    series: [1, 2, 3, 4, 5, 6].map((number) => token(`--nf-series-${number}`)),
    gpu: token("--nf-gpu"),
    npu: token("--nf-npu"),
    fault: token("--tblr-danger"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

const titled = ({ label, unit }) => (label && unit ? `${label} (${unit})` : label || unit || "");

const timed = ({ type }) => type === "date" || type === "time";

// Plotly shows a time as it is written: so it is written in UTC, as on the rest of the page.
function utc(text) {
  const at = new Date(text);
  return Number.isNaN(at.valueOf()) ? text : at.toISOString().slice(0, -1);
}

function trace(series, index, { x, y, colours }) {
  const place = series.colour ?? index;
  const colour = colours[series.hue] ?? colours.series[place % colours.series.length];
  const unit = y.unit ? ` ${y.unit}` : "";
  const bar = series.kind === "bar";
  return {
    x: timed(x) ? series.x.map(utc) : series.x,
    y: series.y,
    name: series.name,
    type: bar ? "bar" : "scatter",
    mode: bar ? undefined : series.kind === "markers" ? "markers" : "lines",
    connectgaps: false,
    line: { color: colour, width: 2, dash: DASHES[series.dash] ?? "solid" },
    // Shapes tell series apart where colours do not.
    marker: bar ? { color: colour } : { color: colour, size: 6, symbol: place },
    opacity: series.faint ? 0.3 : 1,
    hoverinfo: series.faint ? "skip" : undefined,
    showlegend: !series.faint,
    hovertemplate: `%{y:.5~g}${unit}<extra>${series.name}</extra>`,
  };
}

// Times have the date only where the day changes.
const TIME_TICKS = [
  { dtickrange: [null, 1000], value: "%H:%M:%S.%L" },
  { dtickrange: [1000, 60_000], value: "%H:%M:%S" },
  { dtickrange: [60_000, 86_400_000], value: "%H:%M\n%Y-%m-%d" },
  { dtickrange: [86_400_000, "M1"], value: "%m-%d\n%Y" },
  { dtickrange: ["M1", null], value: "%Y-%m" },
];
const whole = (data) => data.series.every(({ x }) => x.every(Number.isInteger));

function axis({ type, unit = timed({ type }) ? "UTC" : "", label }, colours, bars) {
  const kind = { date: "date", time: "date", log: "log", category: "category", linear: "linear" }[type];
  return {
    title: { text: titled({ label, unit }), standoff: 8, font: { size: 12 } },
    type: kind ?? (bars ? undefined : "linear"),
    gridcolor: colours.grid,
    linecolor: colours.grid,
    tickcolor: colours.grid,
    zeroline: false,
    automargin: true,
    separatethousands: true,
    exponentformat: "SI",
  };
}

const lastKnown = (series) => {
  for (let index = series.y.length - 1; index >= 0; index -= 1) {
    if (series.y[index] !== null && series.y[index] !== undefined) return index;
  }
  return -1;
};

// Names at the ends of their lines, pushed apart where they would cover each other.
function labels(data, traces, { height, text, logarithmic }) {
  const values = data.series.flatMap((series) => series.y.filter((y) => y !== null && y !== undefined));
  const scale = logarithmic ? (y) => Math.log10(y) : (y) => y;
  const low = values.reduce((one, other) => Math.min(one, scale(other)), Infinity);
  const high = values.reduce((one, other) => Math.max(one, scale(other)), -Infinity);
  const perUnit = high > low ? height / (high - low) : 0;
  const ends = data.series
    .map((series, index) => ({ series, index, at: lastKnown(series) }))
    .filter(({ series, at }) => at >= 0 && !series.faint)
    .map((end) => ({ ...end, y: (high - scale(end.series.y[end.at])) * perUnit }))
    .sort((one, other) => one.y - other.y);
  let previous = -Infinity;
  return ends.flatMap(({ series, index, at, y }) => {
    const place = Math.max(y, previous + LINE_HEIGHT);
    previous = place;
    const end = { xref: "paper", x: 1, y: scale(series.y[at]), yshift: y - place, xanchor: "left", showarrow: false };
    // A hue that is good for a line may be too pale for words: the dot has it, the name does not.
    return [
      { ...end, xshift: 2, text: "●", font: { size: NAME_FONT, color: traces[index].line.color } },
      { ...end, xshift: 16, text: series.name, font: { size: NAME_FONT, color: text } },
    ];
  });
}

// The library does not wrap the text of a hover label.
const wrapped = (line) => line.match(/.{1,56}(?:\s+|$)|.{1,56}/gu) ?? [line];

// Chinese characters are as wide as they are high, others about half of that.
const textWidth = (text, size) => [...text].reduce((width, one) => width + (one > "\u2e80" ? 1 : 0.6) * size, 10);

// A label that would cover the one before it goes a line higher.
function lifted(shown, data, width) {
  const number = timed(data.x) ? (x) => Date.parse(x) : Number;
  const all = data.series.flatMap(({ x }) => x.map(number)).filter(Number.isFinite);
  const low = all.reduce((one, other) => Math.min(one, other), Infinity);
  const high = all.reduce((one, other) => Math.max(one, other), -Infinity);
  const perUnit = high > low ? width / (high - low) : 0;
  const ends = [];
  const rows = new Map();
  for (const mark of shown.filter(({ label }) => label).sort((one, other) => number(one.x) - number(other.x))) {
    const centre = (number(mark.x) - low) * perUnit;
    const half = textWidth(mark.label, MARK_FONT) / 2;
    const row = [0, 1].find((each) => centre - half >= (ends[each] ?? -Infinity)) ?? 1;
    ends[row] = centre + half;
    rows.set(mark, row);
  }
  return shown.map((mark) => ({ ...mark, row: rows.get(mark) ?? 0 }));
}

function marks(data, colours, width) {
  const placed = (data.marks ?? []).map((mark) => ({ ...mark, x: timed(data.x) ? utc(mark.x) : mark.x }));
  const shown = lifted(placed, data, width);
  return {
    shapes: shown.map(({ x, kind }) => ({
      type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1,
      line: { color: kind === "fault" ? colours.fault : colours.text, width: 1, dash: MARK_DASHES[kind] ?? "dot" },
    })),
    height: shown.length ? 24 + MARK_FONT * 1.5 * Math.max(...shown.map(({ row }) => row)) : 8,
    annotations: shown.map(({ x, label, detail, row }) => ({
      x, yref: "paper", y: 1, yanchor: "bottom", yshift: row * MARK_FONT * 1.5, text: label, showarrow: false,
      font: { size: MARK_FONT, color: colours.text },
      hovertext: detail && detail.split("\n").flatMap(wrapped).join("<br>"),
      hoverlabel: { bgcolor: colours.surface, bordercolor: colours.grid, font: { color: colours.text } },
    })),
  };
}

export function drawing(element, data, view = {}) {
  const colours = palette(element);
  const bars = data.series.some((series) => series.kind === "bar");
  const traces = data.series.map((series, index) => trace(series, index, { x: data.x, y: data.y, colours }));
  const wide = element.clientWidth >= NARROW;
  const several = data.series.filter((series) => !series.faint).length > 1;
  const logarithmic = view.logarithmic || data.y.type === "log";
  const named = several && wide && !bars;
  const longest = Math.max(...data.series.map((series) => textWidth(series.name, NAME_FONT)), 0);
  const right = named ? Math.min(20 + longest, 220) : 12;
  const mark = marks(data, colours, element.clientWidth - right - AXIS_WIDTH);
  const height = 288;
  const layout = {
    height,
    margin: { l: 8, r: right, t: mark.height, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colours.text, family: colours.font, size: 12 },
    // The range that a user chose stays when points are added.
    uirevision: "chosen",
    xaxis: {
      ...axis(data.x, colours, bars),
      nticks: Math.max(3, Math.floor(element.clientWidth / TICK_WIDTH)),
      fixedrange: data.x.type === "category",
      tickformatstops: timed(data.x) ? TIME_TICKS : undefined,
      tickformat: !timed(data.x) && data.x.type !== "category" && whole(data) ? ",d" : undefined,
    },
    yaxis: {
      ...axis({ ...data.y, type: logarithmic ? "log" : data.y.type }, colours, false),
      rangemode: bars && !logarithmic ? "tozero" : "normal",
      // A range of one scale means nothing on the other.
      uirevision: logarithmic ? "logarithmic" : "linear",
    },
    showlegend: several && !named,
    legend: { orientation: "h", x: 0, y: -0.25, yanchor: "top" },
    hovermode: bars ? "closest" : "x unified",
    hoverlabel: { bgcolor: colours.surface, bordercolor: colours.grid, font: { color: colours.text } },
    bargap: 0.15,
    barmode: data.stacked ? "stack" : "group",
    // A finger scrolls the page; the options zoom.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    shapes: mark.shapes,
    annotations: [...mark.annotations, ...(named ? labels(data, traces, { height: height - 70, text: colours.text, logarithmic }) : [])],
  };
  const config = {
    responsive: false,
    displayModeBar: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    displaylogo: false,
    locale: "en",
  };
  return { traces, layout, config };
}
