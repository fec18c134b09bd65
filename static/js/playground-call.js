// One call of the playground: sends a conversation, hands each piece of the answer on, measures it.

// What went wrong, with the status by which the page says what to do next.
export class Refused extends Error {
  constructor(message, { status = 0, after = "" } = {}) {
    super(message);
    this.status = status;
    this.after = after;
  }
}

export const BROKEN = "broken";
export const LOGGED_OUT = "logged-out";

async function* lines(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const parts = rest.split(/\r?\n/);
    rest = parts.pop();
    yield* parts;
  }
}

// An event ends with an empty line; its data may have several.
async function* events(stream) {
  let data = [];
  for await (const line of lines(stream)) {
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    else if (line === "" && data.length) {
      yield data.join("\n");
      data = [];
    }
  }
}

async function refusal(answer) {
  const after = answer.headers.get("Retry-After") ?? "";
  try {
    return new Refused((await answer.json()).error.message, { status: answer.status, after });
  } catch {
    return new Refused(`${answer.status} ${answer.statusText}`, { status: answer.status, after });
  }
}

// Seconds and tokens: first and last are those of the first and last piece of text.
function figures({ began, first, last, usage, cut }) {
  const written = usage?.completion_tokens;
  const writing = (last - first) / 1000;
  return {
    read: usage?.prompt_tokens,
    written,
    first: first === null ? undefined : (first - began) / 1000,
    speed: written > 1 && writing > 0 ? (written - 1) / writing : undefined,
    total: (performance.now() - began) / 1000,
    cut,
  };
}

// `hear` gets the text so far with each piece. Answers with text and figures; throws Refused, or AbortError
// where `signal` ended it.
export async function call({ address, token, body, signal, hear }) {
  const seen = { began: performance.now(), first: null, last: null, usage: null, cut: false };
  let text = "";
  let complete = false;
  const answer = await fetch(address, {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify(body),
  });
  // Whoever is logged out is led to a page.
  if (answer.redirected) throw new Refused(LOGGED_OUT, { status: 401 });
  if (!answer.ok) throw await refusal(answer);
  for await (const data of events(answer.body)) {
    if (data === "[DONE]") {
      complete = true;
      break;
    }
    const content = JSON.parse(data);
    if (content.error) throw new Refused(content.error.message, { status: content.error.status ?? 0 });
    const [choice] = content.choices ?? [];
    const piece = choice?.delta?.content ?? "";
    if (piece) {
      seen.last = performance.now();
      seen.first ??= seen.last;
      text += piece;
      hear(text);
    }
    seen.cut ||= choice?.finish_reason === "length";
    seen.usage = content.usage ?? seen.usage;
  }
  if (!complete) throw new Refused(BROKEN);
  return { text, figures: figures(seen) };
}
