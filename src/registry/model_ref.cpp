#include "registry/model_ref.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace braid::registry {
namespace {

constexpr std::size_t kMostHost = 350;
constexpr std::size_t kMostPart = 96;  // the hub's names are as long

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_inner(char c) { return is_word(c) || c == '-' || c == '.'; }

bool is_host(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (text.size() > kMostHost || name.empty() || !is_word(name.front()) || !std::ranges::all_of(name, is_inner)) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace

bool is_name_part(std::string_view text) {
  return !text.empty() && text.size() <= kMostPart && is_word(text.front()) && std::ranges::all_of(text, is_inner);
}

std::string name_part_from(std::string_view text) {
  std::string part;
  for (const char c : text.substr(0, kMostPart)) part += is_inner(c) ? c : '-';
  if (part.empty() || !is_word(part.front())) part.insert(part.begin(), '_');
  part.resize(std::min(part.size(), kMostPart));
  return part;
}

Result<ModelRef> ModelRef::parse(std::string_view text) {
  const Error wrong = invalid_argument(
      fmt::format("'{}' is no name of a model: [host/][namespace/]model[:tag] of letters, digits, '_', '-' and '.'", text.substr(0, 200)),
      "model");
  ModelRef ref;
  std::string_view rest = text;
  for (const std::string_view scheme : {"http", "https"})
    if (rest.starts_with(scheme) && rest.substr(scheme.size()).starts_with("://")) {
      ref.scheme = scheme;
      rest.remove_prefix(scheme.size() + 3);
      break;
    }
  const std::size_t slash = rest.rfind('/');
  const std::size_t colon = rest.find(':', slash == std::string_view::npos ? 0 : slash + 1);
  if (colon != std::string_view::npos) {
    ref.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  const std::vector<std::string_view> parts = split(rest);
  if (parts.size() > 3 || (!ref.scheme.empty() && parts.size() < 2)) return wrong;
  ref.model = parts.back();
  if (parts.size() > 1) ref.owner = parts[parts.size() - 2];
  if (parts.size() > 2) ref.host = parts[0];
  if (ref.host == "huggingface.co") ref.host = "hf.co";
  if (!is_host(ref.host) || !is_name_part(ref.owner) || !is_name_part(ref.model) || !is_name_part(ref.tag)) return wrong;
  return ref;
}

std::string ModelRef::text() const {
  std::string name;
  if (host != kUsualHost) name = host + "/";
  if (host != kUsualHost || owner != kUsualOwner) name += owner + "/";
  return name + model + ":" + tag;
}

std::string ModelRef::path() const { return fmt::format("{}/{}/{}/{}", host, owner, model, tag); }

bool ModelRef::is_hub() const { return host == "hf.co"; }

}  // namespace braid::registry
