// The key / leads to the search box.
document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    document.querySelector("#search [name=q]").focus();
});

// Leave empty fields out of the address of a search.
document.getElementById("search").addEventListener("formdata", ({ formData }) => {
    const filled = [...formData].filter(([, value]) => value);
    for (const name of new Set(formData.keys())) formData.delete(name);
    for (const [name, value] of filled) formData.append(name, value);
});

// Escape takes back the choices of a menu.
document.getElementById("search").addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest("details.menu[open]");
    if (!menu) return;
    for (const option of menu.querySelectorAll("option")) option.selected = option.defaultSelected;
    for (const input of menu.querySelectorAll("input")) {
        if (input.type === "checkbox") input.checked = input.defaultChecked;
        else input.value = input.defaultValue;
    }
});

// A preset replaces the dates, and a date needs the period "Custom dates".
const { period, since, until } = document.getElementById("search").elements;
for (const date of [since, until]) date.addEventListener("change", () => { period.value = date.value ? "custom" : period.value; });
period.addEventListener("change", () => { if (period.value !== "custom") since.value = until.value = ""; });
