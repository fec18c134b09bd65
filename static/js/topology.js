// The page that shows who sits where.

import { terrain } from "./terrain.js";
import { marking } from "./topology-paint.js";

const section = document.querySelector("[data-terrain]");
if (section) open(section);

function open(section) {
  const { dataset: said } = section;
  const words = { ...JSON.parse(document.getElementById("terrain-words").textContent), others: said.others, nobody: said.nobody };

  function lines(fleet, { box, place }) {
    const { node } = box;
    const around = fleet.domains[node.domain];
    const head = `${node.name} · ${around.name} · ${said.whole.replace("{n}", around.whole).replace("{all}", around.count)}`;
    if (place < 0) return [head];
    const claim = fleet.claims[node.claims[place]];
    const card = [said.card.replace("{n}", place), fleet.chips[node.chips[place]], words.uses[node.uses[place]]].join(" · ");
    if (!claim) return [head, card];
    const work = claim.name || said.work.replace("{team}", fleet.teams[claim.team]);
    const since = said.since.replace("{at}", new Date(claim.since * 1000).toLocaleString(document.documentElement.lang, { timeZone: "UTC", timeZoneName: "short" }));
    return [head, card, `${work} · ${said.cards.replace("{n}", claim.cards)} · ${fleet.queues[claim.queue]} · ${since}`];
  }

  terrain(section, { marking: (fleet, nodes, by) => marking(fleet, nodes, by, words), lines });
}
