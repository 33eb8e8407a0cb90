// Show other figures as soon as a menu changes. Dates are complete only when the button says so.
const selection = document.getElementById("selection");
selection?.addEventListener("change", ({ target }) => { if (target.type !== "date") selection.requestSubmit(); });

// A preset needs no dates in the address.
selection?.addEventListener("formdata", ({ formData }) => {
    if (formData.get("period") !== "custom") for (const name of ["since", "until"]) formData.delete(name);
});

// After a step back, the menus are those of the figures.
window.addEventListener("pageshow", () => selection?.reset());
