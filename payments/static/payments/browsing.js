// DRF's page does not declare its language.
document.documentElement.lang = "en";

prettyPrint();

// Leave out empty fields, which the API rejects, and send a metadata pair as the parameter `metadata[KEY]`.
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
