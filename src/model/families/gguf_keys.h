// The keys of one architecture in a GGUF file, each held against its range.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

// Far above any model known, low enough that products of three stay within 63 bits.
inline constexpr std::uint64_t kMaxDimension = 1U << 24;
inline constexpr std::uint64_t kMaxLayers = 4096;
inline constexpr std::uint64_t kMaxHeads = 16384;  // kernels count those of a KV head in 16 bits
inline constexpr std::uint64_t kMaxHeadDim = 4096;
inline constexpr std::uint64_t kMaxContext = 1U << 24;

// The first failure is kept in `error` and every later look-up answers with its fallback. kUnsupported: a sound file with a feature that
// this build lacks. kBadFile: a key is missing, out of range, or contradicts another one. The message names the key, what was found and
// what was expected.
class GgufKeys {
 public:
  GgufKeys(const files::GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  std::optional<Error> error;

  const files::GgufFile& file() const { return file_; }
  bool has(std::string_view key) const { return file_.find(full(key)) != nullptr; }
  // "llama.block_count"; the key itself, where the file has that only: llama.cpp writes a few so ("xielu.beta").
  std::string full(std::string_view key) const;
  void fail(ErrorCode code, std::string message);

  // An integer in [1, max]; an array has one value for every layer, and they are all equal, but for zeros of layers that have none of it.
  std::int32_t size(std::string_view key, std::optional<std::uint64_t> fallback, std::uint64_t max = kMaxDimension);
  // The same for each of the first `layers`: an array has a value for each, in [0, max]; another number is that of all.
  std::vector<std::int32_t> sizes(std::string_view key, std::size_t layers, std::optional<std::uint64_t> fallback,
                                  std::uint64_t max = kMaxDimension);
  // An integer in [0, max], `fallback` when the key is missing.
  std::int32_t count(std::string_view key, std::uint64_t max, std::uint64_t fallback = 0);
  // A finite number in [low, high].
  double number(std::string_view key, std::optional<double> fallback, double low, double high);
  // The same, where `unset` stands for a missing key: llama.cpp saves all keys, those of features that a model lacks included.
  double number_unless(double unset, std::string_view key, double fallback, double low, double high);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string fallback);
  // An array of one truth value, or number that is 0 or not, for each of `count`; empty when the key is missing or no array.
  std::vector<bool> flags(std::string_view key, std::size_t count);
  // An array of `count` numbers, or one for all of them.
  std::vector<double> numbers(std::string_view key, std::size_t count, std::optional<double> fallback);

 private:
  void take(const Error& found) { fail(found.code, found.message); }
  std::uint64_t uniform(std::string_view key, std::uint64_t fallback);
  template <class Items>
  std::uint64_t uniform_item(std::string_view key, const Items& items);

  const files::GgufFile& file_;
  std::string_view architecture_;
};

}  // namespace braid::model
