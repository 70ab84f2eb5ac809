// What the server and the ranks of a model say to each other, as bytes. Both are built from the same sources for the same architecture: a
// greeting says so, and values are written as they lie in memory.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "step/pass.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::ranks {

enum class Kind : std::uint32_t {
  kGreeting = 1,  // rank → server, first
  kSetup,         // server → ranks: load
  kAllocate,      // server → ranks: the pool
  kMoves,         // server → ranks
  kPass,          // server → ranks; each answers with kDone
  kLogits,        // server → ranks; the first rank answers with kValues
  kHidden,        // the same
  kReady,         // rank → server: after kSetup and kAllocate
  kValues,        // first rank → server: floats
  kFailure,       // rank → server: a sentence; it is its last
  kDone,          // rank → server: it has computed the pass
  kProgress,      // rank → server, before kReady
  kSave,          // server → ranks: blocks; each answers with kValues, what it has of them
  kLoad,          // server → a rank: blocks, and what it is to have of them
  // Of the second line, while passes run on the first.
  kAdapter,  // server → ranks: adapter_image.h
  kWeights,  // server → ranks: newer ones; their tensors follow
  kTensors,  // server → ranks: a safetensors file
  kLengths,  // server → ranks: a number of weights; an adapter as kAdapter brings it follows, whose magnitudes are lengths
  kTaken,    // rank → server: it has what kAdapter or kTensors brought; after kLengths what it has the weights for
  kRefused,  // rank → server: it has not; a sentence
};

// A longer one is not read: more than the logits of a pass.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kMostHandedOut = std::uint64_t{1} << 40;  // a safetensors file

struct Greeting {
  std::string key;  // the secret of this group
  std::string version;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t line = 0;  // 0: of passes; 1: of what is handed out beside them
};

// What to load, and how it is computed.
struct Setup {
  std::string model;               // a path on each rank's machine
  std::int32_t isa = -1;           // kernels::Isa; -1: each takes its best
  std::int32_t float_weights = 0;  // whether that is the best for such (kernels/select.h)
  std::int32_t kv_type = -1;
  std::int32_t float_type = -1;  // Packing; -1: their own
  std::int32_t rotated = 0;
  std::int32_t context = 0;
  std::int32_t block_tokens = 16;
  std::int32_t kv_limit = 0;
  std::int32_t pass_rows = 512;
  std::int32_t logit_rows = 64;
  std::int32_t threads = 1;  // of each rank
};

struct Ready {
  std::string isa;
  std::int32_t kv_type = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t workspace_bytes = 0;
};

// How far a load is (files/progress.h).
struct LoadStage {
  std::string what;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

// Seconds of a rank since it said so last: that it computed, and that it waited for others and for what they sent.
struct Times {
  double compute = 0.0;
  double exchange = 0.0;
};

// What a pass computes with besides the weights that were loaded, by the numbers of what was handed out.
struct Uses {
  struct Part {
    std::uint64_t adapter = 0;
    float scale = 1.0F;
    std::uint32_t reserved = 0;

    bool operator==(const Part&) const = default;
  };
  // What tokens name by an index: the next `count` of the parts.
  struct Set {
    std::uint32_t index = 0;
    std::uint32_t count = 0;
  };
  std::uint64_t weights = 0;  // 0: those that were loaded
  std::vector<Set> sets;
  std::vector<Part> parts;
  std::vector<std::uint64_t> forgotten;  // what nobody needs any more
};

// Tensors in the place of those of `older`.
struct NewerWeights {
  std::uint64_t number = 0;
  std::uint64_t older = 0;
  std::uint64_t is_partial = 0;
};

// Of an adapter's matrices some outputs each, and their magnitudes, one after the other.
struct Magnitudes {
  struct Part {
    std::uint32_t matrix = 0;
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  std::vector<Part> parts;
  std::vector<float> magnitudes;
};

// Changes of blocks before a pass.
struct Moves {
  struct Fork {
    std::int32_t from = 0;
    std::int32_t to = 0;
  };
  std::vector<Fork> forks;
  std::vector<std::int32_t> given_back;

  bool empty() const { return forks.empty() && given_back.empty(); }
};

// A block in the hands of a group.
struct BlockPlace {
  std::int32_t block = 0;
  std::int32_t group = 0;
};

// Blocks, and what lies in them, one after the other.
struct BlockContents {
  std::vector<BlockPlace> places;
  std::vector<std::byte> bytes;  // none where they are asked for
};

// Logits of `count` of the tokens picked from the `begin`-th on; with kHidden the hidden state of one.
struct Wanted {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

using Bytes = std::vector<std::byte>;

void write(const Greeting& value, Bytes& out);
void write(const Setup& value, Bytes& out);
void write(const Ready& value, Bytes& out);
void write(const LoadStage& value, Bytes& out);
void write(const Times& value, Bytes& out);
void write(const Moves& value, Bytes& out);
void write(const BlockContents& value, Bytes& out);
void write(const Wanted& value, Bytes& out);
void write(const NewerWeights& value, Bytes& out);
void write(const Magnitudes& value, Bytes& out);
void write(std::uint64_t value, Bytes& out);
void write(const step::Pass& pass, const Uses& uses, Bytes& out);
void write(std::int32_t value, Bytes& out);

// False: these bytes are no such value. `out` keeps its memory.
bool read(std::span<const std::byte> bytes, Greeting& out);
bool read(std::span<const std::byte> bytes, Setup& out);
bool read(std::span<const std::byte> bytes, Ready& out);
bool read(std::span<const std::byte> bytes, LoadStage& out);
bool read(std::span<const std::byte> bytes, Times& out);
bool read(std::span<const std::byte> bytes, Moves& out);
bool read(std::span<const std::byte> bytes, BlockContents& out);
bool read(std::span<const std::byte> bytes, Wanted& out);
bool read(std::span<const std::byte> bytes, NewerWeights& out);
bool read(std::span<const std::byte> bytes, Magnitudes& out);
bool read(std::span<const std::byte> bytes, std::uint64_t& out);
bool read(std::span<const std::byte> bytes, step::Pass& pass, Uses& uses);
bool read(std::span<const std::byte> bytes, std::int32_t& out);

}  // namespace braid::ranks
