// Requests to the server that the page came from, with the key that the browser keeps.

const kKey = "braid.key";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const key = () => localStorage.getItem(kKey) ?? "";
export function keep_key(value) {
  if (value) localStorage.setItem(kKey, value);
  else localStorage.removeItem(kKey);
}

// Told when the server refuses for want of a right key.
let on_key_wanted = () => {};
export function when_key_is_wanted(handler) { on_key_wanted = handler; }

async function sentence_of(response) {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    return error?.message ?? error ?? text;
  } catch {
    return text || `${response.status} ${response.statusText}`;
  }
}

// A path without a leading slash, so that the page works behind a prefix, too.
export async function request(path, { body, signal, method } = {}) {
  const headers = {};
  if (key()) headers.authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(new URL(path, document.baseURI), {
    method: method ?? (body === undefined ? "GET" : "POST"), headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  if (response.status === 401) on_key_wanted();
  throw new ApiError(response.status, await sentence_of(response));
}

export const get_json = async (path, options) => (await request(path, options)).json();

// The data of a stream's events as they come, but for "[DONE]".
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

// Whether the server has a route, by its own description.
let described = null;
export async function has_route(path) {
  described ??= get_json("openapi.json").catch(() => ({ paths: {} }));
  return path in (await described).paths;
}
