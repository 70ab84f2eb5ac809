// A Redis, or a Valkey, for one test: BRAID_REDIS names the program.
import net from "node:net";
import path from "node:path";
import { Process, temporaryFolder } from "./processes.mjs";

// Without persistence, on a Unix socket. One that is to come back takes the socket of the one before.
export async function redis(t, args = [], socket = path.join(temporaryFolder(t), "redis")) {
  const server = new Process(t, process.env.BRAID_REDIS,
    ["--port", "0", "--unixsocket", socket, "--dir", path.dirname(socket), "--save", "", "--appendonly", "no", ...args]);
  await server.line(/Ready to accept connections/i);
  server.socket = socket;
  server.url = `unix://${socket}`;
  return server;
}

// What a Redis says to commands, each a list of words; values as they are.
export function say(server, ...commands) {
  return new Promise((resolve, reject) => {
    const connection = net.connect(server.socket);
    let text = "";
    connection.setEncoding("latin1").on("data", (data) => { text += data; }).on("error", reject).on("close", () => resolve(text));
    for (const words of [...commands, ["QUIT"]])
      connection.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
  });
}

export const keys = async (server) => (await say(server, ["KEYS", "*"])).split("\r\n").filter((line) => line.startsWith("braid:"));
