// Uploading a dataset: drop a file, hear at once what is wrong with it, see how far the upload is.
// Without this script the form is sent as any other.

const form = document.querySelector("#upload");
const file = form.elements.file;
const part = (name) => form.querySelector(`[data-${name}]`);
const drop = part("drop");
const chosen = part("chosen");
const findings = part("findings");
const sending = part("sending");
const bar = sending.querySelector("progress");
const said = part("said");
const refusal = part("refusal");
const abort = part("abort");
const words = form.dataset;

//: Bytes that are looked at before the file is sent.
const LOOKED_AT = 1 << 20;
const LINES = /\.(jsonl|ndjson|csv)$/i;
const LINE_FEED = 10;
const QUOTE = 34;

const language = document.documentElement.lang;
const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
function size(bytes) {
  const step = Math.min(Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(1024)), units.length - 1);
  const shape = { style: "unit", unit: units[step], unitDisplay: "short", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(language, shape).format(bytes / 1024 ** step);
}
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_all, name) => values[name]);

function refuse(text) {
  refusal.textContent = text;
  refusal.hidden = !text;
}

function judge() {
  const [one] = file.files;
  chosen.textContent = one ? `${one.name} (${size(one.size)})` : chosen.dataset.nothing;
  let wrong = "";
  if (one && one.size > Number(words.limit)) wrong = fill(words.tooLarge, { name: one.name, size: size(one.size) });
  else if (one && !one.size) wrong = fill(words.empty, { name: one.name });
  file.setCustomValidity(wrong);
  refuse(wrong);
  return one && !wrong ? one : null;
}

// Up to the last line that is whole: within quotes, a line of CSV goes on.
async function beginning(one) {
  if (one.size <= LOOKED_AT) return one;
  if (!LINES.test(one.name)) return null;
  const bytes = new Uint8Array(await one.slice(0, LOOKED_AT).arrayBuffer());
  const csv = /\.csv$/i.test(one.name);
  let quoted = false;
  let end = 0;
  bytes.forEach((byte, index) => {
    if (byte === QUOTE && csv) quoted = !quoted;
    else if (byte === LINE_FEED && !quoted) end = index + 1;
  });
  return end ? one.slice(0, end) : null;
}

let looks = 0;
async function look() {
  const one = judge();
  const turn = ++looks;
  findings.hidden = true;
  if (!one) return;
  const start = await beginning(one);
  if (!start || turn !== looks) return;
  findings.hidden = false;
  findings.textContent = words.looking;
  const body = new FormData(form);
  body.set("file", start, one.name);
  if (start !== one) body.set("part", "1");
  try {
    const answer = await fetch(words.check, { method: "POST", body });
    if (turn !== looks) return;
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    findings.innerHTML = await answer.text();
  } catch {
    // The upload itself tells what is wrong.
    if (turn === looks) findings.hidden = true;
  }
}

let waiting = 0;
form.addEventListener("input", ({ target }) => {
  if (target === file) return;
  clearTimeout(waiting);
  waiting = setTimeout(look, 500);
});
file.addEventListener("change", look);

drop.hidden = false;
const over = (on) => drop.toggleAttribute("data-over", on);
form.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  over(true);
});
form.addEventListener("dragleave", ({ relatedTarget }) => over(form.contains(relatedTarget)));
form.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  over(false);
  file.files = event.dataTransfer.files;
  look();
});

function busy(on) {
  sending.hidden = !on;
  abort.hidden = !on;
  form.querySelector("button.btn-primary").disabled = on;
}

function progressed({ loaded, total, lengthComputable }) {
  if (!lengthComputable) return;
  const percent = Math.floor((100 * loaded) / total);
  if (bar.value !== percent) said.textContent = fill(words.sent, { percent, size: size(total) });
  bar.value = percent;
}

function answered(request) {
  busy(false);
  if (request.status === 200 && request.responseType === "" && request.getResponseHeader("Content-Type")?.includes("json")) {
    location.assign(JSON.parse(request.responseText).to);
    return;
  }
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  const verdict = page.querySelector("#verdict");
  const wrong = [...page.querySelectorAll("#upload .invalid-feedback, #upload > .alert, main .alert, main h1 + p")];
  document.querySelector("#verdict").replaceChildren(...(verdict?.childNodes ?? []));
  if (!verdict?.textContent.trim()) refuse(wrong.map((one) => one.textContent.trim()).join(" ") || words.broken);
  const told = document.querySelector("#verdict");
  if (told.textContent.trim()) {
    findings.hidden = true;
    told.focus();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  refuse("");
  const request = new XMLHttpRequest();
  request.open("POST", location.href);
  request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
  request.upload.addEventListener("progress", progressed);
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    said.textContent = words.checking;
  });
  request.addEventListener("load", () => answered(request));
  request.addEventListener("error", () => {
    busy(false);
    refuse(words.broken);
  });
  request.addEventListener("abort", () => busy(false));
  abort.onclick = () => request.abort();
  bar.value = 0;
  busy(true);
  request.send(new FormData(form));
});
look();
