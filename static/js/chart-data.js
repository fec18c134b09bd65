// The figures behind a chart: as a table for those who cannot see it, as CSV, and smoothed.

const MOST_ROWS = 500;

const heading = ({ label, unit }) => (unit ? `${label} (${unit})` : (label ?? ""));

function columns(data) {
  const rows = new Map();
  data.series.forEach((series, column) => {
    series.x.forEach((x, index) => {
      if (!rows.has(x)) rows.set(x, Array(data.series.length).fill(null));
      rows.get(x)[column] = series.y[index];
    });
  });
  const kind = data.x.type;
  const order = kind === "category" ? () => 0 : ([one], [other]) => (one < other ? -1 : Number(one > other));
  return {
    head: [heading(data.x), ...data.series.map((series) => heading({ label: series.name, unit: data.y.unit }))],
    rows: [...rows].sort(order).map(([x, values]) => [x, ...values]),
  };
}

const figures = new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: 6 });

function shown(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? figures.format(value) : String(value);
}

export function tableOf(place, data) {
  const { head, rows } = columns(data);
  const table = document.createElement("table");
  table.className = "table table-sm";
  const top = table.createTHead().insertRow();
  for (const name of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.className = "nf-number";
    cell.textContent = name;
    top.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows.slice(-MOST_ROWS)) {
    const line = body.insertRow();
    for (const value of row) {
      const cell = line.insertCell();
      cell.className = "nf-number";
      cell.textContent = shown(value);
    }
  }
  place.replaceChildren(...markList(data), table);
}

/** What the marks mean, for those who cannot hover over them. */
function markList(data) {
  const known = (data.marks ?? []).filter(({ label, detail }) => detail || label);
  if (!known.length) return [];
  const list = document.createElement("ul");
  list.className = "nf-chart-marks";
  for (const { x, label, detail } of known) {
    const item = document.createElement("li");
    // The detail of a mark on an axis of time has its time.
    const place = detail && (data.x.type === "date" || data.x.type === "time") ? "" : `${heading(data.x)} ${shown(x)}: `;
    item.textContent = `${place}${detail || label}`.trim();
    list.append(item);
  }
  return [list];
}

function quoted(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet would run a cell that begins like a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf(data) {
  const { head, rows } = columns(data);
  const lines = [head, ...rows].map((row) => row.map(quoted).join(","));
  return new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" });
}

/** The exponential moving average with the weight of what came before, from 0 to below 1; gaps stay gaps. */
export function smoothed(values, weight) {
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    sum = weight * sum + (1 - weight) * value;
    // Without it, the first averages would begin at 0.
    total = weight * total + (1 - weight);
    return sum / total;
  });
}
