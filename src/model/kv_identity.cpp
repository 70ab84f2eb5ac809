#include "model/kv_identity.h"

#include "kernels/kv_type.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace braid::model {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20U;

// What is to be digested, every part with its kind and length in front.
class Message {
 public:
  template <class T>
  void number(char kind, T value) {
    static_assert(std::is_arithmetic_v<T>);
    put(kind, std::as_bytes(std::span(&value, 1)));
  }
  void text(char kind, std::string_view text) { put(kind, std::as_bytes(std::span(text))); }
  void value(const files::GgufValue& value) {
    std::visit([this](const auto& item) { put_item(item); }, value);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void put(char kind, std::span<const std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    bytes_.push_back(static_cast<std::byte>(kind));
    const auto length = std::as_bytes(std::span(&size, 1));
    bytes_.insert(bytes_.end(), length.begin(), length.end());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void put_item(const T& item) {
    if constexpr (std::is_same_v<T, std::string>) {
      text('s', item);
    } else if constexpr (std::is_same_v<T, files::GgufArray>) {
      std::visit(
          [this](const auto& items) {
        this->number('a', items.size());  // clang 14 sees no use of `this` otherwise
        for (std::size_t i = 0; i < items.size(); ++i)
          this->put_item(static_cast<typename std::decay_t<decltype(items)>::value_type>(items[i]));
          },
          item.items);
    } else {
      number('n', item);
    }
  }

  std::vector<std::byte> bytes_;
};

struct TensorPiece {
  std::span<const std::byte> bytes;
  cache::PrefixKey digest;
};

std::vector<TensorPiece> pieces_of(const files::GgufFile& file) {
  std::vector<TensorPiece> pieces;
  const auto cut = [&](std::span<const std::byte> bytes) {
    for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes)
      pieces.push_back({bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)), {}});
  };
  for (const files::GgufTensor& tensor : file.tensors()) {
    cut(tensor.bytes);
    if (tensor.coded)
      for (const std::span<const std::byte> other : tensor.coded->other_bytes()) cut(other);
  }
  return pieces;
}

// Of what all groups have of one block of fixed tokens at the beginning of a sequence, and the state behind it.
cache::PrefixKey numerics_digest(LanguageModel& model) {
  const KvGroups& kv = model.record_groups();
  const auto pieces = static_cast<std::size_t>(kv.count() + kv.states.blocks());
  std::vector<std::byte> bytes(pieces * model.saved_bytes());
  step::StepPlan plan;
  step::StepResult result;
  const auto execute = [&] {
    model.compute(plan, result);
    if (result.failure) std::rethrow_exception(result.failure);
  };
  plan.starts.push_back({});
  step::StepRow row;
  row.count = std::min(model.kv_layout().block_tokens, model.context_length());
  row.block_count = 1;
  for (std::int32_t i = 0; i < row.count; ++i) plan.tokens.push_back((i * 7 + 1) % model.shape().vocab);
  for (std::int32_t block = 0; std::cmp_less(block, pieces); ++block) plan.blocks.push_back(block);
  row.state_begin = static_cast<std::uint32_t>(kv.count());
  plan.rows.push_back(row);
  execute();
  plan.clear();
  for (std::int32_t piece = 0; std::cmp_less(piece, pieces); ++piece) {
    const std::int32_t part = piece - kv.count();  // of the state, if not negative
    plan.saves.push_back({piece, bytes.data() + static_cast<std::size_t>(piece) * model.saved_bytes(), part < 0 ? piece : step::kStateGroup,
                          std::max(part, 0)});
  }
  execute();
  return cache::xxh3_key(bytes);
}

std::string hexadecimal(const cache::PrefixKey& key) { return fmt::format("{:016x}{:016x}", key.high, key.low); }

}  // namespace

cache::PrefixKey model_revision(const files::GgufFile& file, kernels::ThreadTeam& team, const files::Progress& progress) {
  std::vector<TensorPiece> pieces = pieces_of(file);
  std::uint64_t total = 0;
  for (const TensorPiece& piece : pieces) total += piece.bytes.size();
  std::atomic<std::uint64_t> done{0};
  team.for_chunks(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t i = begin; i < end; ++i) {
      TensorPiece& piece = pieces[static_cast<std::size_t>(i)];
      piece.digest = cache::xxh3_key(piece.bytes);
      done += piece.bytes.size();
      if (progress && member == 0) progress("digest", done, total);  // the thread that called
    }
  });
  if (progress) progress("digest", done, total);
  Message message;
  for (const auto& [key, value] : file.metadata()) {
    message.text('k', key);
    message.value(value);
  }
  for (const files::GgufTensor& tensor : file.tensors()) {
    message.text('t', tensor.name);
    message.number('y', tensor.type);
    for (const std::int64_t extent : tensor.shape) message.number('x', extent);
  }
  for (const TensorPiece& piece : pieces) {
    message.number('l', piece.digest.low);
    message.number('h', piece.digest.high);
  }
  return cache::xxh3_key(message.bytes());
}

std::string kv_identity(const cache::PrefixKey& revision, LanguageModel& model) {
  const KvGroups& kv = model.record_groups();
  std::string groups;
  for (const auto& [visibility, layout] : kv.groups)
    groups +=
        fmt::format(" layers={} kv_heads={} head_dim={} window={}", layout.layers, layout.kv_heads, layout.head_dim, visibility.window);
  return fmt::format("model={} type={}{} state_blocks={} block_tokens={} block_bytes={} limit={} numerics={}", hexadecimal(revision),
                     kernels::kv_type_name(model.kv_layout().type), groups, kv.states.blocks(), kv.block_tokens(), kv.block_bytes(),
                     model.shape().kv_limit, hexadecimal(numerics_digest(model)));
}

}  // namespace braid::model
