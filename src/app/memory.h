// How much memory there is, and how much of it the KV pool gets.
#pragma once

#include "braid/result.h"
#include "step/visibility.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::app {

// What a server takes besides its model, of any size of that: its threads, some thousand connections.
inline constexpr std::uint64_t kServerMemory = std::uint64_t{32} << 20;

// Bytes that this process may still take, and what would end it, or fail its allocations, if it took more.
struct MemoryLeft {
  std::uint64_t bytes = 0;
  std::string bound;  // "the machine's free memory", "the limit of /sys/fs/cgroup/x", "ulimit -v"
};

// The least of MemAvailable, of what the limits of its control groups (v1 and v2) leave and of what it may still map (RLIMIT_AS,
// RLIMIT_DATA, strict overcommit), less kServerMemory and the page tables for the rest. `untouched` has been mapped and has no pages yet: it
// counts as taken. `root` stands for "/" in tests. kIo when the system does not say.
Result<MemoryLeft> memory_left(std::uint64_t untouched = 0, const char* root = "/");

// What limits how much this process may map, as an operator names it: "ulimit -v", "vm.overcommit_memory". nullopt: nothing.
std::optional<std::string> mapping_limit();

// Whether mappings that nobody touches cost nothing: neither RLIMIT_AS nor RLIMIT_DATA counts them, nor strict overcommit.
bool can_reserve();

// What the KV pools of a process may take together: what was asked for by --kv-memory, or half of what is left. An error when that is not
// there.
Result<std::uint64_t> kv_memory(const MemoryLeft& left, std::optional<std::uint64_t> asked);

// Divides it among models of which each can use `most`: equal parts, and what one cannot use goes to the others.
std::vector<std::uint64_t> divide_memory(std::uint64_t bytes, std::span<const std::uint64_t> most);

// Of a model's pool.
struct PoolBytes {
  std::uint64_t first = 0;
  std::uint64_t most = 0;  // that it may have once others have given theirs back
};

struct KvDemand {
  std::uint64_t bytes = 0;        // that the pool may take at first
  std::uint64_t most_bytes = 0;   // and when others have given theirs back; no more than at first where it is less
  std::uint64_t block_bytes = 0;  // of one block
  std::int32_t block_tokens = 16;
  std::vector<step::Visibility> groups{{}};  // of layers, each with blocks of its own
  std::int32_t state_blocks = 0;             // of a sequence's recurrent state
  std::int32_t max_batch = 256;
  std::int32_t model_context = 0;                  // what the model was trained for
  std::optional<std::int32_t> asked_context = {};  // --ctx
};

// Bytes of the pool with which max_batch sequences of the whole context can run at once.
std::uint64_t most_usable(const KvDemand& demand);

struct KvBudget {
  std::int32_t blocks = 0;
  std::int32_t most_blocks = 0;  // to which the pool may grow
  std::int32_t context = 0;      // tokens of the longest sequence: never more than the pool can hold, unless it has a window
  std::uint64_t bytes = 0;
  std::int64_t tokens = 0;  // of one sequence that the blocks hold; with nothing but windows, as if it had none
};

// Never more blocks than max_batch sequences of the whole context can use, each with a checkpoint of its state. An explicit context that does not fit the pool is an
// error; the model's own is lowered to what fits.
Result<KvBudget> plan_kv(const KvDemand& demand);

}  // namespace braid::app
