#include "app/fingerprint.h"

#include "app/version.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

namespace braid::app {
namespace {

constexpr std::size_t kTensorEnd = std::size_t{256} << 10;  // bytes of a tensor that count, at either end

std::uint64_t digest_of(std::span<const std::byte> bytes) { return cache::xxh3_key(bytes).low; }
std::uint64_t digest_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

// Collects what is to be told apart as text.
struct Summary {
  std::string text;

  void operator()(const std::string& value) { text += fmt::format("{}:{};", value.size(), value); }
  void operator()(const files::GgufArray& array) {
    std::visit(
        [this](const auto& items) {
      text += fmt::format("[{}]", items.size());
      for (const auto& item : items) (*this)(static_cast<typename std::decay_t<decltype(items)>::value_type>(item));
        },
        array.items);
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void operator()(Number value) { text += fmt::format("{};", value); }
};

// What the linker has noted of the program (--build-id), where it lies in memory: nothing is read, and /proc not needed.
std::span<const std::byte> build_id(const dl_phdr_info& program) {
  for (const auto& segment : std::span(program.dlpi_phdr, program.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    std::span<const std::byte> notes(reinterpret_cast<const std::byte*>(program.dlpi_addr + segment.p_vaddr), segment.p_memsz);
    const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes.data(), sizeof note);
      const std::size_t begin = sizeof note + padded(note.n_namesz);
      const std::size_t end = begin + padded(note.n_descsz);
      if (end > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + sizeof note, "GNU", 4) == 0)
        return notes.subspan(begin, note.n_descsz);
      notes = notes.subspan(end);
    }
  }
  return {};
}

std::string build_digest() {
  std::uint64_t digest = 0;
  const auto look_at_first = [](dl_phdr_info* program, std::size_t, void* found) {
    *static_cast<std::uint64_t*>(found) = digest_of(build_id(*program));
    return 1;  // the program itself is the first
  };
  ::dl_iterate_phdr(look_at_first, &digest);
  return fmt::format("{:08x}", digest >> 32U);
}

}  // namespace

std::string model_digest(const files::GgufFile& file, const model::LoadOptions& options) {
  Summary summary;
  for (const auto& [key, value] : file.metadata()) {
    summary(key);
    std::visit(summary, value);
  }
  for (const files::GgufTensor& tensor : file.tensors()) {
    summary(tensor.name);
    summary(tensor.type);
    for (const std::int64_t size : tensor.shape) summary(size);
    for (const float factor : tensor.factors) summary(static_cast<double>(factor));
    const auto add = [&](std::span<const std::byte> bytes) {
      const std::size_t end = std::min(kTensorEnd, bytes.size());
      summary(digest_of(bytes.first(end)));
      summary(digest_of(bytes.last(end)));
    };
    add(tensor.bytes);
    if (tensor.coded)
      for (const std::span<const std::byte> other : tensor.coded->other_bytes()) add(other);
  }
  const std::optional<kernels::WeightType> float_type = options.packing.float_type;
  summary(float_type ? static_cast<std::int64_t>(*float_type) : -1);
  summary(options.packing.rotated);
  summary(options.kv_limit);
  return fmt::format("{:016x}", digest_of(summary.text));
}

std::string fingerprint(std::string_view tier, kernels::KvType kv_type, std::string_view model_digest) {
  return fmt::format("braid-{}+{}-{}-{}-{}", kVersion, build_digest(), tier, kernels::kv_type_name(kv_type), model_digest);
}

}  // namespace braid::app
