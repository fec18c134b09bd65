// The playground. What was said is a list of turns, kept in this tab alone; the page shows that list.

import { BROKEN, LOGGED_OUT, Refused, call } from "./playground-call.js";
import { curl, python } from "./playground-examples.js";

const STORE = "nf-playground";
const SETTINGS = ["system", "temperature", "top_p", "max_tokens"];

const form = document.querySelector("#playground");
const log = document.querySelector("#conversation");
const { dataset: words } = document.querySelector("#playground-messages") ?? { dataset: {} };

// A turn: role (user, assistant, error), content, and for answers the model and what was measured.
let turns = [];
let running = null;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const field = (name) => form.elements[name];

function number(name) {
  const { value } = field(name);
  return value === "" || !field(name).checkValidity() ? undefined : Number(value);
}

// What is sent: without errors, and with questions that stayed without an answer joined to the next.
function messages(said) {
  const sent = [];
  if (field("system").value.trim()) sent.push({ role: "system", content: field("system").value.trim() });
  for (const { role, content } of said) {
    if (role === "error" || (role === "assistant" && !content)) continue;
    const before = sent.at(-1);
    if (role === "user" && before?.role === "user") before.content += `\n\n${content}`;
    else sent.push({ role, content });
  }
  return sent;
}

function body(said) {
  const asked = { model: form.dataset.model, messages: messages(said) };
  for (const name of ["temperature", "top_p", "max_tokens"]) {
    const value = number(name);
    if (value !== undefined) asked[name] = value;
  }
  return asked;
}

function keep() {
  const settings = Object.fromEntries(SETTINGS.map((name) => [name, field(name).value]));
  const kept = { owner: form.dataset.owner, turns, settings, draft: field("message").value };
  try {
    sessionStorage.setItem(STORE, JSON.stringify(kept));
  } catch {
    // Full or forbidden: the conversation then lives as long as the page.
  }
}

function recall() {
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(STORE));
  } catch {
    return;
  }
  // Somebody else may have logged in in this tab since.
  if (kept?.owner !== form.dataset.owner) return;
  turns = kept.turns;
  for (const name of SETTINGS) field(name).value = kept.settings[name] ?? field(name).value;
  field("message").value = kept.draft;
}

function examples() {
  const draft = field("message").value.trim();
  const said = draft ? [...turns, { role: "user", content: draft }] : turns.slice(0, lastQuestion() + 1);
  const shown = said.length ? said : [{ role: "user", content: "…" }];
  const asked = body(shown);
  document.querySelector("[data-example=curl]").textContent = curl(form.dataset.gateway, asked);
  document.querySelector("[data-example=python]").textContent = python(form.dataset.gateway, asked);
}

const lastQuestion = () => turns.findLastIndex(({ role }) => role === "user");
const seconds = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));

function measured({ figures, stopped }) {
  const parts = [];
  if (figures?.written !== undefined) parts.push(fill(words.tokens, figures));
  if (figures?.first !== undefined) parts.push(fill(words.first, { seconds: seconds(figures.first) }));
  if (figures?.speed !== undefined) parts.push(fill(words.speed, { speed: figures.speed.toFixed(1) }));
  if (figures?.total !== undefined) parts.push(fill(words.total, { seconds: seconds(figures.total) }));
  if (figures?.cut) parts.push(words.cut);
  if (stopped) parts.push(words.stopped);
  return parts.join(" · ");
}

function element(name, { text = "", ...data } = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  Object.assign(made.dataset, data);
  return made;
}

function button(text, data) {
  const made = element("button", { text, ...data });
  made.type = "button";
  made.className = "btn btn-sm";
  return made;
}

function bubble(turn) {
  const box = element("div", { role: turn.role });
  box.className = "nf-bubble";
  const name = { user: words.you, error: words.failed }[turn.role] ?? turn.model;
  box.append(element("small", { text: name }), element("span", { text: turn.content }));
  if (turn.next) box.append(element("p", { text: turn.next }));
  const told = measured(turn);
  if (told) box.append(element("small", { text: told, figures: "" }));
  return box;
}

// Only the last question and the last answer can be changed, so only they have buttons.
function acts() {
  for (const old of log.querySelectorAll("[data-acts]")) old.remove();
  if (running || !turns.length) return;
  const asked = lastQuestion();
  const place = element("div", { acts: "" });
  if (asked >= 0) place.append(button(words.retry, { retry: "" }), button(words.edit, { edit: "" }));
  if (turns.at(-1).role === "assistant") {
    const copy = button(words.copy, { copyText: turns.at(-1).content });
    copy.replaceChildren(element("span", { text: words.copy, copied: words.copied }));
    place.append(copy);
  }
  log.append(place);
}

const toEnd = () => (log.scrollTop = log.scrollHeight);
const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;

function show() {
  for (const old of log.querySelectorAll(".nf-bubble")) old.remove();
  log.append(...turns.map(bubble));
  settle();
}

function settle() {
  log.toggleAttribute("data-talking", turns.length > 0);
  document.querySelector("[data-clear]").disabled = !turns.length;
  acts();
  examples();
  keep();
  toEnd();
}

function add(turn) {
  turns.push(turn);
  const box = bubble(turn);
  log.append(box);
  return box;
}

function trouble(error) {
  if (!(error instanceof Refused)) return { content: words.offline, next: words.next };
  if (error.message === LOGGED_OUT) return { content: words.loggedOut, next: words.nextLogIn };
  if (error.message === BROKEN) return { content: words.broken, next: words.next };
  const { status, after } = error;
  const next = status === 429 && after ? fill(words["next-429After"], { seconds: after }) : words[`next-${status}`];
  return { content: error.message, next: next ?? words.next };
}

function busy(now) {
  log.setAttribute("aria-busy", String(now));
  form.querySelector("[data-stop]").hidden = !now;
  form.querySelector("[data-send]").hidden = now;
}

// Asks with all that was said so far; the last turn is the question.
async function ask() {
  const answer = { role: "assistant", content: "", model: form.dataset.model };
  const asked = body(turns);
  const box = add(answer);
  running = new AbortController();
  box.dataset.waiting = "";
  busy(true);
  settle();
  const hear = (text) => {
    const follow = atEnd();
    delete box.dataset.waiting;
    answer.content = text;
    box.querySelector("span").textContent = text;
    if (follow) toEnd();
  };
  try {
    const token = field("csrfmiddlewaretoken").value;
    const done = await call({ address: form.dataset.chat, token, body: asked, signal: running.signal, hear });
    Object.assign(answer, { content: done.text, figures: done.figures });
  } catch (error) {
    if (error.name === "AbortError") answer.stopped = true;
    else if (turns.includes(answer)) turns.push({ role: "error", ...trouble(error) });
  } finally {
    running = null;
    busy(false);
  }
  // Whoever started over has nothing to be told.
  if (turns.includes(answer)) finish(answer, box);
}

// The answer's bubble anew with what was measured, and the trouble after it; nothing else is read out again.
function finish(answer, box) {
  const failed = turns.at(-1).role === "error";
  const nothing = failed && !answer.content;
  if (nothing) turns.splice(turns.indexOf(answer), 1);
  if (nothing) box.remove();
  else box.replaceWith(bubble(answer));
  if (failed) log.append(bubble(turns.at(-1)));
  settle();
  field("message").focus({ preventScroll: true });
}

function send(event) {
  event.preventDefault();
  const content = field("message").value.trim();
  if (!content || running || form.querySelector("[data-send]").disabled) return;
  const wrong = SETTINGS.map(field).find((one) => !one.checkValidity());
  if (wrong) {
    wrong.reportValidity();
    return;
  }
  field("message").value = "";
  grow();
  add({ role: "user", content });
  ask();
}

// Everything after the last question is forgotten.
function back() {
  turns.length = lastQuestion() + 1;
  show();
}

function edit() {
  back();
  field("message").value = turns.pop().content;
  show();
  grow();
  field("message").focus();
}

function clear() {
  turns = [];
  running?.abort();
  show();
  field("message").focus();
}

// The composer is as high as what is in it; its style sheet has a limit.
function grow() {
  const area = field("message");
  area.rows = Math.min(8, Math.max(2, area.value.split("\n").length));
}

function start() {
  const served = log.querySelectorAll("[data-served]").length;
  if (!served) recall();
  busy(false);
  grow();
  if (!served) show();
  form.addEventListener("submit", send);
  form.querySelector("[data-stop]").addEventListener("click", () => running?.abort());
  document.querySelector("[data-clear]").addEventListener("click", clear);
  log.addEventListener("click", ({ target }) => {
    if (target.closest("[data-edit]")) edit();
    else if (target.closest("[data-retry]")) {
      back();
      ask();
    }
  });
  document.addEventListener("input", ({ target }) => {
    if (target.form !== form) return;
    grow();
    examples();
    keep();
  });
  field("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  addEventListener("pagehide", keep);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running) running.abort();
  });
}

if (form) start();
