// The bell asks now and then whether something is new: not while nobody looks, less often while nobody answers.

const EVERY = 30_000;
const LONGEST = 10 * 60_000;
const STOP_POLLING = 286;

const bell = document.querySelector("[data-bell]");
let pause = EVERY;
let timer = null;
let stopped = false;

function plan() {
  clearTimeout(timer);
  if (!stopped) timer = setTimeout(ask, pause);
}

function ask() {
  if (document.hidden) return; // The page that comes into view again asks at once.
  bell.dispatchEvent(new CustomEvent("bell-due"));
}

function heard(event) {
  if (event.detail.elt !== bell) return;
  const { status } = event.detail.xhr;
  stopped = status === STOP_POLLING || status === 401 || status === 403;
  pause = status >= 200 && status < 300 ? EVERY : Math.min(pause * 2, LONGEST);
  plan();
}

if (bell) {
  document.addEventListener("htmx:afterRequest", heard);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || stopped) return;
    clearTimeout(timer);
    ask();
  });
  // Should the first request be over before this runs.
  plan();
}
