// Escape closes a menu that its summary has opened, and returns to the summary.
document.addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest("details.column-choice[open], details.definitions[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
});
