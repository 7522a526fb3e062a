// The page is complete where scripts are off or blocked. It adds sorting, a filter, values at a point, copies and downloads, and the
// samples of a case. The reader's choices are kept in the fragment of the address.
(() => {
  const one = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const make = (tag, attributes = {}, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  };
  const action = (text, act) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => act(button));
    return button;
  };
  let rows; // the table of all rows, as soon as it is there
  let read;
  const data = () => (read ??= JSON.parse(one("#data").textContent));
  const value = (name, number) => {
    const column = data().columns[name];
    return Array.isArray(column) ? column[number] : column?.of[column.at[number] ?? 0];
  };

  // ---- the state of the page, in its address ----
  const state = { q: "", sort: "", case: "", at: "" };
  const remember = changes => {
    Object.assign(state, changes);
    const fragment = new URLSearchParams(Object.entries(state).filter(([, text]) => text)).toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
  };
  const OLDER = { sections: "more", summary: "trust", fastest: "time", numerics: "studies", attention_maps: "studies", generation: "studies", worked_example: "studies", trained_heads: "learning", checkpoint_heads: "learning" }; // fragments of earlier pages
  const reveal = id => {
    if (!document.getElementById(id)) fillAll("noscript");
    const target = document.getElementById(id) ?? document.getElementById(OLDER[id]);
    if (target) unfold(target);
    target?.scrollIntoView();
  };
  const unfold = inside => {
    for (let outer = inside.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  };
  const restore = () => {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) {
      // A plain anchor: the browser goes there, and the choices are kept.
      if (Object.entries(state).some(([name, chosen]) => name !== "at" && chosen)) remember({ at: text });
      else state.at = text;
      reveal(text);
      return;
    }
    if (text) fillAll("noscript");
    const chosen = new URLSearchParams(text);
    for (const name of Object.keys(state)) state[name] = chosen.get(name) ?? "";
    const [table, column, direction] = state.sort.split(".");
    const sorted = document.getElementById(table);
    if (sorted?.tHead) sort(sorted, Number(column), direction);
    for (const folded of [sorted, state.q && rows]) if (folded) unfold(folded);
    filter(state.q);
    if (state.at) reveal(state.at);
    if (state.case) show(state.case);
    else if (dialog.open) dialog.close();
  };

  // ---- tables ----
  const POWERS = { n: 1e-9, "µ": 1e-6, "μ": 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
  const size = text => {
    // `8k` is 8192; `58.7 ms`, `1.5 GiB` and `3 GFLOP/s` have a prefix in their unit.
    const found = /^[×±]?\s?([-+]?\d[\d.]*(?:e[-+]?\d+)?)(k?)(?:\s*([nµμmkKMGTPE])(i?)(?=B|s|FLOP|J|W|Hz))?/.exec(text);
    if (!found) return null;
    const [, digits, k, prefix, binary] = found;
    return digits * (k ? 1024 : 1) * (binary ? 1024 ** ("KMGTPE".indexOf(prefix) + 1) : POWERS[prefix] ?? 1);
  };
  const compare = (a, b, sign) => {
    const [x, y] = [size(a), size(b)];
    if (x !== null && y !== null) return sign * (x - y);
    if (x === null && y === null && a && b) return sign * a.localeCompare(b, "en");
    return (x === null) - (y === null) || !a - !b; // numbers, text, empty cells
  };
  const sort = (table, column, direction) => {
    const heads = [...table.tHead.rows[0].cells];
    if (!heads[column]) return;
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", direction === "descending" ? "descending" : "ascending");
    const keyed = [...table.tBodies[0].rows].map(row => [row.cells[column].textContent, row]);
    keyed.sort(([a], [b]) => compare(a, b, direction === "descending" ? -1 : 1));
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  };
  const markdown = table => {
    const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;" };
    const escaped = text => text.trim().replace(/[&<>@]/g, sign => entities[sign]).replace(/[\\`*_[\]|~$]/g, "\\$&");
    const line = cells => `| ${[...cells].map(cell => escaped(cell.textContent)).join(" | ")} |`;
    const heads = table.tHead.rows[0].cells;
    const body = [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => line(row.cells));
    return [line(heads), `|${" --- |".repeat(heads.length)}`, ...body].join("\n") + "\n";
  };
  const equipTable = table => {
    table.dataset.equipped = "";
    if (table.tBodies[0].rows.length > 2) {
      [...table.tHead.rows[0].cells].forEach((head, column) => {
        if (!head.textContent) return;
        const button = action(head.textContent, () => {
          const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
          sort(table, column, direction);
          remember({ sort: `${table.id}.${column}.${direction}` });
        });
        head.replaceChildren(button);
      });
    }
    document.getElementById(`${table.id}-title`).append(" ", action("Copy as Markdown", button => copy(markdown(table), button)));
  };
  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", {}, text);
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1500);
  };

  // ---- all rows: filter and downloads ----
  const texts = new Map();
  const filter = query => {
    if (!rows) return;
    one("#filter").value = query;
    const words = query.toLowerCase().replace(/\b(\d+)k\b/g, (_, n) => 1024 * n).split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of words.length ? rows.tBodies[0].rows : all("tr[hidden]", rows)) {
      if (words.length && !texts.has(row)) {
        const values = ["case", "status", "dtype", "passes", "scope", "device", "run"].map(name => value(name, row.dataset.case));
        const text = [...row.cells].map(cell => cell.textContent).concat(values).join(" ").toLowerCase();
        texts.set(row, `${text} ${text.replaceAll("\u202f", "")}`); // 8 192 is found as 8192
      }
      row.hidden = !words.every(word => texts.get(row).includes(word));
    }
    for (const row of rows.tBodies[0].rows) count += !row.hidden;
    one("#count").textContent = `${count} of ${rows.tBodies[0].rows.length} rows`;
  };
  const shown = () => [...rows.tBodies[0].rows].filter(row => !row.hidden).map(row => Number(row.dataset.case));
  const quoted = cell => {
    if (cell === null || cell === undefined) return "";
    // A spreadsheet takes such a cell for a formula; a quote in front makes it text.
    const text = typeof cell === "string" && /^(\s*[=+\-@＝＋－＠]|[\t\r\n])/.test(cell) ? `'${cell}` : String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const files = {
    csv: names => [names, ...shown().map(row => names.map(name => value(name, row)))].map(line => line.map(quoted).join(",")).join("\n") + "\n",
    json: names => JSON.stringify(shown().map(row => Object.fromEntries(names.map(name => [name, value(name, row) ?? null]))), null, 1) + "\n",
  };
  const equipRows = () => {
    one(".tools").hidden = false;
    one("#filter").addEventListener("input", event => {
      filter(event.target.value);
      remember({ q: event.target.value.trim() });
    });
    for (const button of all("[data-download]")) {
      button.addEventListener("click", () => {
        const kind = button.dataset.download;
        const address = URL.createObjectURL(new Blob([files[kind](Object.keys(data().columns))], { type: kind === "csv" ? "text/csv" : "application/json" }));
        make("a", { href: address, download: `attnbench-rows.${kind}` }).click();
        setTimeout(() => URL.revokeObjectURL(address), 1000);
      });
    }
    rows.addEventListener("pointerover", event => highlight(event.target.closest("tr")?.dataset.case));
    rows.addEventListener("pointerout", () => highlight());
    filter(state.q);
  };

  // ---- pictures: all values at an x, as browsers show titles, but at once, and by touch and keyboard too ----
  const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
  document.body.append(tip);
  const highlight = number => {
    for (const lit of all(".lit")) lit.classList.remove("lit");
    if (number) for (const about of all(`tr[data-case="${number}"], td[data-case="${number}"]`)) about.classList.add("lit");
  };
  const hideTip = () => (tip.hidden = true);
  const showTip = at => {
    tip.textContent = at.getAttribute("aria-label");
    tip.hidden = false;
    const { left, right, top } = at.getBoundingClientRect();
    const beside = right + tip.offsetWidth < innerWidth ? right : left - tip.offsetWidth;
    tip.style.left = `${Math.max(4, beside)}px`;
    tip.style.top = `${Math.max(4, Math.min(top, innerHeight - tip.offsetHeight - 4))}px`;
  };
  const equipDrawing = drawing => {
    const strips = all(".at", drawing);
    if (!strips.length) return;
    drawing.setAttribute("role", "group");
    for (const part of drawing.children) if (!part.matches(".at")) part.setAttribute("aria-hidden", "true");
    strips.forEach((at, place) => {
      at.setAttribute("role", "img");
      at.setAttribute("tabindex", place ? "-1" : "0");
      at.setAttribute("aria-label", at.textContent);
      at.replaceChildren();
      for (const event of ["pointerenter", "pointerdown", "focus"]) at.addEventListener(event, () => showTip(at));
    });
    // A picture is one tab stop: arrows move from value to value.
    drawing.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      strips[strips.indexOf(event.target) + step]?.focus();
      event.preventDefault();
    });
    drawing.addEventListener("focusout", hideTip);
    drawing.addEventListener("pointerleave", event => event.pointerType === "mouse" && hideTip());
  };
  document.addEventListener("keydown", event => event.key === "Escape" && hideTip());
  addEventListener("scroll", hideTip, { passive: true, capture: true });

  // ---- one case: its cells, its command, its samples ----
  const dialog = make("dialog", { "aria-labelledby": "case-title" });
  document.body.append(dialog);
  dialog.addEventListener("close", () => remember({ case: "" }));
  const show = number => {
    fillAll("#rows noscript");
    const row = document.getElementById(`row-${number}`);
    if (!row) return;
    hideTip();
    const names = [...rows.tHead.rows[0].cells].map(head => head.textContent);
    const cells = [...row.cells].map((cell, place) => [names[place], cell.textContent]).filter(([, text]) => text);
    const [power, whole] = data().samples?.[number] ?? [0, []];
    const samples = whole.map(process => process.map(block => block.map(sample => sample * 10 ** power)));
    const command = one(`#rows details a[href="#row-${number}"]`)?.closest("tr").lastElementChild.textContent ?? "";
    dialog.replaceChildren(
      make("p", { class: "close" }, action("Close", () => dialog.close())),
      make("h2", { id: "case-title" }, value("case", number)),
      make("dl", {}, ...cells.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))),
      ...command ? [
        make("h3", {}, "Measure it again"),
        make("pre", { tabindex: "0" }, command),
        make("p", {}, action("Copy command", button => copy(command, button))),
      ] : [],
      make("h3", {}, "Samples"),
      ...drawSamples(samples, data(), ["latency_ms", "latency_low_ms", "latency_high_ms"].map(name => value(name, number))),
    );
    if (!dialog.open) dialog.showModal();
    remember({ case: String(number) });
  };
  document.addEventListener("click", event => {
    const link = event.target.closest?.('a[href^="#row-"]');
    if (!link) return;
    event.preventDefault();
    show(link.hash.slice(5));
  });

  // ---- memory as area: the budget is the reader's, bytes and crossings by the formulas of the page ----
  const sizeText = (bytes, digits) => {
    let power = 0;
    for (; bytes >= 1023.5 && power < 8; power++) bytes /= 1024;
    const written = { maximumFractionDigits: digits ?? (bytes >= 10 ? 0 : 1), roundingMode: "halfEven", useGrouping: false };
    return `${bytes.toLocaleString("en", written)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"][power]}`;
  };
  const lengthText = n => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const equipAreas = root => {
    const { budget: own, budgets, longest, rows } = JSON.parse(root.dataset.areas);
    const picture = one(".squares", root);
    const ends = all(".ends", root);
    const drawn = ends.map(end => end.textContent);
    const needed = ({ need: [constant, linear, quadratic] }, n) => constant + linear * n + quadratic * n * n; // times need[3]: whole numbers, so exact
    const bytes = (row, n) => row.known[n] ?? (row.need && n >= row.least_n ? needed(row, n) / row.need[3] : null);
    const last = (row, budget) => {
      if (!row.need) return Math.max(0, ...Object.keys(row.known).filter(n => row.known[n] <= budget));
      let [fits, fails] = [0, 2 ** 40];
      while (fails - fits > 1) {
        const middle = Math.floor((fits + fails) / 2);
        [fits, fails] = needed(row, middle) <= budget * row.need[3] ? [middle, fails] : [fits, middle];
      }
      return fits;
    };
    const draw = budget => {
      const small = n => rows.every(row => !row.need || needed(row, n) <= 9 * budget * row.need[3]);
      let n = longest;
      while (!small(n) && n % 16 === 0) n /= 2;
      while (small(2 * n) && n < 2 ** 40) n *= 2;
      const lengths = [n / 8, n / 4, n / 2, n];
      const widths = lengths.map(() => 0);
      const areas = all(".area", root);
      rows.forEach((row, place) => lengths.forEach((n, column) => {
        const size = bytes(row, n);
        const area = areas[lengths.length * place + column];
        const side = Math.sqrt(size / budget);
        const [wide, tall] = size === null ? [0, 0] : row.squares ? [side * row.frame, side / row.frame] : [1, side * side];
        area.style.setProperty("--w", wide);
        area.style.setProperty("--h", tall);
        area.className = `area${row.known[n] ? "" : " calculated"}${size > budget ? " beyond" : ""}`;
        area.lastElementChild.textContent = size === null ? "not run" : sizeText(size);
        widths[column] = Math.max(widths[column], wide, row.frame);
      }));
      all(".n", root).forEach((head, column) => (head.textContent = `${column ? "" : "N = "}${lengths[column] % 1024 ? lengths[column] : `${lengths[column] / 1024}k`}`));
      ends.forEach((end, place) => {
        const n = last(rows[place], budget);
        const words = n ? `${rows[place].need ? "up to" : "at least"} N\u00a0=\u00a0${lengthText(n)}` : "nothing fits";
        end.textContent = budget === own ? drawn[place] : words;
      });
      picture.style.setProperty("--k", widths.reduce((sum, width) => sum + width));
      picture.setAttribute("aria-label", picture.innerText.replace(/\s*\n\s*/g, ", "));
      one(".limit", root).textContent = slider.ariaValueText = sizeText(budget, 1);
    };
    const stops = [...new Set([own, ...budgets])].sort((a, b) => a - b);
    const slider = make("input", { type: "range", min: 0, max: stops.length - 1, value: stops.indexOf(own), "aria-label": "Budget", "aria-valuetext": sizeText(own, 1) });
    const mine = make("input", { type: "number", min: 0.001, max: 1e6, step: "any" });
    slider.addEventListener("input", () => draw(stops[slider.value]));
    mine.addEventListener("input", () => mine.value && mine.validity.valid && draw(Math.round(mine.value * 2 ** 30)));
    one(".budget > span", root).after(slider, make("label", {}, "mine ", mine, " GiB"));
  };

  // ---- what the page has as the text of noscript, which is there when it opens ----
  const equip = inside => {
    for (const table of all("table:not(.answer, [data-equipped])", inside)) equipTable(table);
    for (const drawing of all(".pic[role=img]", inside)) equipDrawing(drawing);
  };
  const fill = text => {
    const parent = text.parentNode;
    // The page's own markup: names in it are escaped.
    text.outerHTML = text.textContent.replace(/<!--(\/?)folded-->/g, "<$1noscript>");
    equip(parent);
    if (!rows && (rows = one("table.all"))) equipRows();
  };
  const fillAll = selector => {
    for (let text; (text = one(selector)); ) fill(text);
  };
  const fillOpened = details => {
    for (let text; (text = one(":scope > noscript", details)); ) fill(text);
  };
  document.addEventListener("toggle", event => event.target.open && fillOpened(event.target), true);
  addEventListener("hashchange", restore);
  equip(document);
  all(".areas").forEach(equipAreas);
  restore();
})();
