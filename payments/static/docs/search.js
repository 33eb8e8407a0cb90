// Searches the sections of all pages. The index is loaded when the reader first uses the search.
const RESULTS_MAX = 12;
const CHARACTERS_BEFORE = 40;
const CHARACTERS_AFTER = 100;

const form = document.querySelector(".search");
const input = form.querySelector("input");
const panel = form.querySelector(".results");
const status = panel.querySelector("p");
const list = panel.querySelector("ul");
let index = null;

const loadIndex = async () => {
  const response = await fetch(form.dataset.index);
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
};

const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);

// Return a section's rank. 0 is best: all words are in the title. A word in the text adds 1, a word in an example 2. The
// rank is infinite if a word is missing.
const rank = ({ title, text, examples }, words) => {
  const parts = [title, text, examples].map((part) => part.toLowerCase());
  const ranks = words.map((word) => parts.findIndex((part) => part.includes(word)));
  return ranks.includes(-1) ? Infinity : ranks.reduce((sum, one) => sum + one);
};

const search = (sections, words) =>
  sections
    .map((section) => ({ section, rank: rank(section, words) }))
    .filter((match) => match.rank < Infinity)
    .sort((one, other) => one.rank - other.rank)
    .map((match) => match.section);

const element = (name, text, className = "") => {
  const created = document.createElement(name);
  created.textContent = text;
  created.className = className;
  return created;
};

// Return the text around the first word that it contains, with the word marked.
const excerpt = (text, words) => {
  const lower = text.toLowerCase();
  const word = words.find((candidate) => lower.includes(candidate)) ?? "";
  const start = Math.max(lower.indexOf(word), 0);
  const end = start + word.length;
  const from = Math.max(start - CHARACTERS_BEFORE, 0);
  const before = `${from > 0 ? "…" : ""}${text.slice(from, start)}`;
  const after = text.slice(end, end + CHARACTERS_AFTER);
  const isCut = end + CHARACTERS_AFTER < text.length;
  const created = element("span", before, "excerpt");
  created.append(element("mark", text.slice(start, end)), after, isCut ? "…" : "");
  return created;
};

const resultItem = ({ url, page, title, text, examples }, words) => {
  const link = element("a", "");
  link.href = url;
  const pageName = title === page ? "" : page;
  link.append(element("strong", title), " ", element("span", pageName, "page-name"), excerpt(`${text} ${examples}`, words));
  const item = document.createElement("li");
  item.append(link);
  return item;
};

const statusFor = (count) => {
  if (count === 0) return `No results for “${input.value.trim()}”.`;
  if (count > RESULTS_MAX) return `${count} results. The first ${RESULTS_MAX}:`;
  return count === 1 ? "1 result" : `${count} results`;
};

const close = () => { panel.hidden = true; };

const update = async () => {
  let sections;
  try {
    index ??= loadIndex();
    sections = await index;
  } catch {
    index = null;
    list.replaceChildren();
    status.textContent = "The search is not available now. Try again later.";
    panel.hidden = false;
    return;
  }
  const words = wordsOf(input.value);
  if (words.length === 0) {
    close();
    return;
  }
  const matches = search(sections, words);
  list.replaceChildren(...matches.slice(0, RESULTS_MAX).map((section) => resultItem(section, words)));
  status.textContent = statusFor(matches.length);
  panel.hidden = false;
};

// Move the focus from the input to the results, and between them.
const move = (step) => {
  const stops = [input, ...list.querySelectorAll("a")];
  const next = stops[stops.indexOf(document.activeElement) + step];
  next?.focus();
};

const actions = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Escape: () => {
    input.value = "";
    input.focus();
    close();
  },
};

form.hidden = false;
input.addEventListener("input", update);
input.addEventListener("focus", update);
list.addEventListener("click", close);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  await update();
  list.querySelector("a")?.click();
});

form.addEventListener("keydown", (event) => {
  if (panel.hidden || !(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
});

form.addEventListener("focusout", (event) => {
  if (!form.contains(event.relatedTarget)) close();
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  input.focus();
});
