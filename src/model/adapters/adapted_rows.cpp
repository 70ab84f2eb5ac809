#include "model/adapters/adapted_rows.h"

#include <algorithm>
#include <functional>
#include <memory>

namespace braid::model {

void AdaptedRows::begin(const step::Pass& pass, const AdapterTable* table) {
  order_.clear();
  if (table == nullptr || std::ranges::all_of(pass.tokens, [](const step::PassToken& token) { return token.adapter == 0; })) return;
  of_row_.clear();
  for (const step::PassToken& token : pass.tokens) {
    const AdapterSet* set = table->find(token.adapter);
    of_row_.push_back(set != nullptr && !set->parts.empty() ? set : nullptr);
  }
  sort();
}

void AdaptedRows::keep(std::span<const std::int32_t> picked) {
  if (!any()) return;
  std::size_t to = 0;
  for (const std::int32_t from : picked) of_row_[to++] = of_row_[static_cast<std::size_t>(from)];
  of_row_.resize(to);
  sort();
}

void AdaptedRows::sort() {
  order_.clear();
  width_ = 0;
  for (std::size_t row = 0; row < of_row_.size(); ++row) {
    if (of_row_[row] == nullptr) continue;
    order_.push_back(static_cast<std::int32_t>(row));
    width_ = std::max(width_, of_row_[row]->width);
  }
  std::ranges::stable_sort(order_, std::less<>(), [this](std::int32_t row) { return of_row_[static_cast<std::size_t>(row)]; });
}

void AdaptedRows::make_room(std::int64_t items) {
  if (const auto floats = static_cast<std::size_t>(items * width_); floats > down_.size()) down_.resize(floats);
}

float* AdaptedRows::saved(std::int64_t floats) {
  if (static_cast<std::size_t>(floats) > saved_.size()) saved_.resize(static_cast<std::size_t>(floats));
  return saved_.data();
}

std::byte* AdaptedRows::prepared(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  if (bytes + kLine > prepared_.size()) prepared_.resize(bytes + kLine);
  void* begin = prepared_.data();
  std::size_t size = prepared_.size();
  return static_cast<std::byte*>(std::align(kLine, bytes, begin, size));
}

}  // namespace braid::model
