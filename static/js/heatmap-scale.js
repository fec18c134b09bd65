// What a card is coloured by: its state, or a figure in steps from little to much.

const STATES = {
  h: { colour: "--nf-series-1", pattern: "full" },
  f: { colour: "--nf-grey", pattern: "empty" },
  n: { colour: "--nf-grey", pattern: "level" },
  u: { colour: "--nf-yellow", pattern: "dots" },
  i: { colour: "--nf-red", pattern: "cross" },
};
const OLD = { colour: "--nf-yellow", pattern: "dots" };
const NONE = { colour: "--nf-grey", pattern: "empty" };

/** Figures of the document: seconds since a card was measured, and its values by name, the node's cards in order. */
export function read(data, fleet) {
  const came = Date.now();
  fleet.nodes.forEach((node, number) => {
    const [, , , , , , , indices, ages, figures] = data.nodes[number];
    node.indices = indices || Array.from(node.uses, (_, place) => place);
    node.ages = ages;
    node.figures = Object.fromEntries(data.heats.map((heat, place) => [heat, figures[place]]));
  });
  fleet.fresh = data.fresh;
  // By this machine's clock: how it differs from the server's does not matter.
  fleet.ageOf = (node, place) => {
    const age = node.ages[place];
    return age === null || age === undefined ? null : age + Math.floor((Date.now() - came) / 1000);
  };
  return fleet;
}

function legendOf(counts, edges, unit) {
  return edges.map((edge, step) => {
    const least = step ? edges[step - 1] : null;
    const name = least === null ? `< ${edge}${unit}` : `${least}–${edge}${unit}`;
    return [step, name, counts.get(step) ?? 0, { colour: `--nf-heat-${step + 1}`, pattern: "full" }];
  }).concat([[edges.length, `≥ ${edges.at(-1)}${unit}`, counts.get(edges.length) ?? 0, { colour: `--nf-heat-${edges.length + 1}`, pattern: "full" }]]);
}

/** What each card is marked as, and what the marks mean: [[key, name, cards, mark]]. */
export function marking(fleet, nodes, by, words) {
  const scale = words.heats[by];
  const markOf = scale ? (node, place) => stepOf(fleet, node, place, by, scale.edges) : (node, place) => node.uses[place];
  const counts = new Map();
  for (const node of nodes) {
    for (let place = 0; place < node.uses.length; place += 1) {
      const mark = markOf(node, place);
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    }
  }
  if (!scale) {
    const legend = Object.keys(STATES).map((use) => [use, words.uses[use], counts.get(use) ?? 0, STATES[use]]);
    return { legend, markOf };
  }
  const rest = [["old", words.old, counts.get("old") ?? 0, OLD], ["none", words.none, counts.get("none") ?? 0, NONE]];
  return { legend: [...legendOf(counts, scale.edges, scale.unit), ...rest.filter(([, , count]) => count)], markOf };
}

function stepOf(fleet, node, place, by, edges) {
  const value = node.figures[by]?.[place];
  if (value === null || value === undefined) return "none";
  if (fleet.ageOf(node, place) > fleet.fresh) return "old";
  const step = edges.findIndex((edge) => value < edge);
  return step < 0 ? edges.length : step;
}
