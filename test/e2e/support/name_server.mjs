// A name server for one test: `names` says which IPv4 address each name stands for, and may be changed.
import dgram from "node:dgram";

export async function name_server(t, names) {
  const socket = dgram.createSocket("udp4");
  t.after(() => socket.close());
  socket.on("message", (question, from) => {
    const labels = [];
    let at = 12;
    for (; question[at] > 0; at += 1 + question[at]) labels.push(question.toString("latin1", at + 1, at + 1 + question[at]));
    const address = names.get(labels.join(".").toLowerCase());
    const is_found = address !== undefined && question.readUInt16BE(at + 1) === 1;  // an A record
    const answer = Buffer.from([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...(address ?? "0.0.0.0").split(".").map(Number)]);
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(is_found ? 1 : 0, 6);
    header.fill(0, 8);
    socket.send(Buffer.concat([header, question.subarray(12, at + 5), ...(is_found ? [answer] : [])]), from.port, from.address);
  });
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket.address().port;
}
