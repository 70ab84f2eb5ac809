// What the engine room shows, out of two readings of /v1/metrics. Pure.

// The sum of a family over its labels (several models), or over those that match.
export function value(metrics, name, labels = {}) {
  const values = metrics[`braid_${name}`]?.values ?? [];
  const fits = (each) => Object.entries(labels).every(([key, wanted]) => each.labels?.[key] === wanted);
  return values.filter(fits).reduce((sum, each) => sum + (each.value ?? 0), 0);
}

// How much a counter grew; from 0 where the server began anew.
export function growth(before, now, name) {
  const grown = value(now, name) - value(before, name);
  return grown >= 0 ? grown : value(now, name);
}

// The bound below which `share` of what a histogram counted between two readings lies; null when it counted nothing.
export function percentile(before, now, name, share) {
  const counts = new Map();
  const add = (metrics, sign) => {
    for (const { buckets } of metrics[`braid_${name}`]?.values ?? []) {
      for (const { le, count } of buckets) {
        const bound = le ?? Infinity;  // JSON has no word for it
        counts.set(bound, (counts.get(bound) ?? 0) + sign * count);
      }
    }
  };
  add(now, 1);
  add(before, -1);
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  const all = counts.get(bounds.at(-1)) ?? 0;
  if (!(all > 0)) return null;
  return bounds.find((bound) => counts.get(bound) >= share * all);
}

// Blocks of the pool by state; they add up to `all`.
export function pool(metrics) {
  const all = value(metrics, "kv_blocks_total");
  const free = value(metrics, "kv_blocks_free");
  const cached = value(metrics, "kv_blocks_cached");
  return { all, held: all - free, cached, empty: free - cached };
}

// Rates of the time between two readings, `seconds` apart.
export function rates(before, now, seconds) {
  const per_second = (name) => growth(before, now, name) / seconds;
  const hits = growth(before, now, "prefix_cache_hit_tokens_total");
  const looked_up = hits + growth(before, now, "prefix_cache_miss_tokens_total");
  return {
    generated: per_second("generation_tokens_total"), prompt: per_second("prompt_tokens_total"), steps: per_second("engine_steps_total"),
    decode_share: per_second("decode_seconds_total"), prefill_share: per_second("prefill_seconds_total"),
    hit_share: looked_up > 0 ? hits / looked_up : null,
  };
}
