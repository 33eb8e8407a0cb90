// Show other figures as soon as the pointer chooses in a menu. The keyboard passes other choices on its way, and dates
// need both fields: there the button shows the figures.
const selection = document.getElementById("selection");
let usesKeyboard = false;
selection?.addEventListener("keydown", () => { usesKeyboard = true; });
selection?.addEventListener("pointerdown", () => { usesKeyboard = false; });
selection?.addEventListener("change", ({ target }) => { if (!usesKeyboard && target.type !== "date") selection.requestSubmit(); });

// A preset needs no dates in the address.
selection?.addEventListener("formdata", ({ formData }) => {
    if (formData.get("period") !== "custom") for (const name of ["since", "until"]) formData.delete(name);
});

// After a step back, the menus are those of the figures.
window.addEventListener("pageshow", () => selection?.reset());
