// A picture of all cards that zooms by itself, by pointer and by keyboard; the rest of the page comes from the server.

import { decode, find, stepTo } from "./topology-data.js";
import { layout, painter, placesOf } from "./topology-paint.js";

/**
 * Draws into `section` and follows the address. `marking(fleet, nodes, by)` says what each card is marked as;
 * `lines(fleet, spot)` says what a card is, as lines of text; `opened(fleet, spot)`, where there is one, gives the
 * address of the card that is chosen when nothing is below its node; `read(data, fleet)` takes what else the document
 * has; `every` is after how many milliseconds it is asked for again.
 */
export async function terrain(section, { marking, lines, opened, read, every }) {
  const { dataset: said } = section;
  const canvas = section.querySelector("canvas");
  const tip = section.querySelector(".nf-terrain-tip");
  const legend = section.querySelector(".nf-legend");
  const usual = said.usual ?? "state";
  const state = { at: said.at, by: said.by, cursor: null };
  let fleet, here, picture, paint, marks, version;

  async function load() {
    const answer = await fetch(said.terrain, { headers: { Accept: "application/json" }, cache: "no-cache" });
    if (!answer.ok) throw new Error(answer.statusText);
    const known = answer.headers.get("ETag");
    if (fleet && known && known === version) return false;
    version = known;
    const data = await answer.json();
    fleet = decode(data);
    read?.(data, fleet);
    return true;
  }

  try {
    await load();
  } catch {
    section.querySelector(".nf-terrain-wait").remove();
    section.querySelector("#terrain-hint").textContent = said.failed;
    return;
  }
  section.querySelector(".nf-terrain-wait").remove();
  canvas.hidden = false;

  function draw() {
    performance.mark("terrain-begin");
    here = find(fleet, state.at);
    const width = Math.floor(canvas.parentElement.clientWidth - 2 * parseFloat(getComputedStyle(canvas.parentElement).paddingLeft));
    marks = marking(fleet, here.nodes, state.by);
    paint = painter(canvas, marks.legend);
    picture = layout(fleet, here, width);
    paint.draw(picture, width, marks.markOf);
    performance.measure("terrain-zoom", "terrain-begin");
    legend.replaceChildren(...marks.legend.map(([key, name, count]) => {
      const item = document.createElement("li");
      const strong = document.createElement("strong");
      strong.textContent = count;
      item.append(paint.sample(key), strong, ` ${name}`);
      return item;
    }));
    tip.hidden = true;
  }

  // What the address narrows the picture by stays in it.
  function addressOf(at, by) {
    const kept = [...new URLSearchParams(said.kept ?? "")];
    const asked = [...kept, ["at", at], ["by", by === usual ? "" : by]].filter(([, value]) => value);
    const query = asked.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%3A", ":").replaceAll("%2F", "/")}`).join("&");
    return query ? `${said.address}?${query}` : said.address;
  }

  function go(at, by = state.by, push = true) {
    Object.assign(state, { at, by, cursor: null });
    const address = addressOf(at, by);
    if (push) history.pushState({ at, by }, "", address);
    draw();
    for (const one of section.querySelectorAll("[data-colour]")) {
      const colour = colourOf(one);
      one.toggleAttribute("aria-current", false);
      if (colour === by) one.setAttribute("aria-current", "true");
      one.href = addressOf(at, colour);
    }
    window.htmx.ajax("GET", address, { target: "#where", swap: "innerHTML" });
  }

  const colourOf = (link) => new URL(link.href).searchParams.get("by") ?? usual;

  function cardAt(event) {
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const box = picture.boxes.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
    if (!box) return null;
    const reach = picture.cell + 2;
    const place = placesOf(box, picture).findIndex(([cx, cy]) => x >= cx - 1 && x < cx + reach && y >= cy - 1 && y < cy + reach);
    return { box, place };
  }

  function show(spot) {
    tip.replaceChildren(...lines(fleet, spot).map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    tip.hidden = false;
    const wide = canvas.clientWidth - tip.offsetWidth;
    tip.style.left = `${canvas.offsetLeft + Math.max(0, Math.min(spot.box.x, wide))}px`;
    tip.style.top = `${canvas.offsetTop + spot.box.y + spot.box.height + 4}px`;
  }

  // Into the part below; where nothing is below, to the page of the card.
  function enter(spot) {
    if (!here.node) return go(stepTo(fleet, here.domain, spot.box.node));
    const address = spot.place >= 0 && opened?.(fleet, spot);
    if (address) location.assign(address);
  }

  canvas.addEventListener("pointermove", (event) => {
    const spot = cardAt(event);
    if (spot) show(spot);
    else tip.hidden = true;
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  canvas.addEventListener("click", (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    const title = picture.titles.find(({ x, y, text }) => event.clientY - top >= y && event.clientY - top < y + 14 && event.clientX - left >= x && event.clientX - left < x + text.length * 7);
    if (title) return go(title.domain.key);
    const spot = cardAt(event);
    if (spot) enter(spot);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && tip.hidden && here.domain.above >= 0) return go(aboveOf());
    if (event.key === "Escape") return (tip.hidden = true);
    const cursor = state.cursor ?? { box: 0, place: -1 };
    if (event.key === "Enter" && state.cursor) return enter({ box: picture.boxes[cursor.box], place: cursor.place });
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(cursor, step);
    point(cursor);
  });

  // The part around it; of several that have the same nodes the largest, as on the way down.
  function aboveOf() {
    if (here.node) return here.domain.key;
    let up = fleet.domains[here.domain.above];
    while (up.above >= 0 && fleet.domains[up.above].count === up.count) up = fleet.domains[up.above];
    return up.key;
  }

  function point(cursor) {
    paint.draw(picture, canvas.clientWidth, marks.markOf);
    const spot = { box: picture.boxes[cursor.box], place: cursor.place };
    paint.ring(picture, spot.box, spot.place);
    state.cursor = cursor;
    show(spot);
  }

  // Over the end of a node into the next one.
  function move(cursor, [down, across]) {
    const last = picture.boxes.length - 1;
    cursor.box = Math.max(0, Math.min(last, cursor.box + down));
    cursor.place += across;
    const cards = () => picture.boxes[cursor.box].node.uses.length;
    if (cursor.place >= cards() && cursor.box < last) [cursor.box, cursor.place] = [cursor.box + 1, 0];
    if (cursor.place < 0 && cursor.box > 0) [cursor.box, cursor.place] = [cursor.box - 1, picture.boxes[cursor.box - 1].node.uses.length - 1];
    cursor.place = Math.max(0, Math.min(cards() - 1, cursor.place));
  }

  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest("[data-zoom], [data-colour]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.zoom === undefined) go(state.at, colourOf(link));
    else go(link.dataset.zoom);
  });
  window.addEventListener("popstate", () => {
    const asked = new URL(location.href).searchParams;
    go(asked.get("at") ?? "", asked.get("by") ?? usual, false);
  });
  new ResizeObserver(() => draw()).observe(canvas.parentElement);
  new MutationObserver(() => draw()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });

  // Nobody looks at a hidden tab: it asks for nothing, and at once when it is looked at again.
  let next;
  async function refresh() {
    clearTimeout(next);
    if (document.hidden || !section.isConnected) return;
    try {
      const cursor = state.cursor;
      await load();
      draw();
      if (cursor && picture.boxes[cursor.box]) point(cursor);
    } finally {
      next = setTimeout(refresh, every);
    }
  }
  if (every) {
    document.addEventListener("visibilitychange", refresh);
    next = setTimeout(refresh, every);
  }
}
