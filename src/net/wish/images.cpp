#include "net/wish/images.h"

#include "net/json/fields.h"

#include <array>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_key;

// Of digits of both alphabets of RFC 4648, with or without padding; white space between them does not count. nullopt: others stand there.
std::optional<std::string> from_base64(std::string_view digits) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static constexpr auto kValues = [] {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i) values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
    values['-'] = 62;
    values['_'] = 63;
    return values;
  }();
  std::string bytes;
  bytes.reserve(digits.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned held = 0;  // of them
  bool ended = false;
  for (const char digit : digits) {
    if (digit == ' ' || digit == '\n' || digit == '\r' || digit == '\t') continue;
    if (digit == '=') {
      ended = true;
      continue;
    }
    const std::int8_t value = kValues[static_cast<unsigned char>(digit)];
    if (value < 0 || ended) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(value)) & 0xFFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>((bits >> held) & 0xFFU);
  }
  return bytes;
}

Result<void> read_base64(ShownImage& image, std::string_view digits) {
  std::optional<std::string> bytes = from_base64(digits);
  if (!bytes) return invalid_argument(fmt::format("'{}' is not base64", image.path), image.path);
  if (bytes->empty()) return invalid_argument(fmt::format("'{}' is empty", image.path), image.path);
  image.file = std::move(*bytes);
  return {};
}

Result<void> read_url(ShownImage& image, std::string url) {
  if (url.starts_with("http://") || url.starts_with("https://")) {
    image.url = std::move(url);
    return {};
  }
  if (!url.starts_with("data:"))
    return invalid_argument(fmt::format("'{}' must be a data: URL, or one by http or https", image.path), image.path);
  const std::size_t comma = url.find(',');
  if (comma == std::string::npos || !std::string_view(url).substr(0, comma).ends_with(";base64"))
    return invalid_argument(fmt::format("'{}' is a data: URL without base64", image.path), image.path);
  return read_base64(image, std::string_view(url).substr(comma + 1));
}

Result<ImageDetail> read_detail(const Value* value, const std::string& path) {
  if (value == nullptr || value->is_null()) return ImageDetail::kAuto;
  const Result<std::string> text = json::read_string(*value, path);
  if (!text) return text.error();
  if (*text == "auto") return ImageDetail::kAuto;
  if (*text == "low") return ImageDetail::kLow;
  if (*text == "high" || *text == "original") return ImageDetail::kHigh;
  return invalid_argument(fmt::format("'{}' is '{}', not one of auto, low, high", path, *text), path);
}

}  // namespace

Value image_part(Value url, Value detail, std::string at) {
  return ValueDict{{"type", "image"}, {"url", std::move(url)}, {"detail", std::move(detail)}, {"at", std::move(at)}};
}

Value base64_image_part(Value data, std::string at) {
  return ValueDict{{"type", "image"}, {"base64", std::move(data)}, {"at", std::move(at)}};
}

bool is_image_type(std::string_view type) { return type == "image" || type == "image_url" || type == "input_image"; }

Result<void> take_image(Value& part, std::vector<ShownImage>& images, const std::string& path) {
  if (images.size() == kMostImages)
    return invalid_argument(fmt::format("'{}' is one image more than the {} that a request may have", path, kMostImages), path);
  const Value* holder = &part;
  std::string holder_path = path;
  const bool is_plain = *part.find("type") == Value("image");
  const Value* base64 = is_plain ? part.find("base64") : nullptr;
  const char* name = base64 != nullptr ? "base64" : is_plain ? "url" : "image_url";
  const Value* source = part.find(name);
  if (!is_plain && source != nullptr && source->get_if<ValueDict>() != nullptr) {
    holder = source;
    holder_path = at_key(path, name);
    name = "url";
    source = holder->find(name);
  }
  ShownImage image;
  const Value* at = is_plain ? part.find("at") : nullptr;
  const auto* own_path = at != nullptr ? at->get_if<std::string>() : nullptr;
  image.path = own_path != nullptr ? *own_path : at_key(holder_path, name);
  if (source == nullptr || source->is_null()) {
    if (part.find("file_id") != nullptr)
      return invalid_argument(fmt::format("'{}' names a file, and this server keeps none: give the image itself", at_key(path, "file_id")),
                              at_key(path, "file_id"));
    return invalid_argument(fmt::format("'{}' is missing", image.path), image.path);
  }
  Result<std::string> text = json::read_string(*source, image.path);
  if (!text) return text.error();
  const Result<ImageDetail> detail = read_detail(holder->find("detail"), at_key(holder_path, "detail"));
  if (!detail) return detail.error();
  image.detail = *detail;
  const Result<void> read = base64 != nullptr ? read_base64(image, *text) : read_url(image, std::move(*text));
  if (!read) return read;
  part = ValueDict{{"type", "image"}, {"number", static_cast<std::int64_t>(images.size())}};
  images.push_back(std::move(image));
  return {};
}

}  // namespace braid::net::wish
