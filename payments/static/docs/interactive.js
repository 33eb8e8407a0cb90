// Swagger UI's dark colours follow the browser, like those of all pages.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const useColours = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
useColours();
dark.addEventListener("change", useColours);

// Remove the examples: Swagger UI would fill in all parameters, and send them all.
const withoutParameterExamples = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (document) => {
          for (const operation of Object.values(document.paths).flatMap(Object.values)) {
            for (const parameter of operation.parameters ?? []) {
              delete parameter.example;
              parameter.examples = {};
            }
          }
          return update(document);
        },
      },
    },
  },
});

SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.openapi,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [withoutParameterExamples],
  deepLinking: true,
  syntaxHighlight: { theme: "tomorrow-night" },  // with enough contrast
});
