#include "net/metrics/exposition.h"

#include <array>
#include <string>
#include <vector>

namespace braid::net {
namespace {

using prometheus::MetricType;
using Labelled = FamilyList::Labelled;

void add_duration(FamilyList& families, std::string_view name, std::string_view help, const DurationHistogram& histogram) {
  std::array<double, DurationHistogram::kBounds> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = DurationHistogram::bound(i);
  families.histogram(name, help, bounds, histogram.counts, histogram.sum);
}

void add_work(FamilyList& families, const EngineStats& stats) {
  families.counter("engine_steps_total", "Batch steps computed.", stats.steps);
  families.counter("engine_step_retries_total", "Steps that failed and were computed again without the rows under suspicion.",
                   stats.retried_steps);
  families.gauge("engine_step_age_seconds", "How long ago the step that runs began; 0 when none runs.", stats.running_step_seconds);
  families.counter("prompt_tokens_total", "Prompt tokens computed, recomputed ones included.", stats.prompt_tokens);
  families.counter("generation_tokens_total", "Tokens generated.", stats.generated_tokens);
  families.counter("prefill_seconds_total", "Compute time spent on prompts.", stats.prefill_seconds);
  families.counter("decode_seconds_total", "Compute time spent on generation.", stats.decode_seconds);
  families.gauge("prefill_tokens_per_second", "Measured lately; 0 before the first.", stats.prefill_tokens_per_second);
  families.gauge("decode_tokens_per_second", "Measured lately; 0 before the first.", stats.decode_tokens_per_second);
}

void add_sequences(FamilyList& families, const EngineStats& stats) {
  families.counter("sequences_submitted_total", "Sequences taken into the queue.", stats.submitted);
  families.counter("sequences_refused_total", "Sequences refused because the queue was full.", stats.refused);
  families.counter("sequences_finished_total", "Sequences that ran to their end.", stats.finished);
  families.counter("sequences_cancelled_total", "Sequences cancelled.", stats.cancelled);
  families.counter("sequences_failed_total", "Sequences that ended because a step failed.", stats.failed_rows);
  families.counter("preemptions_total", "Sequences set back to waiting because blocks ran out.", stats.preemptions);
  families.gauge("sequences_waiting", "Sequences in the queue.", stats.waiting);
  const std::array<Labelled, 3> classes = {
      {{"better", double(stats.waiting_better)}, {"normal", double(stats.waiting_normal)}, {"worse", double(stats.waiting_worse)}}};
  families.labelled(MetricType::Gauge, "queue_depth", "Sequences in the queue, by the class of their priority.", "class", classes);
  families.gauge("sequences_preempted", "Of the sequences in the queue, those that have run before.", stats.preempted);
  families.gauge("sequences_prefilling", "Sequences whose prompt is being computed.", stats.prefilling);
  families.gauge("sequences_decoding", "Sequences that are generating.", stats.decoding);
  families.gauge("sequences_stalled", "Sequences paused because their readers are behind.", stats.stalled);
  families.gauge("sequences_parked", "The same, after they have given their blocks up.", stats.parked);
  const std::array<Labelled, 3> actions = {
      {{"paused", double(stats.stalls_total)}, {"parked", double(stats.parks_total)}, {"dropped", double(stats.slow_readers_dropped)}}};
  families.labelled(MetricType::Counter, "backpressure_total", "What was done about readers that were behind.", "action", actions);
  add_duration(families, "queue_wait_seconds", "From submission to a place in the batch.", stats.queue_wait);
  add_duration(families, "cancel_to_free_seconds", "From the loss of interest in a sequence to the release of its blocks.",
               stats.cancel_to_free);
  std::vector<Labelled> steps;
  constexpr std::array<const char*, 4> kSteps = {"0", "1", "2", "more"};
  for (std::size_t i = 0; i < kSteps.size(); ++i) steps.push_back({kSteps[i], static_cast<double>(stats.cancel_to_free_steps[i])});
  families.labelled(MetricType::Counter, "cancel_to_free_steps_total", "The same, by how many steps came back meanwhile.", "steps", steps);
}

void add_cache(FamilyList& families, const EngineStats& stats) {
  const double in_use = static_cast<double>(stats.blocks_total) - static_cast<double>(stats.blocks_free);
  families.gauge("kv_blocks_total", "Blocks of the KV pool.", stats.blocks_total);
  families.gauge("kv_blocks_free", "Blocks of the KV pool that nobody holds, cached ones included.", stats.blocks_free);
  families.gauge("kv_blocks_cached", "Blocks of the KV pool that nobody holds and whose contents can still be found.", stats.blocks_cached);
  families.gauge("kv_states_cached", "States of recurrent layers that requests may begin with.", stats.states_cached);
  families.gauge("kv_state_blocks_cached", "Blocks of the KV pool that these take.", stats.state_blocks_cached);
  families.gauge("kv_state_blocks_limit", "Blocks of the KV pool that these may take.", stats.state_blocks_most);
  families.counter("kv_states_dropped_total", "States forgotten so that others found room in that.", stats.states_dropped);
  families.gauge("kv_usage_ratio", "Share of the KV pool that running sequences hold.",
                 stats.blocks_total > 0 ? in_use / stats.blocks_total : 0.0);
  families.gauge("kv_unused_slots", "Positions of held blocks to which nothing has been written yet.", stats.kv_unused_slots);
  families.gauge("kv_fragmentation_ratio", "Share of the held blocks' bytes that hold nothing.", stats.kv_fragmentation);
  families.counter("prefix_cache_hit_tokens_total", "Tokens of admitted sequences found in the prefix cache.", stats.cache_hit_tokens);
  families.counter("prefix_cache_disk_hit_tokens_total",
                   "Of the tokens found in the prefix cache, those that came from disk or from a Redis.", stats.cache_disk_hit_tokens);
  families.counter("prefix_cache_miss_tokens_total", "Tokens of admitted sequences not found in the prefix cache.",
                   stats.cache_miss_tokens);
  families.counter("prefix_cache_evictions_total", "Cached blocks given away because no empty one was left.", stats.cache_evictions);
  families.counter("prefix_cache_verified_blocks_total", "Cached blocks compared with what was computed, by --kv-verify.",
                   stats.cache_verified_blocks);
}

// The first place always, so that each source has a row.
void add_counts(FamilyList& families, std::string_view name, std::string_view help, const DraftStats::Counts& counts) {
  for (std::size_t source = 0; source < counts.size(); ++source) {
    std::vector<Labelled> places;
    for (std::size_t place = 0; place < DraftStats::kPlaces; ++place) {
      if (place > 0 && counts[source][place] == 0) continue;
      const bool is_last = place + 1 == DraftStats::kPlaces;
      places.push_back({std::to_string(place + 1) + (is_last ? "+" : ""), static_cast<double>(counts[source][place])});
    }
    FamilyList own;
    own.labelled(MetricType::Counter, name, help, "position", places);
    families.add_labelled(std::move(own), "source", std::string(kDraftSourceNames[source]));
  }
}

void add_drafts(FamilyList& families, const DraftStats& drafts) {
  add_counts(families, "draft_tokens_total", "Tokens guessed, by where they came from and their place among those guessed at once.",
             drafts.drafted);
  add_counts(families, "draft_tokens_accepted_total", "Of these, those that were right and became part of answers.", drafts.accepted);
  families.counter("draft_read_tokens_total", "Tokens of texts that a model which guesses has read to do so.", drafts.read);
}

void add_disk(FamilyList& families, const DiskCacheStats& disk) {
  families.gauge("disk_cache_blocks", "Blocks on disk that can be found.", disk.records);
  families.gauge("disk_cache_bytes", "Bytes of the disk cache's files.", disk.bytes);
  families.counter("disk_cache_reads_total", "Blocks read from disk.", disk.reads);
  families.counter("disk_cache_read_bytes_total", "Bytes of these.", disk.read_bytes);
  families.counter("disk_cache_read_errors_total", "Blocks that could not be read, or were damaged.", disk.read_errors);
  families.counter("disk_cache_read_seconds_total", "From request to completion, summed over blocks.", disk.read_seconds);
  families.counter("disk_cache_writes_total", "Blocks written to disk.", disk.writes);
  families.counter("disk_cache_write_bytes_total", "Bytes of these.", disk.write_bytes);
  families.counter("disk_cache_write_errors_total", "Writes that failed.", disk.write_errors);
  families.counter("disk_cache_write_seconds_total", "From request to completion, summed over blocks.", disk.write_seconds);
  families.counter("disk_cache_writes_dropped_total",
                   "Blocks not written for want of host buffers, after an error, or while a predecessor has the folder.",
                   disk.writes_dropped);
  families.counter("disk_cache_pruned_total", "Blocks dropped because they were too old or had no room.", disk.pruned);
}

void add_redis(FamilyList& families, const RedisCacheStats& redis) {
  families.gauge("redis_cache_up", "1; 0 while the Redis is left alone after a failure.", redis.is_up ? 1 : 0);
  families.gauge("redis_cache_known_keys", "Keys of which the Redis has said lately whether it has them.", redis.known);
  families.counter("redis_cache_failures_total", "Times that the Redis was unreachable, late, or talked nonsense.", redis.failures);
  families.counter("redis_cache_lookups_total", "Questions which blocks the Redis has.", redis.lookups);
  families.counter("redis_cache_lookup_errors_total", "Of these, those that it did not answer in time.", redis.lookup_errors);
  families.counter("redis_cache_lookup_seconds_total", "From question to answer, summed over questions.", redis.lookup_seconds);
  families.counter("redis_cache_reads_total", "Blocks read from the Redis.", redis.reads);
  families.counter("redis_cache_read_bytes_total", "Bytes of these.", redis.read_bytes);
  families.counter("redis_cache_read_misses_total", "Blocks that were gone when they were to be read.", redis.read_misses);
  families.counter("redis_cache_read_errors_total", "Blocks that could not be read in time, or were damaged.", redis.read_errors);
  families.counter("redis_cache_read_seconds_total", "From request to completion, summed over blocks.", redis.read_seconds);
  families.counter("redis_cache_writes_total", "Blocks written to the Redis.", redis.writes);
  families.counter("redis_cache_write_bytes_total", "Bytes of these.", redis.write_bytes);
  families.counter("redis_cache_writes_known_total", "Blocks not written because another server had done so.", redis.writes_known);
  families.counter("redis_cache_write_errors_total", "Writes that failed, or were refused.", redis.write_errors);
  families.counter("redis_cache_write_seconds_total", "From request to completion, summed over blocks.", redis.write_seconds);
  families.counter("redis_cache_writes_dropped_total", "Blocks not written for want of host buffers, or after a failure.",
                   redis.writes_dropped);
}

void add_images(FamilyList& families, const ImageStats& images) {
  families.counter("images_encoded_total", "Images that the model's tower has computed.", images.encoded);
  families.counter("image_cache_hits_total", "Images whose vectors were kept from before.", images.found);
  families.counter("image_encode_seconds_total", "Compute time spent on images.", images.encode_seconds);
  families.gauge("images_waiting", "Images that are to be computed, or are being so.", images.waiting);
  families.gauge("image_cache_bytes", "Bytes of the vectors of images that are kept.", images.kept_bytes);
}

}  // namespace

void add_engine(FamilyList& families, const EngineStats& stats) {
  add_work(families, stats);
  add_sequences(families, stats);
  add_cache(families, stats);
  add_drafts(families, stats.drafts);
  if (stats.disk) add_disk(families, *stats.disk);
  if (stats.redis) add_redis(families, *stats.redis);
  if (stats.images) add_images(families, *stats.images);
}

}  // namespace braid::net
