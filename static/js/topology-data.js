// The fleet as `/topology/cards.json` has it, as things that know each other.
//
// Nodes come domain by domain, each domain before those below it: so the nodes of every domain are neighbours,
// and a domain is known by the first of them and how many they are.

const spread = (runs) => {
  const numbers = [];
  for (let place = 0; place < runs.length; place += 2) {
    for (let count = runs[place + 1]; count > 0; count -= 1) numbers.push(runs[place]);
  }
  return numbers;
};

export function decode(data) {
  const domains = data.domains.map(([kind, name, key, above], number) => ({
    kind, name, key, number, above, below: [], first: Infinity, count: 0, own: [], whole: 0,
  }));
  for (const one of domains) if (one.above >= 0) domains[one.above].below.push(one);
  const claims = data.claims.map(([queue, team, cards, since, kind, uid, name]) => ({
    queue, team, cards, since, kind, uid, name,
  }));
  const nodes = data.nodes.map(([name, domain, chips, uses, held, gaps, fragments], number) => ({
    name, domain, number, uses, gaps, fragments: fragments / 10,
    chips: spread(chips),
    claims: spread(held),
    whole: /^[fg]/.test(uses) && /^[fgb]+$/.test(uses),
  }));
  for (const node of nodes) {
    domains[node.domain].own.push(node);
    for (let at = node.domain; at >= 0; at = domains[at].above) {
      const domain = domains[at];
      domain.first = Math.min(domain.first, node.number);
      domain.count += 1;
      domain.whole += node.whole ? 1 : 0;
    }
  }
  return { domains, nodes, claims, chips: data.chips, queues: data.queues, teams: data.teams };
}

// What is at an address: a domain, or a node and its domain.
export function find(fleet, key) {
  const domain = fleet.domains.find((one) => one.key === key);
  if (domain) return { domain, nodes: fleet.nodes.slice(domain.first, domain.first + domain.count) };
  const [kind, path = ""] = key.split(/:(.*)/s);
  const [cluster, name] = path.split(/\/(.*)/s);
  const node = kind === "node" && fleet.nodes.find((one) => one.name === name && clusterOf(fleet, one) === cluster);
  return node ? { domain: fleet.domains[node.domain], node, nodes: [node] } : find(fleet, "");
}

export function clusterOf(fleet, node) {
  let domain = fleet.domains[node.domain];
  while (domain.kind !== "cluster") domain = fleet.domains[domain.above];
  return domain.name;
}

export const keyOf = (fleet, node) => `node:${clusterOf(fleet, node)}/${node.name}`;

// The part of the domain that the node is in: the next one down that is not all of it, or the node itself.
export function stepTo(fleet, domain, node) {
  const way = [];
  for (let at = node.domain; at >= 0 && at !== domain.number; at = fleet.domains[at].above) way.unshift(fleet.domains[at]);
  const next = way.find((one) => one.count < domain.count) ?? way.at(-1);
  return next?.key ?? keyOf(fleet, node);
}
