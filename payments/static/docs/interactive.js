// Swagger UI fills each parameter in with its example: it would ask for all of them at once.
const unfilledParameters = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (document) => {
          for (const { get } of Object.values(document.paths)) {
            for (const parameter of get.parameters) {
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
  plugins: [unfilledParameters],
  deepLinking: true,
});
