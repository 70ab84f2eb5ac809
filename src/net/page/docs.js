// What /openapi.json says, to be read: /docs.
const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
const json = (value) => element("pre", typeof value === "string" ? value : JSON.stringify(value, null, 2));

// Follows references within the document, and gathers the properties of all parts.
const resolve = (schema, all) => schema.$ref ? all[schema.$ref.split("/").pop()] : schema;
const properties = (schema, all) => {
  const found = resolve(schema, all);
  const parts = (found.allOf ?? found.anyOf ?? []).flatMap((part) => properties(part, all));
  return [...Object.entries(found.properties ?? {}), ...parts];
};
const range = (schema) => [
  schema.type ?? "", schema.enum ? schema.enum.join(", ") : "",
  "exclusiveMinimum" in schema ? `> ${schema.exclusiveMinimum}` : "", "minimum" in schema ? `≥ ${schema.minimum}` : "",
  "maximum" in schema ? `≤ ${schema.maximum}` : "", "default" in schema ? `default ${schema.default}` : ""].filter(Boolean).join(", ");
const table = (schema, all) => element("table", "", ...properties(schema, all).map(([name, each]) => {
  const found = resolve(each, all);
  return element("tr", "", element("td", "", element("code", name)), element("td", range(found)), element("td", found.description ?? ""));
}));

const show = (path, method, operation, all) => {
  const details = element("details", "", element("summary", "",
    element("code", `${method.toUpperCase()} ${path}`), element("span", operation.summary)));
  const body = operation.requestBody?.content["application/json"];
  if (body) details.append(element("h4", "Request"), table(body.schema, all), json(body.example));
  for (const [type, content] of Object.entries(operation.responses[200]?.content ?? {})) {
    details.append(element("h4", `Response: ${type}`), table(content.schema, all), json(content.example));
  }
  return details;
};

fetch("openapi.json").then((response) => response.json()).then((api) => {
  document.querySelector("#about").textContent = api.info.description;
  for (const { name } of api.tags) {
    const section = element("section", "", element("h2", name));
    for (const [path, methods] of Object.entries(api.paths))
      for (const [method, operation] of Object.entries(methods))
        if (operation.tags.includes(name)) section.append(show(path, method, operation, api.components.schemas));
    document.querySelector("main").append(section);
  }
});
