// The search box of the switcher: it hides the organizations whose name and ID lack the text. Enter chooses the first of
// the others, unless the service knows more organizations.
const filter = document.querySelector("form.filter-choices");
const choices = filter ? [...filter.parentElement.querySelectorAll(".choices li")] : [];

filter?.addEventListener("input", () => {
    const text = filter.elements.q.value.trim().toLowerCase();
    for (const choice of choices) choice.hidden = !choice.textContent.toLowerCase().includes(text);
});
filter?.addEventListener("submit", (event) => {
    const first = choices.find((choice) => !choice.hidden);
    if (!first || !("complete" in filter.dataset)) return;
    event.preventDefault();
    first.querySelector("button").click();
});
filter?.closest("details").addEventListener("toggle", ({ target }) => { if (target.open) filter.elements.q.focus(); });
