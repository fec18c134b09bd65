// What every page has: the drawer, menus, copy buttons, lists, logs that follow.

// On narrow screens the sidebar is a drawer.
const opener = document.querySelector(".nf-drawer-open");
function drawer(open) {
  document.body.classList.toggle("nf-sidebar-open", open);
  opener?.setAttribute("aria-expanded", String(open));
  if (open) document.querySelector("#sidebar a")?.focus();
}

// What scrolls sideways can be scrolled with the keyboard too.
function reachable() {
  for (const box of document.querySelectorAll(".table-responsive:not([role])")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

async function copy(button) {
  const { copy: source, copyText } = button.dataset;
  await navigator.clipboard.writeText(copyText ?? document.querySelector(source).textContent.trim());
  const word = button.querySelector("[data-copied]") ?? button.querySelector("code");
  const said = word?.dataset.copied ?? button.dataset.copied;
  if (!word || word.dataset.before) return;
  word.dataset.before = word.textContent;
  word.textContent = said;
  setTimeout(() => {
    word.textContent = word.dataset.before;
    delete word.dataset.before;
  }, 1500);
}

document.addEventListener("click", (event) => {
  const { target } = event;
  if (target.closest(".nf-drawer-open")) drawer(true);
  else if (target.closest(".nf-drawer-close") || target === document.body) drawer(false);
  for (const menu of document.querySelectorAll("details.nf-menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
  const button = target.closest("[data-copy], [data-copy-text]");
  if (button) copy(button);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.nf-menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (document.body.classList.contains("nf-sidebar-open")) {
    drawer(false);
    opener.focus();
  }
});

// A log stays at its end while new lines arrive, unless its reader scrolled up.
const atEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
let follow = true;
document.addEventListener("htmx:beforeSwap", (event) => {
  const log = event.target.closest?.("[data-log]");
  if (log) follow = atEnd(log);
});
document.addEventListener("htmx:afterSettle", (event) => {
  reachable();
  const log = document.querySelector("[data-log]");
  if (log && follow && event.target.closest?.("[data-log]")) log.scrollTop = log.scrollHeight;
});

// Details that were opened stay open, and rows stay chosen, when the part around them is refreshed.
let opened = [];
let picked = [];
document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll("details[id][open]")].map((details) => details.id);
  picked = [...document.querySelectorAll(".nf-row-checkbox [name=uid]:checked")].map((box) => box.value);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const box of document.querySelectorAll(".nf-row-checkbox [name=uid]")) box.checked = picked.includes(box.value);
});

// Filters act at once; without scripts their button does. What is empty stays out of the address.
document.addEventListener("change", (event) => {
  const { target } = event;
  target.closest("form[data-submit-on-change]")?.requestSubmit();
  if (target.matches("[data-pick-all]")) {
    for (const box of target.closest("table").querySelectorAll(".nf-row-checkbox [name=uid]")) box.checked = target.checked;
  }
});
document.addEventListener("formdata", (event) => {
  if (!event.target.matches("form[data-submit-on-change]")) return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

reachable();
addEventListener("resize", reachable);
for (const log of document.querySelectorAll("[data-log]")) log.scrollTop = log.scrollHeight;

// What refreshes itself waits while nobody can see it.
document.addEventListener("htmx:beforeRequest", (event) => {
  const polls = event.detail.elt.getAttribute("hx-trigger")?.startsWith("every");
  if (polls && document.hidden) event.preventDefault();
});
