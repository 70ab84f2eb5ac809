#include "model/adapters/peft_experts.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <utility>

namespace braid::model {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// A matrix of each expert in the base's file, and which of the parameter's outputs its rows are.
struct ExpertRows {
  const LinearShape* linear;
  std::vector<std::int64_t> rows;
};

std::vector<ExpertRows> expert_rows_of(std::string_view name, const FeedForwardShape& each, bool takes_turns) {
  std::vector<ExpertRows> all;
  const auto add = [&](const LinearShape& linear, std::int64_t first, std::int64_t step) {
    const bool has_own = all.empty() || all.back().linear->name != linear.name;
    if (has_own)
      all.push_back({&linear, std::vector<std::int64_t>(static_cast<std::size_t>(std::max(linear.stored_outputs, linear.outputs)))});
    for (std::int64_t i = 0; i < linear.outputs; ++i) all.back().rows[static_cast<std::size_t>(linear.stored_row(i))] = first + step * i;
  };
  const std::string_view parameter = last_part(name) == "weight" ? last_part(name.substr(0, name.rfind('.'))) : last_part(name);
  if (parameter == "down_proj" || parameter == "output_linear") {
    add(each.down, 0, 1);
  } else if (parameter == "up_proj") {
    if (!each.gated) add(each.up, 0, 1);
  } else if (each.gated) {
    add(each.gate, 0, takes_turns ? 2 : 1);
    add(each.up, takes_turns ? 1 : each.gate.outputs, takes_turns ? 2 : 1);
  }
  return all;
}

// A matrix of a tensor's values, which `place` finds there. They are put behind the bytes, for which there is room.
StoredTensor values_in_order(const StoredTensor& from, std::int64_t rows, std::int64_t columns, const auto& place,
                             std::vector<std::byte>& bytes) {
  const auto each = static_cast<std::size_t>(kernels::weight_format(from.type)->block_bytes);
  const std::size_t begin = bytes.size();
  bytes.resize(begin + static_cast<std::size_t>(rows * columns) * each);
  std::byte* to = bytes.data() + begin;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column, to += each) {
      const std::byte* value = from.bytes.data() + static_cast<std::size_t>(place(row, column)) * each;
      each == 4 ? std::memcpy(to, value, 4) : std::memcpy(to, value, 2);
    }
  return {.name = from.name, .type = from.type, .shape = {rows, columns}, .bytes = std::span(bytes).subspan(begin)};
}

// Of a file that does not fit, or what PEFT did not say.
class ExpertParting {
 public:
  ExpertParting(const std::string& name, const StoredMatrix& joined, const PeftConfig& config, const ModelShape& base)
      : name_(name), joined_(joined), config_(config), base_(base) {}

  Result<PartedExperts> part() {
    const std::optional<std::size_t> layer = layer_number_in(name_);
    if (!layer || *layer >= base_.layers.size() || !base_.layers[*layer].experts)
      return fail(ErrorCode::kUnsupported, joined_.down, "the base has no experts there");
    const ExpertsShape& experts = *base_.layers[*layer].experts;
    const bool takes_turns = base_.architecture == "gpt-oss";  // gates and ups do, and an expert's inputs are the rows of its parameters
    const std::vector<ExpertRows> all = expert_rows_of(name_, experts.each, takes_turns);
    if (all.empty())
      return fail(ErrorCode::kUnsupported, joined_.down,
                  experts.each.gated ? "the base's experts have gates" : "the base's experts have no gates");
    count_ = experts.router.experts();
    rank_ = config_.rank_of(name_);
    const std::int64_t inputs = all.front().linear->inputs;
    std::int64_t outputs = 0;
    for (const ExpertRows& each : all) outputs += std::ssize(each.rows);
    const bool fits = has_shapes(inputs, outputs), fits_turned = !takes_turns && config_.has_inputs_first && has_shapes(outputs, inputs);
    if (fits && fits_turned)
      return fail(ErrorCode::kUnsupported, joined_.down,
                  "is of a square parameter, of which PEFT below 0.19 does not say whether its rows are inputs: save it anew");
    if (!fits && !fits_turned)
      return fail(ErrorCode::kBadFile, joined_.down,
                  fmt::format("found shape [{}], and [{}] of lora_B, expected [{}, {}] and [{}, {}], for {} experts of rank {}",
                              fmt::join(joined_.down.shape, ", "), fmt::join(joined_.up.shape, ", "), count_ * rank_, inputs, outputs,
                              count_ * rank_, count_, rank_));
    return parted(all, inputs, fits_turned);
  }

 private:
  Error fail(ErrorCode code, const StoredTensor& tensor, const std::string& what) const {
    return {code, fmt::format("{}: tensor {}: {}", config_.path, tensor.name, what), {}};
  }

  bool has_shapes(std::int64_t columns, std::int64_t rows) const {
    return joined_.down.shape == std::vector{count_ * rank_, columns} && joined_.up.shape == std::vector{rows, rank_ * count_};
  }

  // Of A [experts, rank, columns] and B [rows, rank, experts].
  PartedExperts parted(const std::vector<ExpertRows>& all, std::int64_t inputs, bool turned) const {
    const StoredTensor &a = joined_.down, &b = joined_.up;
    std::vector<std::byte> bytes;
    bytes.reserve(a.bytes.size() + b.bytes.size());
    PartedExperts parts;
    for (std::int64_t expert = 0; expert < count_; ++expert) {
      const auto in_a = [&](std::int64_t r, std::int64_t column) { return (expert * rank_ + r) * a.columns() + column; };
      const auto in_b = [&](std::int64_t r, std::int64_t row) { return row * b.columns() + r * count_ + expert; };
      const StoredTensor down = turned ? values_in_order(b, rank_, inputs, in_b, bytes) : values_in_order(a, rank_, inputs, in_a, bytes);
      for (const auto& [linear, rows] : all) {
        StoredMatrix& matrix = parts.matrices.emplace_back();
        matrix.name = linear->apart ? linear->of_expert(static_cast<std::int32_t>(expert)).name : linear->name;
        matrix.expert = linear->apart ? -1 : static_cast<std::int32_t>(expert);
        matrix.scale = joined_.scale;
        matrix.down = down;
        const auto place = [&](std::int64_t row, std::int64_t r) {
          return turned ? in_a(r, rows[static_cast<std::size_t>(row)]) : in_b(r, rows[static_cast<std::size_t>(row)]);
        };
        matrix.up = values_in_order(turned ? a : b, std::ssize(rows), rank_, place, bytes);
      }
    }
    parts.factors = files::owned_bytes(std::move(bytes), a.name);
    return parts;
  }

  const std::string& name_;
  const StoredMatrix& joined_;
  const PeftConfig& config_;
  const ModelShape& base_;
  std::int64_t count_ = 0;
  std::int64_t rank_ = 0;
};

}  // namespace

std::optional<std::size_t> layer_number_in(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const std::string_view part = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string_view::npos) continue;
    return std::stoul(std::string(part));
  }
  return std::nullopt;
}

bool is_of_experts(std::string_view module, std::string_view parameter) {
  if (parameter != "weight") return !parameter.empty();
  return last_part(module) == "input_linear" || last_part(module) == "output_linear";
}

Result<PartedExperts> part_experts(const std::string& name, const StoredMatrix& joined, const PeftConfig& config, const ModelShape& base) {
  return ExpertParting(name, joined, config, base).part();
}

}  // namespace braid::model
