// Native dialogs before acts that cannot be undone. Esc, focus inside and its return are the browser's own.

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens-dialog]");
  if (opener) {
    const dialog = opener.parentElement.querySelector("dialog");
    dialog.showModal();
    // What is destroyed must not be one press of Enter away.
    (dialog.querySelector("input:not([type=hidden])") ?? dialog.querySelector("[data-closes-dialog]"))?.focus();
    return;
  }
  const dialog = event.target.closest("dialog.nf-dialog");
  if (!dialog) return;
  const outside = event.target === dialog && !within(dialog, event);
  if (outside || event.target.closest("[data-closes-dialog]")) dialog.close();
});

function within(dialog, { clientX, clientY }) {
  const box = dialog.getBoundingClientRect();
  return clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
}

document.addEventListener("input", (event) => {
  const wanted = event.target.dataset?.mustEqual;
  if (wanted === undefined) return;
  const equal = event.target.value === wanted;
  event.target.setCustomValidity(equal ? "" : event.target.closest("label").textContent.trim());
});

// A part that refreshes by itself waits while a question in it is open.
document.addEventListener("htmx:beforeRequest", (event) => {
  const target = event.detail.target;
  if (target?.querySelector?.("dialog[open]") && !event.target.closest("dialog")) event.preventDefault();
});
