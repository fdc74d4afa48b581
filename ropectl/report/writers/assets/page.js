"use strict";
// Niceties only: the page says the same without them.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.querySelectorAll("thead tr:last-child th")];
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const key = (row) => {
        const cell = row.children[index];
        return cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
      };
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (Number.isNaN(x) && Number.isNaN(y)) {
          const order = a.children[index].textContent.localeCompare(b.children[index].textContent);
          return up ? order : -order;
        }
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        return up ? x - y : y - x;
      });
      body.append(...rows);
    });
  });
}
if (navigator.clipboard) {
  for (const box of document.querySelectorAll(".commands pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
    box.classList.add("copied");
  }
}
for (const name of ["beforeprint", "afterprint"]) {
  addEventListener(name, () => {
    for (const box of document.querySelectorAll("details")) {
      if (name === "beforeprint") { box.dataset.was = box.open ? "open" : ""; box.open = true; }
      else { box.open = box.dataset.was === "open"; }
    }
  });
}
