// A click on a row opens its payment, like its link. A text that the pointer selects stays selected. A click that closes
// a menu does only that.
let closesMenu = false;
document.addEventListener("pointerdown", () => { closesMenu = Boolean(document.querySelector("details.menu[open]")); });
document.querySelector("table.payments tbody")?.addEventListener("click", ({ target, ctrlKey, metaKey }) => {
    if (target.closest("a, button") || closesMenu || String(getSelection())) return;
    const { href } = target.closest("tr").querySelector("th.id a");
    if (ctrlKey || metaKey) open(href);
    else location.href = href;
});
