// Writes the schemas of this folder anew from what the providers publish: what their clients expect of answers, without words.
//   npm install --prefix DIR ts-json-schema-generator@2.4.0 @anthropic-ai/sdk@1.11.0 ollama@0.6.4
//   node generate.mjs DIR OPENAPI_JSON COMMIT        # openapi.json of openai/openai-openapi at this commit
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const [folder, openapi, commit] = process.argv.slice(2);

// Kinds of items, tools and contents that no answer of ours has would be most of OpenAI's schema: of a union these stay.
const types = new Set(["message", "reasoning", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output", "compaction",
  "function", "custom", "namespace", "allowed_tools", "output_text", "input_text", "summary_text", "reasoning_text", "text", "grammar",
  "json_schema", "json_object", "refusal"]);

const events = ["response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "response.cancelled",
  "response.output_item.added", "response.output_item.done", "response.content_part.added", "response.content_part.done",
  "response.output_text.delta", "response.output_text.done", "response.reasoning_text.delta", "response.reasoning_text.done",
  "response.function_call_arguments.delta", "response.function_call_arguments.done",
  "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "error"];

// What decides which values are right; members beyond the declared ones are passed over by clients.
const keywords = ["type", "const", "enum", "required", "minimum", "maximum", "nullable"];
const lists = ["anyOf", "oneOf", "allOf"];

class Schemas {
  definitions = {};
  constructor(source, stays = () => true) { Object.assign(this, { source, stays }); }

  // The one value of the member `type`, or none.
  typeOf(schema) {
    if (schema.$ref) return this.typeOf(this.source[schema.$ref.split("/").pop()]);
    for (const part of schema.allOf ?? []) if (this.typeOf(part)) return this.typeOf(part);
    const type = schema.properties?.type;
    return type?.const ?? (type?.enum?.length === 1 ? type.enum[0] : undefined);
  }

  clean(schema) {
    if (typeof schema === "boolean") return schema;
    const out = {};
    for (const [key, value] of Object.entries(schema)) {
      if (key === "$ref") out.$ref = `#/$defs/${this.take(value.split("/").pop())}`;
      else if (key === "properties") out.properties = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.clean(one)]));
      else if (key === "items") out.items = this.clean(value);
      else if (key === "additionalProperties" && typeof value === "object") out.additionalProperties = this.clean(value);
      else if (lists.includes(key))  // alternatives may overlap where their words are all that tells them apart
        out[key === "oneOf" ? "anyOf" : key] = (key === "allOf" ? value : value.filter((one) => this.stays(this.typeOf(one)))).map((one) => this.clean(one));
      else if (keywords.includes(key)) out[key] = value;
    }
    if (out.anyOf?.some((one) => Object.keys(one).join() === "type" && one.type === "string"))  // any name, and then those of a provider's models
      out.anyOf = out.anyOf.filter((one) => !one.enum);
    if (out.anyOf?.length === 0) return { not: {} };
    if (out.nullable) {
      delete out.nullable;
      return { anyOf: [out, { type: "null" }] };
    }
    return out;
  }

  take(name) {
    const key = name.replace(/[^A-Za-z0-9_]/g, "_");
    if (!(key in this.definitions)) {
      this.definitions[key] = null;
      this.definitions[key] = this.clean(this.source[decodeURIComponent(name)]);
    }
    return key;
  }
}

function write(name, comment, schemas, roots) {
  const $defs = Object.fromEntries(Object.entries(schemas.definitions).sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = Object.entries($defs).map(([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  const places = Object.entries(roots).map(([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  writeFileSync(path.join(import.meta.dirname, name),
    `{\n  "$comment": ${JSON.stringify(comment)},\n  "roots": {\n${places.join(",\n")}\n  },\n  "$defs": {\n${lines.join(",\n")}\n  }\n}\n`);
}

// Members that are null in OpenAI's own answers, and in the examples of that document: what ended a choice that goes on, what an answer
// that is not complete has used, what a prompt's first token is scored with, and whom nobody named.
const nulls = ["CreateCompletionResponse.properties.choices.items.properties.finish_reason", "CreateCompletionResponse.properties.usage",
  "CreateCompletionResponse.properties.choices.items.properties.logprobs.anyOf.0.properties.token_logprobs.items",
  "CreateCompletionResponse.properties.choices.items.properties.logprobs.anyOf.0.properties.top_logprobs.items",
  "Response.allOf.2.properties.usage",
  "ModelResponseProperties.properties.user"];

function allow_null(source, place) {
  const steps = place.split(".");
  const last = steps.pop();
  const parent = steps.reduce((schema, step) => schema[step], source);
  parent[last] = { anyOf: [parent[last], { type: "null" }] };
}

function openai() {
  const schemas = new Schemas(JSON.parse(readFileSync(openapi, "utf8")).components.schemas, (type) => !type || types.has(type));
  for (const place of nulls) allow_null(schemas.source, place);
  const roots = Object.fromEntries(Object.entries({
    chat: "CreateChatCompletionResponse", chat_chunk: "CreateChatCompletionStreamResponse", completion: "CreateCompletionResponse",
    response: "Response", models: "ListModelsResponse", model: "Model", embeddings: "CreateEmbeddingResponse", refusal: "ErrorResponse",
    input_items: "ResponseItemList", input_tokens: "TokenCountsResource", compaction: "CompactResource",
  }).map(([key, name]) => [key, schemas.take(name)]));
  for (const { $ref } of schemas.source.ResponseStreamEvent.anyOf) {
    const name = $ref.split("/").pop();
    if (events.includes(schemas.typeOf({ $ref }))) roots[schemas.typeOf({ $ref })] = schemas.take(name);
  }
  write("openai.json", `From openapi.json of github.com/openai/openai-openapi, commit ${commit}; MIT License, Copyright (c) OpenAI`, schemas, roots);
}

// The types of a package as schemas, by names of our own.
function typescript(name, comment, source, wanted) {
  const file = path.join(folder, "roots.ts");
  const names = new Set(wanted.flatMap(([, type]) => type.match(/\b[A-Z]\w+(Response|Event|Message|Info|Count|Details)\b|\bMessage\b/g)));
  writeFileSync(file, `import type { ${[...names].join(", ")} } from "${source}";\n` +
    `export interface Roots { ${wanted.map(([key, type]) => `${key}: ${type}`).join("; ")} }\n`);
  writeFileSync(path.join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { target: "es2022", module: "nodenext", moduleResolution: "nodenext", strict: true, types: [], lib: ["es2022", "dom"] } }));
  const text = execFileSync(path.join(folder, "node_modules/.bin/ts-json-schema-generator"),
    ["--path", file, "--tsconfig", path.join(folder, "tsconfig.json"), "--type", "Roots", "--no-type-check", "--expose", "all"], { maxBuffer: 1 << 26 });
  const schemas = new Schemas(JSON.parse(text).definitions);
  const { properties } = schemas.source.Roots;
  for (const [key, schema] of Object.entries(properties)) if (!schema.$ref) schemas.source[key] = schema;
  const roots = Object.fromEntries(Object.entries(properties).map(([key, { $ref }]) => [key, schemas.take($ref?.split("/").pop() ?? key)]));
  write(name, comment, schemas, roots);
}

openai();
typescript("anthropic.json", "From the types of @anthropic-ai/sdk 1.11.0; Apache License 2.0, Copyright Anthropic, PBC", "@anthropic-ai/sdk/resources",
  [["message", "Message"], ["event", "RawMessageStreamEvent"], ["tokens", "MessageTokensCount"], ["model", "ModelInfo"], ["refusal", "ErrorResponse"]]);
// The interfaces also declare what Ollama leaves out of lines before the last one, and of lists what is empty. `context` is given up there,
// and what only a file in Ollama's own store has is no part of a list here.
typescript("ollama.json", "From the types of ollama 0.6.4 (github.com/ollama/ollama-js); MIT License, Copyright (c) 2023 Saul", "ollama/browser",
  [["chat", "ChatResponse"], ["chat_line", 'Pick<ChatResponse, "model" | "created_at" | "message" | "done">'],
    ["generate", 'Omit<GenerateResponse, "context">'], ["generate_line", 'Pick<GenerateResponse, "model" | "created_at" | "response" | "done">'],
    ["tags", '{ models: (Pick<ModelResponse, "name" | "model" | "modified_at"> & { details: Pick<ModelDetails, "family" | "families" | "parameter_size"> })[] }'],
    ["show", 'Pick<ShowResponse, "capabilities" | "modified_at" | "template"> & { model_info: object }'],
    ["refusal", "ErrorResponse"]]);
