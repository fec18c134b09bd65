// The log of a job: pausing what follows it, wrapping its lines, and keeping a page that is open for days small.

const log = document.querySelector("[data-log], [data-log-window]");
const pause = document.querySelector("[data-log-pause]");
const wrap = document.querySelector("[data-log-wrap]");
const MOST_CHARACTERS = 2_000_000;
const KEY = "nf-log-unwrapped";

const paused = () => pause?.getAttribute("aria-pressed") === "true";

function show(unwrapped) {
  log?.classList.toggle("nf-unwrapped", unwrapped);
  wrap?.setAttribute("aria-pressed", String(!unwrapped));
}

wrap?.addEventListener("click", () => {
  const unwrapped = wrap.getAttribute("aria-pressed") === "true";
  localStorage.setItem(KEY, unwrapped ? "1" : "");
  show(unwrapped);
});

pause?.addEventListener("click", () => {
  const now = !paused();
  pause.setAttribute("aria-pressed", String(now));
  const follower = log?.querySelector("[hx-get]");
  if (!now && follower) window.htmx.trigger(follower, "resume");
});

document.addEventListener("htmx:beforeRequest", (event) => {
  if (paused() && event.target.closest?.("[data-log]")) event.preventDefault();
});

document.addEventListener("htmx:afterSettle", () => {
  if (!log) return;
  // Nothing more will come: there is nothing to pause.
  if (pause && !log.querySelector("[hx-get]")) pause.hidden = true;
  let spare = log.textContent.length - MOST_CHARACTERS;
  while (spare > 0 && log.firstChild && log.childNodes.length > 2) {
    spare -= log.firstChild.textContent.length;
    log.firstChild.remove();
  }
});

// Another attempt is another log.
document.querySelector("#log-attempt")?.addEventListener("change", (event) => event.target.form.requestSubmit());

show(localStorage.getItem(KEY) === "1");
const match = document.querySelector("#match");
if (match) {
  log.scrollTop = match.offsetTop - log.clientHeight / 2;
  match.focus({ preventScroll: true });
}
