// The picture: blocks of nodes on a canvas, each card a cell. Colour is never alone: every mark has a pattern.

const MARKS = {
  h: { colour: "--nf-series-1", pattern: "full" },
  f: { colour: "--nf-grey", pattern: "empty" },
  g: { colour: "--nf-series-2", pattern: "rising" },
  k: { colour: "--nf-yellow", pattern: "dots" },
  n: { colour: "--nf-grey", pattern: "level" },
  b: { colour: "--nf-red", pattern: "cross" },
};
const PATTERNS = ["full", "rising", "dots", "level", "upright", "cross"];
const MOST_COLOURS = 6;
const SIZES = [[12, 26], [40, 18], [130, 12], [420, 8], [Infinity, 5]];
const [TITLE, LABEL, GAP, ROWS] = [15, 13, 12, 16];

function token(style, name) {
  return style.getPropertyValue(name).trim();
}

// A tile of so many pixels that repeats; the ratio of the screen is in it already.
function tile(context, { colour, pattern }, surface, ratio) {
  const size = Math.round(4 * ratio);
  const made = document.createElement("canvas");
  made.width = made.height = size;
  const pen = made.getContext("2d");
  pen.fillStyle = pattern === "full" ? colour : surface;
  pen.fillRect(0, 0, size, size);
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = size / 2.6;
  pen.beginPath();
  const lines = {
    rising: [[-size, size, size, -size], [0, size * 2, size * 2, 0], [-size / 2, size * 1.5, size * 1.5, -size / 2]],
    level: [[0, size / 2, size, size / 2]],
    upright: [[size / 2, 0, size / 2, size]],
    cross: [[0, 0, size, size], [0, size, size, 0]],
  }[pattern];
  if (pattern === "dots") pen.fillRect(size / 4, size / 4, size / 2, size / 2);
  for (const [x, y, to, down] of lines ?? []) {
    pen.moveTo(x, y);
    pen.lineTo(to, down);
  }
  pen.stroke();
  return { fill: context.createPattern(made, "repeat"), edge: colour, tile: made };
}

// What each card is marked as, and what the marks mean: [[key, name, cards, mark]], the most cards first.
export function marking(fleet, nodes, by, words) {
  if (by === "state") {
    const counts = new Map();
    for (const node of nodes) for (const use of node.uses) counts.set(use, (counts.get(use) ?? 0) + 1);
    const legend = Object.keys(MARKS).map((use) => [use, words.uses[use], counts.get(use) ?? 0, MARKS[use]]);
    return { legend: legend.filter(([, , count]) => count), markOf: (node, place) => node.uses[place] };
  }
  const column = by === "chip" ? null : by;
  const of = (node, place) => (column ? fleet.claims[node.claims[place]]?.[column] ?? -1 : node.chips[place]);
  const counts = new Map();
  for (const node of nodes) for (let place = 0; place < node.uses.length; place += 1) counts.set(of(node, place), (counts.get(of(node, place)) ?? 0) + 1);
  const names = { queue: fleet.queues, team: fleet.teams, chip: fleet.chips }[by];
  const ranked = [...counts.keys()].filter((one) => one >= 0).sort((a, b) => counts.get(b) - counts.get(a));
  const shown = new Map(ranked.slice(0, MOST_COLOURS).map((one, rank) => [one, rank]));
  const legend = [...shown].map(([one, rank]) => [rank, names[one], counts.get(one), { colour: `--nf-series-${rank + 1}`, pattern: PATTERNS[rank] }]);
  const rest = ranked.slice(MOST_COLOURS).reduce((sum, one) => sum + counts.get(one), 0);
  if (rest) legend.push(["rest", words.others, rest, { colour: "--nf-grey", pattern: "full" }]);
  if (counts.has(-1)) legend.push([-1, words.nobody, counts.get(-1), { colour: "--nf-grey", pattern: "empty" }]);
  const markOf = (node, place) => {
    const one = of(node, place);
    return one < 0 ? -1 : shown.get(one) ?? "rest";
  };
  return { legend, markOf };
}

function widthOf(node, cell) {
  const step = cell + (cell > 5 ? 2 : 1);
  return node.uses.length * step + node.gaps.length * Math.max(2, cell / 3);
}

// Boxes of nodes and titles of domains, from the top left on; heights and widths in pixels of the page.
export function layout(fleet, { domain, nodes, node }, width) {
  const cell = node ? SIZES[0][1] : SIZES.find(([most]) => nodes.length <= most)[1];
  const labelled = cell >= 12;
  const row = cell + (cell > 5 ? 4 : 2) + (labelled ? LABEL : 0);
  const [boxes, titles] = [[], []];
  const across = (one) => Math.max(widthOf(one, cell), labelled ? 72 : 0) + GAP / 2;

  function ofNodes(own, left, top, room, all) {
    const column = Math.max(...own.map(across));
    const most = Math.max(1, Math.floor(room / column));
    const columns = all ? most : Math.min(most, Math.ceil(own.length / ROWS));
    const rows = Math.ceil(own.length / columns);
    own.forEach((one, index) => {
      const [x, y] = [left + Math.floor(index / rows) * column, top + (index % rows) * row];
      boxes.push({ node: one, x, y, width: column, height: row });
    });
    return [Math.min(columns, Math.ceil(own.length / rows)) * column, rows * row];
  }

  function ofDomain(one, left, top, room, depth) {
    let [x, y, tall, wide] = [left, top, 0, 0];
    if (depth) {
      titles.push({ domain: one, x, y, text: one.name });
      y += TITLE;
    }
    const start = y;
    if (one.own.length) {
      const [w, h] = ofNodes(one.own, x, y, room, !depth);
      [x, tall, wide] = [x + w + GAP, h, w];
    }
    for (const part of one.below.filter((each) => each.count)) {
      const mark = [boxes.length, titles.length];
      let [w, h] = ofDomain(part, x, y, room, depth + 1);
      if (x > left && x - left + w > room) {
        [boxes.length, titles.length] = mark;
        [x, y, tall] = [left, y + tall + GAP, 0];
        [w, h] = ofDomain(part, x, y, room, depth + 1);
      }
      wide = Math.max(wide, x - left + w);
      [x, tall] = [x + w + GAP, Math.max(tall, h)];
    }
    const least = depth ? one.name.length * 7 : 0;
    return [Math.max(wide, least), y - start + tall + (depth ? TITLE : 0)];
  }

  const [, height] = node ? ofNodes(nodes, 0, 0, width, true) : ofDomain(domain, 0, 0, width, 0);
  return { boxes, titles, height, cell, labelled };
}

export function placesOf(box, { cell, labelled }) {
  const step = cell + (cell > 5 ? 2 : 1);
  const top = box.y + (labelled ? LABEL : 0);
  let shift = 0;
  return Array.from(box.node.uses, (_, place) => {
    if (box.node.gaps.includes(place)) shift += Math.max(2, cell / 3);
    return [box.x + place * step + shift, top];
  });
}

export function painter(canvas, legend) {
  const context = canvas.getContext("2d");
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(canvas);
  const [surface, text, quiet] = ["--nf-chart-surface", "--nf-chart-text", "--nf-quiet"].map((name) => token(style, name));
  const tiles = new Map(legend.map(([key, , , mark]) => [key, tile(context, { ...mark, colour: token(style, mark.colour) }, surface, ratio)]));

  // Cells of one mark are drawn with one fill: ten thousand changes of colour would take longer than the rest.
  function draw(picture, width, markOf) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(picture.height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${picture.height}px`;
    const size = Math.round(picture.cell * ratio);
    const cells = new Map([...tiles.keys()].map((key) => [key, []]));
    for (const box of picture.boxes) {
      placesOf(box, picture).forEach(([x, y], place) => cells.get(markOf(box.node, place))?.push(Math.round(x * ratio), Math.round(y * ratio)));
    }
    for (const [key, places] of cells) {
      const { fill, edge } = tiles.get(key);
      context.beginPath();
      for (let at = 0; at < places.length; at += 2) context.rect(places[at] + 0.5, places[at + 1] + 0.5, size - 1, size - 1);
      context.fillStyle = fill;
      context.fill();
      context.strokeStyle = edge;
      context.lineWidth = 1;
      context.stroke();
    }
    words(picture);
  }

  function words(picture) {
    context.textBaseline = "top";
    const font = getComputedStyle(document.body).fontFamily;
    context.fillStyle = text;
    context.font = `${Math.round(12 * ratio)}px ${font}`;
    for (const { x, y, text: said } of picture.titles) context.fillText(said, x * ratio, y * ratio);
    if (!picture.labelled) return;
    context.fillStyle = quiet;
    context.font = `${Math.round(11 * ratio)}px ${font}`;
    for (const { node, x, y, width } of picture.boxes) context.fillText(node.name, x * ratio, y * ratio, (width - 4) * ratio);
  }

  function ring(picture, box, place) {
    const [x, y] = placesOf(box, picture)[place];
    context.strokeStyle = text;
    context.lineWidth = 2 * ratio;
    context.strokeRect((x - 1) * ratio, (y - 1) * ratio, (picture.cell + 2) * ratio, (picture.cell + 2) * ratio);
  }

  // The same mark, as large as a legend has it.
  function sample(key) {
    const made = document.createElement("canvas");
    made.width = made.height = Math.round(14 * ratio);
    made.className = "nf-terrain-mark";
    const pen = made.getContext("2d");
    pen.fillStyle = pen.createPattern(tiles.get(key).tile, "repeat");
    pen.fillRect(0, 0, made.width, made.height);
    pen.strokeStyle = tiles.get(key).edge;
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(0, 0, made.width, made.height);
    return made;
  }
  return { draw, ring, sample };
}
