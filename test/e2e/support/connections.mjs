// Requests over a connection of their own each (unless given an `agent`), of any kind: TCP, TLS or a Unix socket.
import http from "node:http";
import https from "node:https";

// `where` is a URL, or { socketPath }; resolves to { status, headers, body }.
export function ask(where, path, { body, headers = {}, ...options } = {}) {
  const target = typeof where === "string" ? new URL(path, where) : { path, ...where };
  const json = body === undefined ? undefined : JSON.stringify(body);
  const all = {
    agent: false, method: json === undefined ? "GET" : "POST", ...options,
    headers: json === undefined ? headers : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(json), ...headers },
  };
  return new Promise((resolve, reject) => {
    const answered = (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; });
      response.on("error", reject).on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
    };
    const client = target instanceof URL && target.protocol === "https:" ? https : http;
    const request = target instanceof URL ? client.request(target, all, answered) : client.request({ ...target, ...all }, answered);
    request.on("error", reject).end(json);
  });
}
