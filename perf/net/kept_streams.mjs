// Streams of completions that begin anew when they end, and the times between their events.
import { events, post } from "../../test/e2e/support/client.mjs";

// `gaps`: of all streams, when each gap ended and how long it was, in milliseconds.
export function keep_streams(url, wish, count) {
  const gaps = [];
  let is_over = false;
  const running = Array.from({ length: count }, async (_, seed) => {
    while (!is_over) {
      const response = await post(`${url}/v1/completions`, { ...wish, prompt: `Story ${seed}`, seed, ignore_eos: true, stream: true });
      let last = null;
      for await (const event of events(response)) {
        if (event.error) throw new Error(JSON.stringify(event.error));
        const now = performance.now();
        if (last !== null) gaps.push([now, now - last]);
        last = now;
        if (is_over) break;
      }
    }
  });
  const end_streams = () => {
    is_over = true;
    return Promise.all(running);
  };
  return { gaps, end_streams };
}
