#include "net/generation/parser/call_writer.h"

#include <utility>

namespace braid::net {
namespace {

// Steele, Lea and Flood's SplitMix64 (2014).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

}  // namespace

void CallWriter::begin(std::string name) {
  const std::uint32_t index = calls_++;
  out_->push_back(ToolCallBegin{index, id_of(index), std::move(name)});
}

void CallWriter::arguments(std::string_view text) {
  if (!text.empty()) append_joined(*out_, ToolCallArguments{calls_ - 1, std::string(text)});
}

std::string CallWriter::id_of(std::uint32_t index) const {
  constexpr std::string_view kAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id = short_ids_ ? "" : "call_";
  const std::size_t length = short_ids_ ? 9 : 29;
  std::uint64_t state = mix(id_seed_ + index);
  for (; id.size() < length; state = mix(state)) id += kAlphabet[state % kAlphabet.size()];
  return id;
}

}  // namespace braid::net
