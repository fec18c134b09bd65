// Forms are sent once, and with a token that is still good.

const TOKEN = "csrfmiddlewaretoken";
const ONCE = "once";
const sent = new Set();

function cookie(name) {
  const found = document.cookie.split("; ").find((one) => one.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}

// Whoever logged in again in another tab has a new token; the forms that are open here have the old one.
function renew({ target: form }) {
  const token = cookie("csrftoken");
  if (token && form.elements[TOKEN]) form.elements[TOKEN].value = token;
}

// After going back the browser may ask for the page anew, but what was filled in is there again: the form is
// the one that was sent, and bears its token.
function remember(form) {
  const once = form.elements[ONCE]?.value;
  if (once) history.replaceState({ ...history.state, sent: { ...history.state?.sent, [form.getAttribute("action")]: once } }, "");
}

function recall() {
  if (performance.getEntriesByType("navigation")[0]?.type !== "back_forward") return;
  for (const field of document.querySelectorAll(`input[name="${ONCE}"]`)) {
    field.value = history.state?.sent?.[field.form.getAttribute("action")] ?? field.value;
  }
}

function release() {
  for (const form of sent) {
    form.querySelector("button[aria-busy]")?.removeAttribute("aria-busy");
  }
  sent.clear();
}

// Before anybody reads it, hence on the way down.
document.addEventListener("submit", renew, { capture: true });

document.addEventListener("submit", (event) => {
  const form = event.target;
  // A field may be called "method" too, and would hide the property.
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (sent.has(form)) {
    event.preventDefault();
    return;
  }
  sent.add(form);
  remember(form);
  event.submitter?.setAttribute("aria-busy", "true");
});

document.addEventListener("htmx:configRequest", ({ detail }) => {
  const token = cookie("csrftoken");
  if (token && detail.verb !== "get" && detail.parameters[TOKEN]) detail.parameters[TOKEN] = token;
});

// A page that comes back from the browser's memory, or whose sending was stopped, may be sent again.
addEventListener("pageshow", release);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") release();
});
recall();
