"use strict";

const MARKS = { fail: "✗", missing: "–", deviation: "≈", beyond: "○", pass: "✓" };
const MEANING = {
  fail: "differs from what is expected",
  missing: "the function is missing",
  deviation: "a known deviation: differs, with the reason",
  beyond: "the real framework, or the recorded backend, failed; collshim answers or raises a proper error",
  pass: "agrees",
};
const ORDER = Object.keys(MARKS); // the worst first
const STEP = 40; // cases of a function that are shown at once

const find = (id) => document.getElementById(id);
let run;
let opened; // the cell that the panel tells of
let source; // the button that opened it

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const mark = (outcome) => make("span", { className: `mark ${outcome}`, title: MEANING[outcome] }, MARKS[outcome]);
const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const worst = (tolds) => Math.min(...tolds.map((told) => ORDER.indexOf(told[1])), ORDER.length);
const sum = (cell, part) => cell.functions.reduce((total, one) => total + one[part].length, 0);
const failures = (cell, part) => cell.functions.flatMap((one) => one[part]).filter((told) => told[1] === "fail").length;
const lacking = (cell) => new Set(cell.functions.filter((one) => one.missing).map((one) => one.name.split("[")[0])).size;
const key = (row, framework, transport) => [row, framework, transport].join("/");

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function drawHeader() {
  MEANING.deviation = run.deviations;
  find("verdict").textContent = run.verdict;
  find("verdict").className = run.causes.length || run.stale.length ? "failed" : "passed";
  find("about").textContent = run.line;
  find("counts").textContent = run.counts;
  find("stale").hidden = !run.stale.length;
  find("stale").append(...run.stale.map((line) => make("li", {}, `unexpected pass: ${line}`)));
  find("causes").hidden = !run.causes.length;
  find("causes").append(make("h2", {}, count(run.causes.length, "cause")), ...run.causes.map(drawCause));
  const seen = new Set(run.cells.map((cell) => cell.outcome));
  if (run.cells.some((cell) => cell.functions.some((one) => one.cases.some((told) => told[1] === "deviation")))) {
    seen.add("deviation"); // although each of its cells may have another mark
  }
  const order = [...ORDER].reverse().filter((outcome) => seen.has(outcome));
  find("legend").append(...order.map((outcome) => make("li", {}, mark(outcome), ` ${MEANING[outcome]}`)));
}

function drawCause(cause) {
  const { cell, function: name, case: line, lines } = cause.example;
  const only = cause.only ? `; only with ${cause.only}` : "";
  const where = make("small", {}, `${count(cause.cases, "case")} of ${cause.of}${only}`);
  const open = make("button", { type: "button", className: "example", title: "Open this case",
    onclick: () => openCase(cell, name, line) }, `${name}: ${line}`);
  return make("div", { className: "cause" }, make("p", {}, make("strong", {}, cause.text), where),
    open, make("pre", {}, lines.join("\n")));
}

function openCase(cell, name, line) {
  [...find("grid").querySelectorAll("button")].find((one) => one.dataset.key === key(...cell)).click();
  find("words").value = line; // beyond the first cases of a function it is found by its words
  drawFunctions();
  const shown = [...find("functions").querySelectorAll("details.function")].find((one) => one.dataset.name === name);
  whenFilled(shown, () => {
    const found = [...shown.querySelectorAll("details.case")].find((one) => one.dataset.line === line);
    if (found) found.open = true;
    (found || shown).scrollIntoView({ block: "start" });
  });
  shown.open = true;
}

function whenFilled(details, then) {
  if (details.open && details.querySelector(".case")) then();
  else details.addEventListener("toggle", () => then(), { once: true });
}

function drawGrid() {
  const cells = new Map(run.cells.map((cell) => [key(cell.row, cell.framework, cell.transport), cell]));
  const first = run.columns.map(([name], place) => place === 0 || run.columns[place - 1][0] !== name);
  const names = [...new Set(run.columns.map(([name]) => name))];
  const spans = names.map((name) => {
    const colSpan = run.columns.filter(([other]) => other === name).length;
    return make("th", { scope: "colgroup", colSpan }, name);
  });
  const transports = run.columns.map(([, transport], place) =>
    make("th", { scope: "col", className: `transport${first[place] ? " first" : ""}` }, transport));
  const head = make("thead", {}, make("tr", {}, make("td"), ...spans), make("tr", {}, make("td"), ...transports));
  const body = make("tbody", {}, ...run.rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row),
    ...run.columns.map(([framework, transport], place) =>
      drawCell(cells.get(key(row, framework, transport)), first[place])))));
  find("grid").append(make("caption", { className: "skip" }, "Collectives by framework and transport"), head, body);
  const button = find("grid").querySelector("button");
  if (button) button.tabIndex = 0;
}

function drawCell(cell, isFirst) {
  const className = isFirst ? "first" : "";
  if (!cell) return make("td", { className: `none ${className}`, title: "the framework has none" }, "·");
  const [cases, recorded, missing] = [sum(cell, "cases"), sum(cell, "recorded"), lacking(cell)];
  const failed = failures(cell, "cases") + failures(cell, "recorded");
  const number = make("span", { className: "number" }, failed ? `${failed.toLocaleString("en")} of ` : "",
    cases ? cases.toLocaleString("en") : "",
    recorded ? make("small", {}, ` +${recorded.toLocaleString("en")}`) : null,
    missing ? make("small", { className: "lacking" }, ` −${missing}`) : null);
  const label = `${cell.row}, ${cell.framework}, ${cell.transport}: ${MEANING[cell.outcome]}; `
    + `${failed ? `${failed.toLocaleString("en")} of ` : ""}${count(cases, "case")}, `
    + `${count(recorded, "recorded call")}${missing ? `, ${count(missing, "function")} missing` : ""}`;
  const button = make("button", { type: "button", className: cell.outcome, tabIndex: -1, title: label,
    "aria-label": label, "aria-pressed": "false", onclick: () => open(cell, button) },
    make("span", { className: "mark" }, MARKS[cell.outcome]), number);
  button.dataset.key = key(cell.row, cell.framework, cell.transport);
  return make("td", { className }, button);
}

function move(event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const step = steps[event.key];
  const from = event.target.closest("td");
  if (!step || !from) return;
  event.preventDefault();
  const rows = [...find("grid").tBodies[0].rows];
  let [row, column] = [rows.indexOf(from.parentElement), from.cellIndex];
  for (;;) {
    row += step[0];
    column += step[1];
    const cell = rows[row]?.cells[column];
    if (!cell || cell.tagName === "TH") return;
    const button = cell.querySelector("button");
    if (button) return focusOn(button, event.target);
  }
}

function focusOn(button) {
  for (const other of find("grid").querySelectorAll("button[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
}

function open(cell, button) {
  if (source) source.setAttribute("aria-pressed", "false");
  [opened, source] = [cell, button];
  focusOn(button);
  button.setAttribute("aria-pressed", "true");
  history.replaceState(null, "", `#${encodeURI(button.dataset.key)}`);
  find("title").replaceChildren(cell.row, make("small", {}, ` ${cell.framework}, ranks are ${cell.transport}`));
  drawOutcomes();
  find("words").value = "";
  drawFunctions();
  find("panel").hidden = false;
  find("panel").scrollTop = 0;
  find("panel").focus();
  button.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function close() {
  find("panel").hidden = true;
  history.replaceState(null, "", location.pathname + location.search);
  if (source) {
    source.setAttribute("aria-pressed", "false");
    source.focus();
  }
}

function drawOutcomes() {
  const every = opened.functions.flatMap((one) => [...one.cases, ...one.recorded]);
  const there = ORDER.filter((outcome) => every.some((told) => told[1] === outcome));
  const boxes = there.map((outcome) => make("label", { title: MEANING[outcome] },
    make("input", { type: "checkbox", value: outcome, checked: true, onchange: drawFunctions }), " ", mark(outcome),
    ` ${every.filter((told) => told[1] === outcome).length.toLocaleString("en")}`));
  const legend = find("outcomes").querySelector("legend");
  find("outcomes").replaceChildren(legend, ...boxes);
  find("outcomes").hidden = there.length === 0;
}

function filtered(tolds) {
  const checked = [...find("outcomes").querySelectorAll("input:checked")].map((box) => box.value);
  const words = find("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  return tolds.filter((told) => checked.includes(told[1]) && words.every((word) =>
    [told[0], told[2], told[3]].some((text) => run.texts[text].toLowerCase().includes(word))));
}

function drawFunctions() {
  const order = [...opened.functions].sort((a, b) => ORDER.indexOf(a.outcome) - ORDER.indexOf(b.outcome));
  const shown = order.map((one) => ({ ...one, cases: filtered(one.cases), recorded: filtered(one.recorded) }))
    .filter((one) => one.missing || one.cases.length || one.recorded.length);
  find("functions").replaceChildren(...shown.map((one) => drawFunction(one, shown.length === 1)));
  if (!shown.length) find("functions").append(make("p", { className: "nothing" }, "No case is like that."));
}

function drawFunction(one, isOpen) {
  const numbers = [one.cases.length ? count(one.cases.length, "case") : "",
    one.recorded.length ? `${one.recorded.length.toLocaleString("en")} recorded` : ""].filter(Boolean).join(", ");
  const inside = make("div");
  const details = make("details", { className: "function" }, make("summary", {}, mark(one.outcome),
    make("span", { className: "name" }, ...one.name.split(/(?<=\.)/).flatMap((part) => [part, make("wbr")])),
    make("span", { className: "number" }, [one.missing ? "missing" : "", numbers].filter(Boolean).join(", "))), inside);
  details.dataset.name = one.name;
  onceOpened(details, () => {
    if (!one.cases.length && !one.recorded.length) inside.append(make("p", { className: "nothing" }, "Nothing was asked."));
    const lists = [["generated", one.cases], ["recorded of the real framework, and replayed", one.recorded]];
    for (const [kind, tolds] of lists.sort((a, b) => worst(a[1]) - worst(b[1]))) {
      if (tolds.length) listCases(inside, kind, tolds, one.name);
    }
  });
  details.open = isOpen;
  return details;
}

function listCases(inside, kind, tolds, name) {
  const sorted = [...tolds].sort((a, b) => ORDER.indexOf(a[1]) - ORDER.indexOf(b[1]));
  const list = make("div");
  const more = make("button", { type: "button", className: "more" });
  const show = () => {
    const from = list.children.length;
    list.append(...sorted.slice(from, from + STEP).map((told) => drawCase(told, name)));
    const left = sorted.length - list.children.length;
    more.hidden = left === 0;
    more.textContent = `${Math.min(left, STEP)} more of ${left.toLocaleString("en")}`;
    if (from) list.children[from].querySelector("summary").focus();
  };
  more.onclick = show;
  inside.append(make("p", { className: "kind" }, kind), list, more);
  show();
}

function drawCase(told, name) {
  const [line, outcome] = told;
  const inside = make("div");
  const short = run.texts[line].replace(/^Case\('\w+'(, )?(.*)\)$/, (_, comma, rest) => rest || "as it is");
  const details = make("details", { className: "case" },
    make("summary", {}, mark(outcome), make("span", { className: "name" }, short)), inside);
  details.dataset.line = run.texts[line];
  onceOpened(details, () => inside.append(...caseParts(told, name)));
  return details;
}

function* caseParts([line, outcome, why, call, inputs, answers, recorded, expected, whose], name) {
  if (run.texts[why]) {
    const owner = run.texts[whose] ? `known deviation of ${run.texts[whose]}: ` : "";
    yield make("p", { className: `why ${outcome}` }, make("span", {}, owner + run.texts[why]));
  }
  const text = run.texts[call] || run.texts[line];
  const copy = make("button", { type: "button", className: "copy", onclick: () => copyText(copy, again(name, text)) },
    text.startsWith("Case(") ? "copy the command" : "copy");
  yield make("div", { className: "call" }, make("pre", {}, text), copy);
  if (inputs.length) yield drawRanks(inputs, expected, answers, recorded);
}

function again(name, text) { // what asks a case once more, in a shell
  return text.startsWith("Case(") ? `${run.command} --case "${name}: ${text}"` : text;
}

async function copyText(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    button.textContent = "the browser does not let this page copy";
  }
}

function drawRanks(inputs, expected, answers, recorded) {
  const parts = [["given", inputs], ["expected", expected], ["answered", answers], ["real framework", recorded]]
    .filter(([, texts]) => texts.some((text) => run.texts[text]));
  const ranks = [...Array(Math.max(inputs.length, answers.length)).keys()];
  const rows = ranks.map((rank) => make("tr", {}, make("th", { scope: "row" }, `rank ${rank}`),
    ...parts.map(([what, texts]) => make("td", { "data-what": what },
      make("div", {}, rank in texts ? run.texts[texts[rank]] : "")))));
  const heads = parts.map(([what]) => make("th", { scope: "col" }, what));
  return make("table", { className: "ranks" }, make("thead", {}, make("tr", {}, make("td"), ...heads)),
    make("tbody", {}, ...rows));
}

function onceOpened(details, fill) {
  details.addEventListener("toggle", () => details.open && fill(), { once: true });
}

function openFromAddress() {
  const wanted = decodeURI(location.hash.slice(1));
  const button = [...find("grid").querySelectorAll("button")].find((one) => one.dataset.key === wanted);
  if (button) button.click();
}

async function start() {
  run = await unpacked(find("data").textContent);
  drawHeader();
  drawGrid();
  find("grid").addEventListener("keydown", move);
  find("close").onclick = close;
  find("words").oninput = drawFunctions;
  find("filter").onsubmit = (event) => event.preventDefault();
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !find("panel").hidden) close();
  });
  openFromAddress();
}

start();
