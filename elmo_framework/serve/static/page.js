"use strict";
/* Text reaches the document as text only: nothing of an answer is ever parsed as HTML. */
const PALETTE = 8, SHOWN_LABELS = 12, WINDOW = 12;
const state = { token: "", runs: [], colors: new Map() };
const byId = (id) => document.getElementById(id);

function make(name, options = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const color = (label) => {
  if (!state.colors.has(label)) state.colors.set(label, state.colors.size % PALETTE);
  return `c${state.colors.get(label)}`;
};
const percent = (value) => `${(100 * value).toFixed(1)} %`;

function bars(rows) {
  const list = make("dl", { class: "bars" });
  for (const { name, value, text, best } of rows) {
    const fill = make("i");
    fill.style.width = `${100 * Math.min(1, Math.max(0, value))}%`;
    const style = best ? "best" : "";
    list.append(make("dt", { class: style }, name),
      make("dd", { "aria-hidden": "true" }, make("span", { class: "bar" }, fill)),
      make("dd", { class: `number ${style}` }, text));
  }
  return list;
}

/* The words of a text, as they were written where their places are known. Where `look` is given,
   each is a button that calls it with its position. */
class Words {
  constructor(words, { text, offsets, look } = {}) {
    const points = Array.from(text || ""); // offsets count characters of Unicode
    const slice = (start, end) => points.slice(start, end).join("");
    const isKnown = offsets && words.every((word, index) => slice(...offsets[index]) === word);
    this.gap = (index) => isKnown ? slice(offsets[index - 1][1], offsets[index][0]) : " ";
    this.words = words;
    this.look = look;
  }
  one(index) {
    const word = this.words[index];
    if (!this.look) return document.createTextNode(word);
    const onclick = () => this.look(this.words, index);
    return make("button", { type: "button", class: "word", onclick }, word);
  }
  between(start, end) {
    const nodes = [];
    for (let index = start; index < end; index++) {
      if (index > start) nodes.push(this.gap(index));
      nodes.push(this.one(index));
    }
    return nodes;
  }
  /* Calls `wrap(nodes, span)` for spans in order, without overlap; `end` is exclusive. */
  around(spans, wrap) {
    const parts = [];
    let position = 0;
    const add = (nodes, end) => {
      if (position && end > position) parts.push(this.gap(position));
      parts.push(...nodes);
      position = end;
    };
    for (const span of spans) {
      add(this.between(position, span.start), span.start);
      add([wrap(this.between(span.start, span.end), span)], span.end);
    }
    add(this.between(position, this.words.length), this.words.length);
    return parts;
  }
}

const paragraph = (nodes) => make("p", { class: "text" }, ...nodes);

function legend(labels) {
  const items = [...labels].map(([label, count]) =>
    make("li", { class: `span ${color(label)}` }, `${label} ${count}`));
  return items.length ? [make("ul", { class: "legend", "aria-label": "Labels" }, ...items)] : [];
}

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
  return counts;
}

function showTags({ words: list, tags, spans, ...places }) {
  const words = new Words(list, places);
  if (spans.length || tags.every((tag) => tag === "O")) {
    const title = (probability) => probability === undefined ? {} : { title: percent(probability) };
    const wrap = (nodes, { label, probability }) =>
      make("span", { class: `span ${color(label)}`, ...title(probability) }, ...nodes,
        make("span", { class: "label" }, label));
    return [paragraph(words.around(spans, wrap)), ...legend(counted(spans.map((each) => each.label)))];
  }
  const tagged = tags.map((tag, index) => make("span", { class: "tagged" },
    make("span", {}, words.one(index)), make("span", { class: "label" }, tag)));
  return [paragraph(tagged.flatMap((node) => [node, " "]))];
}

function showRoles({ words: list, verbs, ...places }) {
  const words = new Words(list, places);
  if (!verbs.length) return [paragraph(words.between(0, list.length)), note("No predicates.")];
  return verbs.map((verb) => {
    const wrap = (nodes, { start, end, label }) => {
      const isPredicate = start <= verb.predicate && verb.predicate < end && label === "V";
      const style = `role ${color(label)}${isPredicate ? " predicate" : ""}`;
      return make("span", { class: style }, make("span", {}, ...nodes),
        make("span", { class: "label" }, label));
    };
    return make("div", { class: "roles" }, make("h3", {}, verb.verb),
      paragraph(words.around(verb.arguments, wrap)));
  });
}

function showClusters({ document: list, clusters, texts, ...places }) {
  const words = new Words(list, places), root = make("div");
  const activate = (cluster) => {
    root.classList.toggle("has-active", cluster !== null);
    for (const node of root.querySelectorAll("[data-cluster]")) {
      node.classList.toggle("active", node.dataset.cluster === String(cluster));
    }
  };
  const interactive = (cluster) => ({
    tabindex: "0", "data-cluster": cluster,
    onmouseover: (event) => { event.stopPropagation(); activate(cluster); },
    onmouseout: () => activate(null), onfocus: () => activate(cluster), onblur: () => activate(null),
  });
  const mentions = clusters.flatMap((cluster, number) =>
    cluster.map(([start, last]) => ({ start, end: last + 1, number })));
  mentions.sort((one, other) => one.start - other.start || other.end - one.end);
  let next = 0;
  const between = (start, end) => {
    const nodes = [];
    let position = start;
    while (position < end) {
      if (position > start) nodes.push(words.gap(position));
      const mention = mentions[next];
      if (mention && mention.start <= position) {
        next++;
        const inner = between(position, Math.min(mention.end, end));
        const options = { class: `mention c${mention.number % PALETTE}`, ...interactive(mention.number) };
        nodes.push(make("span", options, ...inner, make("sub", {}, mention.number + 1)));
        position = Math.max(position + 1, Math.min(mention.end, end));
      } else nodes.push(words.one(position++));
    }
    return nodes;
  };
  root.append(paragraph(between(0, list.length)));
  if (!clusters.length) root.append(note("No clusters."));
  root.append(...texts.map((mentionTexts, number) => make("p", { class: "soft" },
    make("span", { class: `mention c${number % PALETTE}`, ...interactive(number) }, number + 1),
    ` ${mentionTexts.join(", ")}`)));
  return [root];
}

function showAnswer({ question, passage, answer, start, end, no_answer_probability: none }) {
  const points = Array.from(passage); // offsets count characters of Unicode
  const text = (from, to) => points.slice(from, to).join("");
  const whole = start === null ? [passage]
    : [text(0, start), make("mark", { class: "answer" }, text(start, end)), text(end)];
  const probability = none === undefined ? []
    : [bars([{ name: "no answer", value: none, text: percent(none), best: start === null }])];
  return [make("h3", {}, question), make("p", { class: "best" }, start === null ? "No answer." : answer),
    make("p", {}, ...whole), ...probability];
}

function showSenses({ words: list, targets, ...places }) {
  const spans = [...targets].sort((one, other) => one.start - other.start);
  const wrap = (nodes, { sense, lemma }) => make("span", { class: `span ${color(lemma)}` }, ...nodes,
    make("span", { class: "label" }, sense === null ? "unknown" : sense));
  return [paragraph(new Words(list, places).around(spans, wrap))];
}

function showLabel({ look, explain, ...prediction }) {
  const texts = Object.entries(prediction).filter(([key, value]) =>
    key !== "labels" && Array.isArray(value) && value.every((word) => typeof word === "string"));
  const labels = prediction.labels || [prediction.label];
  const rows = Object.entries(prediction.probabilities).sort((one, other) => other[1] - one[1]);
  const named = rows.map(([name, value]) =>
    ({ name, value, text: percent(value), best: labels.includes(name) }));
  const more = rows.length > SHOWN_LABELS ? [note(`and ${rows.length - SHOWN_LABELS} more labels`)] : [];
  const plain = texts.map(([, words]) => paragraph(new Words(words, { look }).between(0, words.length)));
  const section = make("div", {}, ...plain);
  const button = explain && make("button", { type: "button", class: "explain",
    onclick: () => explain(section) }, "Which words speak for it?");
  return [section, bars(named.slice(0, SHOWN_LABELS)), ...more, ...(button ? [button] : [])];
}

const note = (text) => make("p", { class: "soft" }, text);

/* A view is chosen by the keys of a prediction, so that those of plugins are shown too. */
const VIEWS = [["spans", showTags], ["verbs", showRoles], ["clusters", showClusters],
  ["answer", showAnswer], ["targets", showSenses], ["probabilities", showLabel]];

/* The words of an explanation, shaded by how much they speak for the label or against it. */
function shaded({ label, probability, sentences }) {
  const most = Math.max(...sentences.flatMap(({ scores }) => scores.map(Math.abs)), 1e-9);
  const word = (text, score) => {
    const node = make("span", { class: score < 0 ? "against" : "for", title: score.toFixed(3) }, text);
    node.style.setProperty("--strength", `${Math.round(75 * Math.abs(score) / most)}%`);
    return node;
  };
  return [...sentences.map(({ words, scores }) =>
    paragraph(words.flatMap((text, index) => [word(text, scores[index]), " "]))),
  make("p", { class: "legend" }, make("span", { class: "for" }, `for ${label}`),
    make("span", { class: "against" }, "against it"), percent(probability))];
}

const explanation = (run, input, word) =>
  ask(`explain/${encodeURIComponent(run.name)}`, word === undefined ? { input } : { input, word });

function show(prediction, run, input) {
  const [, view] = VIEWS.find(([key]) => key in prediction) || [];
  const isTagged = "tags" in prediction && run.has_explanations;
  const look = (words, position) => lookAt(run, words, position, isTagged ? input : undefined);
  const explain = async (section) => {
    const answer = await explanation(run, input);
    if (answer) section.replaceChildren(...shaded(answer));
  };
  const extended = { ...prediction, text: textOf(input),
    look: run.has_neighbors || isTagged ? look : null, explain: run.has_explanations ? explain : null };
  const raw = make("details", {}, make("summary", {}, "JSON"),
    make("pre", {}, JSON.stringify(prediction, null, 1)));
  raw.open = !view;
  return make("article", { class: "card" }, ...(view ? view(extended) : []), raw);
}

const textOf = (input) => typeof input === "string" ? input : input.document || input.sentence;

function showWeights(run) {
  const mixes = Object.entries(run.layer_weights).map(([name, { gamma, ...weights }]) =>
    [name, gamma, Object.values(weights)]).filter(([, , weights]) => weights.length);
  byId("weights").hidden = !mixes.length;
  byId("weights").replaceChildren(make("h2", {}, "Layer weights"),
    ...mixes.flatMap(([name, gamma, weights]) => [
      make("h3", {}, `${name}, scale ${gamma.toFixed(2)}`),
      bars(weights.map((value, layer) => ({ name: `layer ${layer}`, value, text: percent(value) }))),
    ]));
}

/* Show why a word has its tag, if `input` is given, and the nearest uses of the word. */
async function lookAt(run, words, position, input) {
  const panel = byId("word"), title = make("h2", {}, `“${words[position]}” …`);
  panel.hidden = false;
  panel.replaceChildren(title);
  panel.scrollIntoView({ block: "nearest" });
  const parts = [];
  if (input !== undefined) {
    const answer = await explanation(run, input, position);
    if (answer) parts.push(make("h3", {}, `Words that speak for ${answer.label}`), ...shaded(answer));
  }
  if (run.has_neighbors) {
    const answer = await ask(`neighbors/${encodeURIComponent(run.name)}`, { words, position });
    if (answer) parts.push(...uses(answer));
  }
  if (!title.isConnected) return; // another word was chosen meanwhile
  title.textContent = `“${words[position]}”`;
  panel.append(...parts);
  panel.hidden = !parts.length;
  panel.focus();
}

function uses({ num_compared: number, layers }) {
  if (!number) return [note("The corpus has no other sentence with this word.")];
  const use = ({ similarity, parts: [before, word, after] }) => make("li", {},
    make("span", { class: "number soft" }, `${similarity.toFixed(2)} `),
    `${before.split(" ").slice(-WINDOW).join(" ")} `, make("mark", {}, word),
    ` ${after.split(" ").slice(0, WINDOW).join(" ")}`);
  return layers.flatMap(({ layer, neighbors }) => [
    make("h3", {}, `Nearest uses in the corpus, layer ${layer}`),
    make("ul", { class: "uses" }, ...neighbors.map(use))]);
}

async function ask(path, body) {
  byId("problem").hidden = true;
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const options = body ? { method: "POST", body: JSON.stringify(body),
    headers: { ...headers, "Content-Type": "application/json" } } : { headers };
  let problem = "The server does not answer.";
  try {
    const response = await fetch(path, options), answer = await response.json();
    if (response.ok) return answer;
    problem = answer.error.message;
    if (response.status === 401) {
      byId("login").hidden = false;
      byId("form").hidden = true;
      if (!state.token) problem = "";
    }
  } catch (error) { console.warn(error); }
  byId("problem").textContent = problem;
  byId("problem").hidden = !problem;
  return null;
}

/* The fields of a form: name, label, number of lines. */
const ONE_LINE_EACH = "Text, one per line";
const FORMS = [
  ["premise", [["premise", "Premise", 2], ["hypothesis", "Hypothesis", 2]]],
  ["question", [["question", "Question", 1], ["passage", "Passage", 7]]],
  ["document", [["document", "Document", 7]]],
  ["targets", [["sentence", "Sentence", 2], ["targets", "Targets, as JSON", 3]]],
  ["sentence", [["", ONE_LINE_EACH, 3]]],
];
const chosen = () => state.runs[byId("run").selectedIndex];

function showForm() {
  const run = chosen();
  const [, fields] = FORMS.find(([key]) => run.inputs.includes(key)) || ["", [["json", "Input, as JSON", 5]]];
  byId("fields").replaceChildren(...fields.flatMap(([name, label, rows]) => [
    make("label", { for: `field-${name}` }, label),
    make("textarea", { id: `field-${name}`, name, rows, spellcheck: "false" })]));
  for (const id of ["results", "word"]) byId(id).replaceChildren();
  byId("word").hidden = true;
  byId("about").textContent = `${run.name}: ${run.task.replace(/(?!^)[A-Z]/g, " $&").toLowerCase()}`;
  showWeights(run);
}

function readInputs() {
  const fields = [...byId("fields").querySelectorAll("textarea")];
  const lines = fields[0].value.split("\n").filter((line) => line.trim());
  if (fields[0].name === "") return lines;
  if (fields[0].name === "json") return [JSON.parse(fields[0].value)];
  const value = (field) => field.name === "targets" ? JSON.parse(field.value) : field.value;
  return [Object.fromEntries(fields.map((field) => [field.name, value(field)]))];
}

async function predict(event) {
  event.preventDefault();
  const run = chosen(), button = byId("predict");
  if (button.disabled) return; // Ctrl+Enter submits all the same
  let inputs;
  try { inputs = readInputs(); } catch (error) {
    byId("problem").textContent = `This is not JSON: ${error.message}`;
    byId("problem").hidden = false;
    return;
  }
  if (!inputs.length) return;
  button.disabled = true;
  const answer = await ask(`predict/${encodeURIComponent(run.name)}`, { inputs });
  button.disabled = false;
  if (answer && run === chosen()) {
    byId("word").hidden = true;
    byId("word").replaceChildren();
    byId("results").replaceChildren(...answer.predictions.map((each, index) => show(each, run, inputs[index])));
  }
}

async function begin() {
  const answer = await ask("runs");
  if (!answer) return;
  state.runs = answer.runs;
  byId("login").hidden = true;
  byId("form").hidden = !state.runs.length;
  if (!state.runs.length) {
    byId("results").replaceChildren(note("This server has encoders only: ask for vectors at /embed."));
    return;
  }
  byId("run").replaceChildren(...answer.runs.map((run) => make("option", {}, run.name)));
  byId("choice").hidden = answer.runs.length < 2;
  showForm();
}

byId("run").addEventListener("change", showForm);
byId("form").addEventListener("submit", predict);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("token").value.trim();
  begin();
});
begin();
