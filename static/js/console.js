// The console of queues: branches fold, menus close, chosen rows are counted. Without it everything still works.

const KEPT = "ninefold.console.folded";
const tree = document.querySelector("[data-tree]");

function kept() {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEPT) ?? "[]"));
  } catch {
    return new Set();
  }
}

function drawn(folded) {
  const hidden = new Set();
  for (const row of tree.tBodies[0].rows) {
    const { uid, above, with: beside } = row.dataset;
    row.hidden = hidden.has(above) || folded.has(above);
    if (row.hidden && !beside) hidden.add(uid);
  }
  for (const button of tree.querySelectorAll("[data-fold]")) {
    button.setAttribute("aria-expanded", String(!folded.has(button.dataset.fold)));
  }
}

function keep(folded) {
  localStorage.setItem(KEPT, JSON.stringify([...folded]));
  drawn(folded);
}

if (tree) {
  const folded = kept();
  const every = [...tree.querySelectorAll("[data-fold]")].map((button) => button.dataset.fold);
  const all = document.querySelector("[data-fold-all]");
  drawn(folded);
  tree.addEventListener("click", ({ target }) => {
    const uid = target.closest("[data-fold]")?.dataset.fold;
    if (!uid) return;
    if (!folded.delete(uid)) folded.add(uid);
    keep(folded);
  });
  if (all && every.length) {
    all.hidden = false;
    all.addEventListener("click", () => {
      const open = every.some((uid) => !folded.has(uid));
      every.forEach((uid) => (open ? folded.add(uid) : folded.delete(uid)));
      keep(folded);
    });
  }
}

// One menu at a time; Escape gives the focus back to what opened it.
function close(except) {
  for (const menu of document.querySelectorAll("[data-menu][open]")) if (menu !== except) menu.open = false;
}
document.addEventListener("click", ({ target }) => close(target.closest("[data-menu]")));
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// What the preview finds wrong is marked in its field too.
document.addEventListener("htmx:afterSwap", () => {
  const wrong = new Set([...document.querySelectorAll("[data-mistake]")].map((one) => one.dataset.mistake));
  for (const field of document.querySelectorAll(".qc-editor :is(input, select, textarea)")) {
    if (wrong.has(field.id)) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});

// A file that was chosen is put where its text can be read and changed.
const file = document.querySelector("[data-file-into]");
file?.addEventListener("change", async () => {
  const field = document.getElementById(file.dataset.fileInto);
  if (!file.files.length || !field) return;
  field.value = await file.files[0].text();
  file.value = "";
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// "All of them" above a list of queues to choose from.
document.querySelector("[data-choose-all]")?.addEventListener("change", ({ target }) => {
  for (const one of document.querySelectorAll("[data-choice]")) one.checked = target.checked;
});
