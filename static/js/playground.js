// The playground: sends the conversation, writes the streamed answer as it comes, measures it.

const form = document.querySelector("#playground");
const conversation = document.querySelector("#conversation");
const messages = [];
let call = null;

function bubble(role, name, text) {
  const box = document.createElement("div");
  box.className = "nf-bubble";
  box.dataset.role = role;
  const small = document.createElement("small");
  small.textContent = name;
  const body = document.createElement("span");
  body.textContent = text;
  box.append(small, body);
  conversation.append(box);
  conversation.scrollTop = conversation.scrollHeight;
  return { box, body, small };
}

async function* events(stream) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of pieces(stream)) {
    rest += decoder.decode(chunk, { stream: true });
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((row) => row.startsWith("data:"));
      if (data.length) yield data.map((row) => row.slice(5).trimStart()).join("\n");
    }
  }
}

async function* pieces(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

const number = (name) => {
  const value = form.elements[name].value;
  return value === "" ? undefined : Number(value);
};

async function refusal(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}

async function ask(reply) {
  const began = performance.now();
  let first = null;
  let usage = null;
  let text = "";
  let complete = false;
  const answer = await fetch(form.dataset.chat, {
    method: "POST",
    signal: call.signal,
    headers: {
      "Content-Type": "application/json",
      "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
    },
    body: JSON.stringify({
      messages,
      temperature: number("temperature"),
      top_p: number("top_p"),
      max_tokens: number("max_tokens"),
    }),
  });
  if (!answer.ok) throw new Error(await refusal(answer));
  for await (const data of events(answer.body)) {
    if (data === "[DONE]") {
      complete = true;
      continue;
    }
    const content = JSON.parse(data);
    if (content.error) throw new Error(content.error.message);
    const piece = content.choices?.[0]?.delta?.content ?? "";
    if (piece && first === null) first = performance.now() - began;
    text += piece;
    usage = content.usage ?? usage;
    reply.body.textContent = text;
    conversation.scrollTop = conversation.scrollHeight;
  }
  if (!complete) throw new Error(form.dataset.broken);
  messages.push({ role: "assistant", content: text });
  const { tokens, first: firstWord, total } = form.dataset;
  const figures = [`${total} ${((performance.now() - began) / 1000).toFixed(2)} s`];
  if (first !== null) figures.unshift(`${firstWord} ${(first / 1000).toFixed(2)} s`);
  if (usage) figures.unshift(`${usage.prompt_tokens} + ${usage.completion_tokens} ${tokens}`);
  const small = document.createElement("small");
  small.dataset.figures = "";
  small.textContent = figures.join(" · ");
  reply.box.append(small);
}

async function send(event) {
  event.preventDefault();
  const text = form.elements.message.value.trim();
  if (!text || call) return;
  messages.push({ role: "user", content: text });
  bubble("user", form.dataset.you, text);
  form.elements.message.value = "";
  const reply = bubble("assistant", form.dataset.model, "");
  call = new AbortController();
  const stop = form.querySelector("[data-stop]");
  stop.hidden = false;
  try {
    await ask(reply);
  } catch (error) {
    if (error.name !== "AbortError") {
      // The question may be asked again, so it must not stay in the conversation twice.
      messages.pop();
      form.elements.message.value = text;
      reply.box.classList.add("text-danger");
      reply.box.dataset.role = "error";
      reply.body.textContent += ` ${error.message}`;
    } else {
      messages.push({ role: "assistant", content: reply.body.textContent });
    }
  } finally {
    call = null;
    stop.hidden = true;
    form.elements.message.focus();
  }
}

if (form) {
  form.addEventListener("submit", send);
  form.querySelector("[data-stop]").addEventListener("click", () => call?.abort());
  document.querySelector("[data-clear]").addEventListener("click", () => {
    call?.abort();
    messages.length = 0;
    conversation.replaceChildren();
  });
  form.elements.message.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}
