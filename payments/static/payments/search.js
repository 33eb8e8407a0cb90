// Leave empty fields out of the address of a search.
document.getElementById("search").addEventListener("formdata", ({ formData }) => {
    const filled = [...formData].filter(([, value]) => value);
    for (const name of new Set(formData.keys())) formData.delete(name);
    for (const [name, value] of filled) formData.append(name, value);
});
