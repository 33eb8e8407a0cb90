// DRF's page does not say in which language it is.
document.documentElement.lang = "en";

prettyPrint();

// A field that was left empty is no parameter, and a pair of metadata is one of its own.
document.getElementById("filters")?.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) {
    if (!value) formData.delete(name);
  }
  const pair = formData.get("metadata");
  if (pair) {
    const [key, ...value] = pair.split("=");
    formData.append(`metadata[${key}]`, value.join("="));
  }
  formData.delete("metadata");
});
