// What every page has: the folding rail, copy buttons, times in the viewer's zone, logs that follow.

const zone = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: "medium",
  timeStyle: "long",
});

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.title = zone.format(new Date(time.dateTime));
  }
}

async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent.trim());
  const word = button.querySelector("[data-copied]");
  if (!word) return;
  const before = word.textContent;
  word.textContent = word.dataset.copied;
  setTimeout(() => (word.textContent = before), 2000);
}

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-toggle-rail]");
  if (toggle) {
    const open = document.body.classList.toggle("nf-rail-open");
    toggle.setAttribute("aria-expanded", String(open));
  }
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

// A log stays at its end while new lines arrive, unless its reader scrolled up.
const atEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
let follow = true;
document.addEventListener("htmx:beforeSwap", (event) => {
  const log = event.target.closest?.("[data-log]");
  if (log) follow = atEnd(log);
});
document.addEventListener("htmx:afterSettle", (event) => {
  localTimes(document);
  const log = document.querySelector("[data-log]");
  if (log && follow && event.target.closest?.("[data-log]")) log.scrollTop = log.scrollHeight;
});

// Details that were opened stay open when the part around them is refreshed.
let opened = [];
document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll("details[id][open]")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});

// Filters act at once; without scripts their button does.
document.addEventListener("change", (event) => {
  event.target.closest("form[data-submit-on-change]")?.requestSubmit();
});

localTimes(document);
for (const log of document.querySelectorAll("[data-log]")) log.scrollTop = log.scrollHeight;
