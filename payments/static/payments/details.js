// On a phone, the navigation scrolls: show the entry of this page.
document.querySelector("nav.site [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// Escape closes a menu that its summary has opened, and returns to the summary. A click elsewhere closes menus.
const OPEN_MENU = "details.menu[open], details.definitions[open]";

document.addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest(OPEN_MENU);
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
});
document.addEventListener("click", ({ target }) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = menu.contains(target);
});
