#include "app/foreign_settings.h"

#include <array>
#include <utility>

namespace braid::app {
namespace {

// docs/configuration.md has the same table with more words.
constexpr auto kSettings = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"adapter_path", "adapters have names: write it as 'lora: NAME=PATH'"},
    {"block_size", "it is called 'block-size'"},
    {"num_blocks", "the pool's size is given in bytes, as 'kv-memory'"},
    {"kv_bits", "keys and values have a type, 'kv-dtype': f32, f16, bf16, or int8 for 8 bits"},
    {"kv_group_size", "'kv-dtype: int8' has a scale for 64 values, and no other size"},
    {"ssd_cache_dir", "it is called 'kv-disk'"},
    {"ssd_ttl_days", "it is called 'kv-disk-ttl', such as 7d"},
    {"ssd_enabled", "a folder for 'kv-disk' turns it on"},
    {"max_batch_size", "it is called 'max-batch'"},
    {"prefill_batch_size", "prompts share a step's 'max-batch-tokens'; a step has 'max-batch' sequences in all"},
    {"prefill_step_size", "it is called 'max-batch-tokens'; beside running answers 'prefill-slice-ms' bounds it"},
    {"max_queue_size", "it is called 'max-waiting'"},
    {"completion_batch_size", "it is called 'max-batch'"},
    {"max_kv_size", "it is called 'max-kv-size'"},
    {"sequence_cache_size", "the prefix cache has what 'kv-memory' leaves of the pool; 'prefix-cache: off' turns it off"},
    {"default_max_tokens", "it is called 'max-tokens'"},
    {"default_temperature", "it is called 'temperature'"},
    {"default_top_p", "it is called 'top-p'"},
    {"use_distributed", "write 'ranks: N', with 'hostfile' for several machines; or several servers behind a proxy"},
});

}  // namespace

std::string_view foreign_setting(std::string_view key) {
  for (const auto& [name, told] : kSettings)
    if (name == key) return told;
  return {};
}

}  // namespace braid::app
