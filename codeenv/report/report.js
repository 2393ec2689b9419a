"use strict";
// Elements are only shown, hidden, moved and marked here: text is never turned into elements.
(() => {
  const root = document.documentElement, body = document.body;
  const $ = (selector, of = document) => of.querySelector(selector);
  const $$ = (selector, of = document) => [...of.querySelectorAll(selector)];
  const single = body.classList.contains("single");
  const search = $("#search"), found = $("#found");

  // --- light and dark
  const stored = { get: () => { try { return localStorage.getItem("codeenv-theme"); } catch { return null; } },
    set: (name) => { try { localStorage.setItem("codeenv-theme", name); } catch { /* then it lasts for this page */ } } };
  const wear = (name) => { if (name) root.dataset.theme = name; else delete root.dataset.theme; };
  wear(["light", "dark"].includes(stored.get()) ? stored.get() : "");
  const turnTheme = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
    const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % 3];
    wear(next);
    stored.set(next);
  };

  // --- the table: filtered, sorted, a page at a time
  const PAGE = 200;
  const table = $("#episodes"), tbody = table && table.tBodies[0];
  const rows = tbody ? [...tbody.rows] : [];
  const original = rows.slice();
  let shown = rows, first = 0, at = -1, outcome = "", sorted = { column: -1, up: true };
  const sectionOf = (row) => { const link = $("a", row); return link && document.getElementById(link.hash.slice(1)); };
  const texts = new WeakMap();
  const textOf = (element) => {
    if (!texts.has(element)) texts.set(element, element.textContent.toLowerCase());
    return texts.get(element);
  };
  const matches = (row, words) => {
    if (!words || textOf(row).includes(words)) return true;
    const section = sectionOf(row);
    return Boolean(section) && section.textContent.toLowerCase().includes(words);
  };
  const showPage = () => {
    tbody.replaceChildren(...shown.slice(first, first + PAGE));
    const last = Math.min(first + PAGE, shown.length);
    $("#page").textContent = shown.length ? `${first + 1} to ${last} of ${shown.length}` : "none";
    $("#before").disabled = first === 0;
    $("#after").disabled = last >= shown.length;
    $(".pager").hidden = shown.length <= PAGE && shown.length > 0;
  };
  const select = (index, scroll = true) => {
    shown[at]?.classList.remove("at");
    at = Math.max(-1, Math.min(index, shown.length - 1));
    if (at < 0) return;
    if (at < first || at >= first + PAGE) { first = at - at % PAGE; showPage(); }
    shown[at].classList.add("at");
    if (scroll) shown[at].scrollIntoView({ block: "nearest" });
  };
  const filter = () => {
    const words = body.classList.contains("reading") ? "" : search.value.trim().toLowerCase();
    shown[at]?.classList.remove("at");
    shown = rows.filter((row) => (!outcome || row.dataset.outcome === outcome) && matches(row, words));
    first = 0;
    at = -1;
    showPage();
    found.textContent = words ? `${shown.length} of ${rows.length}` : "";
  };
  const valueOf = (row, column, numeric) => {
    const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
    if (!numeric) return text.toLowerCase();
    const value = parseFloat(text);
    return Number.isNaN(value) ? -Infinity : value;
  };
  const sort = (header) => {
    const column = header.cellIndex, numeric = header.dataset.sort === "number";
    if (sorted.column !== column) sorted = { column, up: !numeric };
    else if (sorted.up === !numeric) sorted.up = numeric;
    else sorted = { column: -1, up: true };
    for (const other of $$("th", table)) other.removeAttribute("aria-sort");
    if (sorted.column < 0) rows.splice(0, rows.length, ...original);
    else {
      header.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      const keys = new Map(original.map((row) => [row, valueOf(row, column, numeric)]));
      const way = sorted.up ? 1 : -1;
      rows.splice(0, rows.length, ...original);
      rows.sort((a, b) => (keys.get(a) < keys.get(b) ? -way : keys.get(a) > keys.get(b) ? way : 0));
    }
    filter();
  };
  if (table) {
    for (const header of $$("th[data-sort]", table)) {
      header.classList.add("sortable");
      header.tabIndex = 0;
      header.addEventListener("click", () => sort(header));
      header.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); sort(header); } });
    }
    for (const button of $$(".filters button")) {
      button.addEventListener("click", () => {
        outcome = button.dataset.outcome;
        for (const other of $$(".filters button")) other.classList.toggle("on", other === button);
        filter();
      });
    }
    $("#before").addEventListener("click", () => { first = Math.max(0, first - PAGE); showPage(); });
    $("#after").addEventListener("click", () => { first += PAGE; showPage(); });
    showPage();
  }

  // --- which episode is open
  let open = null, turns = [], here = -1, overviewAt = 0;
  const show = (section) => {
    if (section === open) return;
    if (!open && !single) overviewAt = scrollY;
    open?.classList.remove("open");
    open = section;
    open?.classList.add("open");
    body.classList.toggle("reading", Boolean(open));
    turns = open ? $$("article.turn", open) : [];
    here = -1;
    clearMatches();
    if (!single && search.value) { if (open) find(); else filter(); }
  };
  const mark = (index) => {
    turns[here]?.classList.remove("here");
    if (open) $(".rail a.here", open)?.classList.remove("here");
    here = index;
    if (!turns[here]) return;
    turns[here].classList.add("here");
    const link = $$(".rail a", open)[here];
    link?.classList.add("here");
    link?.scrollIntoView({ block: "nearest" });
  };
  const goTo = (index) => {
    if (!turns.length) return;
    mark(Math.max(0, Math.min(index, turns.length - 1)));
    turns[here].scrollIntoView({ block: "start" });
    // A turn that was never laid out has a guessed height: once more, when those above are known.
    requestAnimationFrame(() => turns[here]?.scrollIntoView({ block: "start" }));
    try { history.replaceState(null, "", `#${turns[here].id}`); } catch { /* a page that may not have a history */ }
  };
  const current = () => {
    if (here >= 0) {
      const box = turns[here].getBoundingClientRect();
      if (box.bottom > 0 && box.top < innerHeight) return here;
    }
    return turns.findLastIndex((turn) => turn.getBoundingClientRect().top < 80);
  };
  const route = () => {
    const id = location.hash.slice(1), target = id && document.getElementById(id);
    const section = single ? $(".episode") : target && target.closest(".episode");
    const was = open;
    show(section || null);
    if (!open) { if (was) scrollTo(0, overviewAt); return; }
    const turn = target ? turns.indexOf(target) : -1;
    if (turn >= 0) goTo(turn);
    else if (was !== open && !single) scrollTo(0, 0);
    follow();
  };
  const follow = () => {
    const index = open ? shown.findIndex((row) => sectionOf(row) === open) : -1;
    if (index >= 0) select(index, false);
  };
  const step = (by) => {
    for (let index = at + by; index >= 0 && index < shown.length; index += by) {
      const section = sectionOf(shown[index]);
      if (section) { location.hash = section.id; return; }
    }
  };
  addEventListener("hashchange", route);
  addEventListener("click", (event) => {
    const button = event.target.closest?.("button.go");
    if (button) step(Number(button.dataset.go));
  });

  // --- search in an episode
  const MOST = 5000;
  let ranges = [], hit = -1, asked = "";
  const highlights = typeof Highlight === "function" && CSS.highlights;
  function clearMatches() {
    ranges = [];
    hit = -1;
    asked = "";
    if (highlights) { CSS.highlights.delete("found"); CSS.highlights.delete("found-here"); }
    if (!table || open) found.textContent = "";
  }
  function find() {
    clearMatches();
    const words = search.value.trim().toLowerCase();
    if (!words || !open) return;
    asked = words;
    const walker = document.createTreeWalker(open, NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && ranges.length < MOST) {
      const node = walker.currentNode, lower = node.data.toLowerCase();
      const text = lower.length === node.length ? lower : node.data;
      for (let place = text.indexOf(words); place >= 0 && ranges.length < MOST; place = text.indexOf(words, place + words.length)) {
        const range = new Range();
        range.setStart(node, place);
        range.setEnd(node, place + words.length);
        ranges.push(range);
      }
    }
    if (highlights) CSS.highlights.set("found", new Highlight(...ranges));
    found.textContent = ranges.length ? `${ranges.length}${ranges.length === MOST ? "+" : ""} found` : "none found";
  }
  const goToMatch = (by) => {
    if (!ranges.length) return;
    hit = hit < 0 && by < 0 ? ranges.length - 1 : (hit + by + ranges.length) % ranges.length;
    const range = ranges[hit], element = range.startContainer.parentElement;
    for (let box = element.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (highlights) CSS.highlights.set("found-here", new Highlight(range));
    const turn = element.closest("article.turn");
    mark(turn ? turns.indexOf(turn) : -1);
    element.scrollIntoView({ block: "center" });
    const pane = element.closest("pre");
    const centre = () => {
      const box = range.getBoundingClientRect();
      if (pane && pane.scrollHeight > pane.clientHeight) pane.scrollTop += box.top - pane.getBoundingClientRect().top - pane.clientHeight / 2;
      const after = range.getBoundingClientRect();
      if (after.top < 70 || after.bottom > innerHeight) scrollBy(0, after.top - innerHeight / 2);
    };
    centre();
    requestAnimationFrame(centre);
    found.textContent = `${hit + 1} of ${ranges.length}${ranges.length === MOST ? "+" : ""}`;
  };
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => (open ? find() : table && filter()), 150);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(timer);
      if (open) { if (asked !== search.value.trim().toLowerCase()) find(); search.blur(); goToMatch(event.shiftKey ? -1 : 1); }
      else if (table) { filter(); search.blur(); select(0); }
      event.stopPropagation();
    }
  });
  const leaveSearch = () => {
    clearTimeout(timer);
    search.value = "";
    search.blur();
    clearMatches();
    if (table) { filter(); follow(); }
  };

  // --- keys
  const help = $("#keys");
  const foldAll = () => {
    const all = $$("details", open), wide = all.some((one) => !one.open);
    for (const one of all) one.open = wide;
  };
  const nextFailure = () => {
    const from = current();
    const bad = (turn) => $(".call.failed, .call.invalid, .notice.bad", turn);
    const index = turns.findIndex((turn, number) => number > from && bad(turn));
    goTo(index >= 0 ? index : turns.findIndex(bad));
  };
  const keys = {
    j: () => (open ? goTo(current() + 1) : select(at + 1)),
    k: () => (open ? goTo(current() - 1) : select(Math.max(at - 1, 0))),
    f: () => open && nextFailure(),
    o: () => open && foldAll(),
    n: () => goToMatch(1),
    N: () => goToMatch(-1),
    t: turnTheme,
    "]": () => !single && step(1),
    "[": () => !single && step(-1),
    "/": () => { search.focus(); search.select(); },
    "?": () => help.showModal(),
    Enter: () => { const link = !open && shown[at] && $("a", shown[at]); if (link) location.hash = link.hash; },
    Escape: () => { if (search.value) leaveSearch(); else if (open && !single) location.hash = "run"; },
  };
  keys.ArrowRight = keys.j;
  keys.ArrowLeft = keys.k;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target === search) { if (event.key === "Escape") leaveSearch(); return; }
    if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return;
    if (event.key.startsWith("Arrow") && event.target.closest?.("pre")) return;
    const action = Object.hasOwn(keys, event.key) && keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  $("#theme").addEventListener("click", turnTheme);
  $("#help").addEventListener("click", () => help.showModal());
  help.addEventListener("click", (event) => { if (event.target === help) help.close(); });

  // What is there already, and when all of it is.
  route();
  addEventListener("DOMContentLoaded", () => {
    if (open) turns = $$("article.turn", open);
    else route();
  });
})();
