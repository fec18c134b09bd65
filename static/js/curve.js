// The loss curve: asks for the points after the last one it has, until the job has ended.

const place = document.querySelector("[data-curve]");
const PAUSE = 2000;
const points = new Map();
let last = -1;

function line(key, name, colour, mode) {
  const rows = [...points.values()].filter((point) => point[key] != null);
  return {
    x: rows.map((point) => point.step),
    y: rows.map((point) => point[key]),
    name,
    mode,
    line: { color: colour, width: 2 },
    marker: { color: colour, size: 7 },
    hovertemplate: `%{x}: %{y:.4f}<extra>${name}</extra>`,
  };
}

function draw() {
  const { loss, eval: validation, step, nothing } = place.dataset;
  const lines = [
    line("loss", loss, "#0072B2", "lines"),
    line("eval_loss", validation, "#D55E00", "lines+markers"),
  ].filter((one) => one.x.length);
  // Plotly understands no color-mix(), which the style sheet's own colours are made of.
  const text = document.documentElement.dataset.bsTheme === "dark" ? "#d3dae3" : "#3a4450";
  const grid = "rgba(128, 128, 128, 0.25)";
  const layout = {
    margin: { l: 56, r: 16, t: 8, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text, family: getComputedStyle(document.body).fontFamily },
    xaxis: { title: { text: step }, gridcolor: grid, zeroline: false, rangemode: "nonnegative" },
    yaxis: { title: { text: loss }, gridcolor: grid, zeroline: false },
    legend: { orientation: "h", x: 1, xanchor: "right", y: 1.08 },
    showlegend: lines.length > 1,
    annotations: lines.length
      ? []
      : [{ text: nothing, showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }],
  };
  window.Plotly.react(place, lines, layout, {
    responsive: true,
    displayModeBar: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    displaylogo: false,
  });
}

async function extend() {
  const answer = await fetch(`${place.dataset.curve}?after=${last}`, {
    headers: { Accept: "application/json" },
  });
  if (!answer.ok) return answer.status < 500 && answer.status !== 429;
  const { points: fresh, ended } = await answer.json();
  for (const point of fresh) {
    points.set(point.step, point);
    last = Math.max(last, point.step);
  }
  if (fresh.length || last < 0) draw();
  return ended;
}

async function follow() {
  let ended = false;
  try {
    ended = document.hidden ? false : await extend();
  } catch {
    // The server is away for a moment: try again.
  }
  if (!ended) setTimeout(follow, PAUSE);
}

document.addEventListener("themechange", draw);
draw();
follow();
