// A server that passes everything on to `upstream` but chats, which it answers itself: `text` in pieces of four characters, `rate` of them
// a second, as steadily as a timer is.
import http from "node:http";

const chunk = (delta, finish = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

function answer(response, text, rate) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const begin = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.floor((performance.now() - begin) * rate / 1000) * 4;
    for (; sent < Math.min(due, text.length); sent += 4) response.write(chunk({ content: text.slice(sent, sent + 4) }));
    if (sent < text.length) return;
    clearInterval(timer);
    response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
  }, 10);
  response.on("close", () => clearInterval(timer));
}

export async function stream_in_front(t, upstream, text, rate) {
  const server = http.createServer((request, response) => {
    if (request.url === "/v1/chat/completions") return request.resume().on("end", () => answer(response, text, rate));
    const { hostname, port } = new URL(upstream);
    const passed = http.request({ hostname, port, method: request.method, path: request.url, headers: request.headers }, (got) => {
      response.writeHead(got.statusCode, got.headers);
      got.pipe(response);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }));
  return `http://127.0.0.1:${server.address().port}`;
}
