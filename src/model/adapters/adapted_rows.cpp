#include "model/adapters/adapted_rows.h"

#include <algorithm>
#include <functional>

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
  plain_.clear();
  width_ = 0;
  for (std::size_t row = 0; row < of_row_.size(); ++row) {
    (of_row_[row] == nullptr ? plain_ : order_).push_back(static_cast<std::int32_t>(row));
    if (of_row_[row] != nullptr) width_ = std::max(width_, of_row_[row]->width);
  }
  const auto set_of = [this](std::int32_t row) { return of_row_[static_cast<std::size_t>(row)]; };
  std::ranges::stable_sort(order_, std::less<>(), set_of);
  runs_.clear();
  for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    for (end = begin + 1; end < order_.size() && end - begin < kMostTogether && set_of(order_[end]) == set_of(order_[begin]);) ++end;
    runs_.push_back(std::span(order_).subspan(begin, end - begin));
  }
}

void AdaptedRows::make_room(std::int64_t items) {
  if (const auto floats = static_cast<std::size_t>(items * width_); floats > down_.size()) down_.resize(floats);
}

void AdaptedRows::make_input_room(std::int64_t members, std::int64_t floats) {
  inputs_each_ = kernels::whole_column_groups(floats);  // whole lines
  if (const auto all = static_cast<std::size_t>(members * inputs_each_); all > inputs_.size()) inputs_.resize(all);
}

float* AdaptedRows::saved(std::int64_t floats) {
  if (static_cast<std::size_t>(floats) > saved_.size()) saved_.resize(static_cast<std::size_t>(floats));
  return saved_.data();
}

}  // namespace braid::model
