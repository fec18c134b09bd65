// The page that shows who sits where. The picture zooms by itself; the rest of the page comes from the server.

import { decode, find, stepTo } from "./topology-data.js";
import { layout, marking, painter, placesOf } from "./topology-paint.js";

const section = document.querySelector("[data-terrain]");
if (section) open(section);

async function open(section) {
  const { dataset: said } = section;
  const canvas = section.querySelector("canvas");
  const tip = section.querySelector(".nf-terrain-tip");
  const legend = section.querySelector(".nf-legend");
  const words = { ...JSON.parse(document.getElementById("terrain-words").textContent), others: said.others, nobody: said.nobody };
  const state = { at: said.at, by: said.by, cursor: null };
  let fleet;
  try {
    const answer = await fetch(said.terrain, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.statusText);
    fleet = decode(await answer.json());
  } catch {
    section.querySelector(".nf-terrain-wait").remove();
    section.querySelector("#terrain-hint").textContent = said.failed;
    return;
  }
  section.querySelector(".nf-terrain-wait").remove();
  canvas.hidden = false;

  let here, picture, paint, marks;
  function draw() {
    performance.mark("terrain-begin");
    here = find(fleet, state.at);
    const width = Math.floor(canvas.parentElement.clientWidth - 2 * parseFloat(getComputedStyle(canvas.parentElement).paddingLeft));
    marks = marking(fleet, here.nodes, state.by, words);
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

  function addressOf(at, by) {
    const asked = [["at", at], ["by", by === "state" ? "" : by]].filter(([, value]) => value);
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

  const colourOf = (link) => new URL(link.href).searchParams.get("by") ?? "state";

  function cardAt(event) {
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const box = picture.boxes.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
    if (!box) return null;
    const reach = picture.cell + 2;
    const place = placesOf(box, picture).findIndex(([cx, cy]) => x >= cx - 1 && x < cx + reach && y >= cy - 1 && y < cy + reach);
    return { box, place };
  }

  function lines({ box, place }) {
    const { node } = box;
    const around = fleet.domains[node.domain];
    const head = `${node.name} · ${around.name} · ${said.whole.replace("{n}", around.whole).replace("{all}", around.count)}`;
    if (place < 0) return [head];
    const claim = fleet.claims[node.claims[place]];
    const card = [said.card.replace("{n}", place), fleet.chips[node.chips[place]], words.uses[node.uses[place]]].join(" · ");
    if (!claim) return [head, card];
    const work = claim.name || said.work.replace("{team}", fleet.teams[claim.team]);
    const since = said.since.replace("{at}", new Date(claim.since * 1000).toLocaleString(document.documentElement.lang));
    return [head, card, `${work} · ${said.cards.replace("{n}", claim.cards)} · ${fleet.queues[claim.queue]} · ${since}`];
  }

  function show(spot) {
    tip.replaceChildren(...lines(spot).map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    tip.hidden = false;
    const wide = canvas.clientWidth - tip.offsetWidth;
    tip.style.left = `${canvas.offsetLeft + Math.max(0, Math.min(spot.box.x, wide))}px`;
    tip.style.top = `${canvas.offsetTop + spot.box.y + spot.box.height + 4}px`;
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
    if (spot && !here.node) go(stepTo(fleet, here.domain, spot.box.node));
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return (tip.hidden = true);
    const cursor = state.cursor ?? { box: 0, place: -1 };
    if (event.key === "Enter" && state.cursor && !here.node) return go(stepTo(fleet, here.domain, picture.boxes[cursor.box].node));
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(cursor, step);
    paint.draw(picture, canvas.clientWidth, marks.markOf);
    const spot = { box: picture.boxes[cursor.box], place: cursor.place };
    paint.ring(picture, spot.box, spot.place);
    state.cursor = cursor;
    show(spot);
  });

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
    go(asked.get("at") ?? "", asked.get("by") ?? "state", false);
  });
  new ResizeObserver(() => draw()).observe(canvas.parentElement);
  new MutationObserver(() => draw()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
}
