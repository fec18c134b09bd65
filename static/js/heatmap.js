// The heat map of the fleet: every card by one of its figures.

import { marking, read } from "./heatmap-scale.js";
import { terrain } from "./terrain.js";
import { clusterOf } from "./topology-data.js";

const EVERY = 10000;
const section = document.querySelector("[data-terrain]");
if (section) open(section);

function open(section) {
  const { dataset: said } = section;
  const words = { ...JSON.parse(document.getElementById("terrain-words").textContent), old: said.old, none: said.none };

  function ageOf(fleet, node, place) {
    const age = fleet.ageOf(node, place);
    if (age === null) return said.none;
    return age > fleet.fresh ? said.aged.replace("{n}", Math.round(age / 60)) : said.fresh.replace("{n}", age);
  }

  function lines(fleet, { box, place }) {
    const { node } = box;
    const head = `${node.name} · ${fleet.domains[node.domain].name}`;
    if (place < 0) return [head];
    const card = [said.card.replace("{n}", node.indices[place]), fleet.chips[node.chips[place]], words.uses[node.uses[place]]];
    const figures = Object.entries(words.heats)
      .map(([heat, { label, unit }]) => [label, node.figures[heat]?.[place], unit])
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([label, value, unit]) => `${label} ${value}${unit}`);
    return [head, card.join(" · "), ...(figures.length ? [figures.join(" · ")] : []), ageOf(fleet, node, place)];
  }

  function opened(fleet, { box, place }) {
    const asked = new URLSearchParams({ cluster: clusterOf(fleet, box.node), node: box.node.name, index: box.node.indices[place] });
    return `${said.cardAddress}?${asked}`;
  }

  terrain(section, { marking: (fleet, nodes, by) => marking(fleet, nodes, by, words), lines, opened, read, every: EVERY });
}
