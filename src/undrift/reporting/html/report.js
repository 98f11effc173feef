"use strict";
// The page reads without this script; with it tables sort and filter, and cells and figures open.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // an element with attributes and children; texts are set as text, so nothing is ever parsed
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return element;
  }

  // light and dark -------------------------------------------------------------------------
  function setUpTheme() {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const prefersDark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    try {
      const kept = localStorage.getItem("undrift-theme");
      if (kept === "light" || kept === "dark") root.dataset.theme = kept;
    } catch { /* a file:// page may have no storage */ }
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("undrift-theme", root.dataset.theme); } catch { /* as above */ }
      label();
    });
    prefersDark.addEventListener("change", label);
    label();
    button.hidden = false;
  }

  // tables ---------------------------------------------------------------------------------
  function setUpTable(article) {
    const form = article.querySelector(".controls");
    const table = article.querySelector(".results");
    const bodies = Array.from(table.tBodies);
    const planOrder = new Map(bodies.map((body) => [body, Array.from(body.rows)]));
    const leaves = all("thead tr:first-child th[rowspan], thead tr:last-child th", table);
    leaves.forEach((head, column) => {
      head.querySelector(".sort").addEventListener("click", () => sort(head, column));
    });

    function sort(head, column) {
      const kind = head.querySelector(".sort").dataset.kind;
      const turns = kind === "high" ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const direction = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % turns.length];
      for (const other of leaves) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", direction);
      for (const body of bodies) body.append(...sorted(planOrder.get(body), column, kind, direction));
    }

    function sorted(rows, column, kind, direction) {
      if (direction === "none") return rows;
      const sign = direction === "ascending" ? 1 : -1;
      const key = ({ cells: { [column]: cell } }) => {
        if (kind === "text") return cell.textContent.trim().toLowerCase();
        return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
      };
      return rows.map((row) => [key(row), row]).sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // no number: always last
        return sign * (kind === "text" ? a.localeCompare(b, "en") : a - b);
      }).map(([, row]) => row);
    }

    function filter() {
      const words = form.querySelector(".filter").value.toLowerCase().split(/\s+/).filter(Boolean);
      const family = form.querySelector(".family").value;
      for (const row of bodies.flatMap((body) => Array.from(body.rows))) {
        const text = `${row.cells[0].textContent} ${row.dataset.method} ${row.dataset.family}`.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word)) || (family && row.dataset.family !== family);
      }
      const { rows } = bodies[0];
      const shown = Array.from(rows).filter((row) => !row.hidden).length;
      form.querySelector(".count").textContent = `${shown} of ${rows.length} rows`;
    }

    function grade(grading) {
      for (const part of all("[data-grading]", article)) part.hidden = part.dataset.grading !== grading;
    }

    function showKinds() {
      for (const box of all(".kind", form)) {
        for (const cell of all(`.k-${CSS.escape(box.value)}`, table)) cell.hidden = !box.checked;
      }
      headings();
    }

    // a heading spans what is shown of its columns, and a line stands where it starts
    function headings() {
      let shown = 3;
      all(".group", table).forEach((group, g) => {
        const mine = all(`th[data-group="${g}"]`, table).filter((head) => !head.hidden);
        group.hidden = mine.length === 0;
        group.colSpan = Math.max(mine.length, 1);
        shown += mine.length;
      });
      table.style.setProperty("--columns", shown);
      const seen = new Set([undefined]); // a column of no group starts none
      leaves.forEach((head, column) => {
        const starts = !head.hidden && !seen.has(head.dataset.group);
        if (starts) seen.add(head.dataset.group);
        for (const body of bodies) {
          for (const row of body.rows) row.cells[column].classList.toggle("starts", starts);
        }
        head.classList.toggle("starts", starts);
      });
    }

    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector(".filter").addEventListener("input", filter);
    form.querySelector(".family").addEventListener("change", filter);
    for (const radio of all(".grading", form)) radio.addEventListener("change", () => grade(radio.value));
    for (const box of all(".kind", form)) box.addEventListener("change", showKinds);
    form.reset(); // a reloaded page starts as it is written
    filter();
    headings();
    form.hidden = false;
  }

  // the runs of a cell ---------------------------------------------------------------------
  const runsDialog = document.getElementById("runs");
  const number = (value) => (value === null ? "\u2013" : value.toFixed(2).replace("-", "\u2212"));
  const column = (text, kind = "") => make("th", { scope: "col", class: kind }, text);
  const named = (text, ...cells) => make("tr", {}, make("th", { scope: "row" }, text), ...cells);
  const figure = (text) => make("td", { class: "number" }, text);

  function metricName(symbol) {
    const [name, sub] = symbol.split("_");
    return make("span", {}, name, ...(sub ? [make("sub", {}, sub)] : []));
  }

  function boxed(label, heads, rows) {
    const table = make("table", { class: "plain" }, make("thead", {}, ...heads), make("tbody", {}, ...rows));
    return make("div", { class: "box", tabindex: "0", role: "region", "aria-label": label }, table);
  }

  function runsTable(ids) {
    const head = make("tr", {}, column("Seed"));
    const grades = make("tr", {}, column(""));
    for (const metric of data.metrics) {
      head.append(make("th", { scope: "colgroup", colspan: "2", class: "group" }, metricName(metric)));
      grades.append(column("class", "number"), column("node", "number"));
    }
    for (const name of ["validation", "time", "memory", "kept", "run"]) {
      head.append(column(name, name === "run" ? "" : "number"));
      grades.append(column(""));
    }
    const rows = ids.map((id) => {
      const run = data.runs[id];
      const metrics = run.class.flatMap((value, m) => [figure(number(value)), figure(number(run.node[m]))]);
      const rest = [number(run.validation), ...run.cost].map(figure);
      return named(run.seed, ...metrics, ...rest, make("td", {}, make("code", {}, id)));
    });
    return boxed("Metrics of each run", [head, grades], rows);
  }

  function runBlock(id) {
    const run = data.runs[id];
    // the words of a command are kept whole where a line breaks
    const words = run.command.split(" ").flatMap((word) => [" ", make("span", {}, word)]);
    const command = make("code", {}, ...words.slice(1));
    const copy = make("button", { type: "button", class: "quiet copy" }, "Copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(run.command);
        copy.textContent = "Copied";
      } catch { // no clipboard on this page: select it for the reader to copy
        getSelection().selectAllChildren(command);
        copy.textContent = "Selected";
      }
    });
    return make("div", { class: "run", "data-run": id },
      make("div", { class: "run-head" }, make("strong", {}, `seed ${run.seed}`), make("code", { class: "muted" }, id)),
      make("div", { class: "command" }, command, copy),
      make("details", {}, make("summary", {}, "spec"), make("pre", {}, JSON.stringify(run.spec, null, 2))));
  }

  // one line per setting, one column per seed; what a seed chose is marked
  function searchTable(searches) {
    const settings = new Set(searches.flatMap((search) => search.trials.map(([setting]) => setting)));
    const head = make("tr", {}, column("Setting"), ...searches.map((search) => column(`seed ${search.seed}`, "number")));
    const rows = Array.from(settings, (setting) => named(setting, ...searches.map((search) => {
      const trial = search.trials.find(([name]) => name === setting);
      const [, value, failed] = trial || [setting, null, null];
      const picked = trial && search.chosen === setting;
      const cell = make("td", { class: picked ? "number picked" : "number" }, failed ? "failed" : number(value));
      cell.title = picked ? "chosen" : failed || "";
      return cell;
    })));
    return boxed("Search trials", [head], rows);
  }

  function openCell(key) {
    const cell = data.cells[key];
    const body = runsDialog.querySelector(".dialog-body");
    const line = (kind, ...words) => body.append(make("p", { class: kind }, ...words));
    document.getElementById("runs-title").textContent = cell.title;
    body.replaceChildren();
    line("muted", `${cell.plan}: ${cell.runs.length} ${cell.runs.length === 1 ? "run" : "runs"}`);
    if (cell.runs.length) body.append(runsTable(cell.runs));
    for (const [seed, error] of cell.failed) line("bad", `seed ${seed} failed: ${error}`);
    if (cell.missing.length) line("muted", `not run yet: seed ${cell.missing.join(", ")}`);
    if (cell.runs.length) body.append(make("h3", {}, "Repeat a run"), ...cell.runs.map(runBlock));
    if (cell.searches.length) {
      const searches = cell.searches.map((id) => data.searches[id]);
      const shared = Array.from(new Set(searches.flatMap((search) => search.shared)));
      const beside = shared.length ? ` Searched together with ${shared.join(", ")}.` : "";
      const spent = searches.map((search) => search.seconds).join(", ");
      body.append(make("h3", {}, "Where its settings were chosen"));
      line("muted", "Validation ", metricName(data.chosenBy), ` by class of every setting; the chosen one is marked. Took ${spent}.${beside}`);
      body.append(searchTable(searches));
    }
    runsDialog.showModal();
    runsDialog.scrollTop = 0;
  }

  // figures --------------------------------------------------------------------------------
  const figureDialog = document.getElementById("figure");

  function enlarge(figure) {
    const button = figure.querySelector(".enlarge");
    const sheet = button.querySelector(".sheet");
    const words = figure.querySelector("figcaption").cloneNode(true);
    const title = words.querySelector("strong");
    // the drawing moves into the dialog and back: the page holds it once
    button.style.minHeight = `${button.offsetHeight}px`;
    document.getElementById("figure-title").textContent = title.textContent;
    title.remove();
    figureDialog.querySelector(".dialog-body").replaceChildren(sheet, make("p", { class: "muted" }, words.textContent.trim()));
    figureDialog.addEventListener("close", () => {
      button.append(sheet);
      button.style.minHeight = "";
    }, { once: true });
    figureDialog.showModal();
  }

  for (const dialog of [runsDialog, figureDialog]) {
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("button[data-cell]");
    if (cell) openCell(cell.dataset.cell);
    const figure = event.target.closest(".enlarge");
    if (figure) enlarge(figure.closest("figure"));
  });

  // print shows what is folded away, and folds it again
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("main details:not([open])");
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of opened) part.open = false; });

  setUpTheme();
  for (const article of all(".plan")) setUpTable(article);
})();
