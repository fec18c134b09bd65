// Rows of secret variables: added and removed by buttons that are hidden where no script runs.

for (const rows of document.querySelectorAll("[data-secret-rows]")) {
  const add = rows.querySelector("[data-secret-add]");
  const all = () => rows.querySelectorAll("[data-secret-row]");

  const show = () => {
    add.hidden = all().length >= Number(rows.dataset.most);
    for (const remove of rows.querySelectorAll("[data-secret-remove]")) remove.hidden = false;
  };

  const clear = (row) => {
    for (const input of row.querySelectorAll("input")) input.value = "";
    row.querySelector("input[type=password]").placeholder = "";
  };

  add.addEventListener("click", () => {
    const last = [...all()].at(-1);
    const fresh = last.cloneNode(true);
    clear(fresh);
    fresh.querySelector("input").removeAttribute("id");
    last.after(fresh);
    show();
    fresh.querySelector("input").focus();
  });

  rows.addEventListener("click", ({ target }) => {
    const row = target.closest("[data-secret-remove]")?.closest("[data-secret-row]");
    if (!row) return;
    // The first row stays: the label of the field leads to it, and new rows are made of one.
    if (row === all()[0]) clear(row);
    else row.remove();
    (row.isConnected ? row : [...all()].at(-1)).querySelector("input").focus();
    rows.dispatchEvent(new Event("change", { bubbles: true }));
    show();
  });

  // The empty rows are for those without a script.
  for (const row of [...all()].slice(1)) {
    if (![...row.querySelectorAll("input")].some((input) => input.value)) row.remove();
  }
  show();
}
