// Requests as streams of one HTTP/2 session.
import http2 from "node:http2";

// A function that posts as `post` of client.mjs does: what it gives has `status` and, to be read once, `body`; `leave()` resets the stream.
export function session(t, url) {
  const connection = http2.connect(url, { rejectUnauthorized: false });
  connection.on("error", () => {});  // its streams tell it
  t.after(() => connection.destroy());
  return async (path, body) => {
    const stream = connection.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
    stream.end(JSON.stringify(body));
    const headers = await new Promise((resolve, reject) => stream.on("response", resolve).on("error", reject));
    return { status: headers[":status"], headers: new Headers({ "content-type": headers["content-type"] }), body: stream,
      leave: () => stream.close(http2.constants.NGHTTP2_CANCEL) };
  };
}

export async function text_of({ body }) {
  let text = "";
  for await (const part of body.setEncoding("utf8")) text += part;
  return text;
}
