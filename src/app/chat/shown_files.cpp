#include "app/chat/shown_files.h"

#include "app/whole_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostImageBytes = std::size_t{20} << 20;

bool ends_as_image(std::string path) {
  constexpr std::array<std::string_view, 6> kEndings = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"};
  std::ranges::transform(path, path.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return path.ends_with(ending); });
}

// A word as a shell would take it.
struct Word {
  std::string path;
  std::size_t end;  // in the text
};

Word word_at(std::string_view text, std::size_t begin) {
  Word word{{}, begin};
  const char quote = text[begin] == '"' || text[begin] == '\'' ? text[begin] : '\0';
  std::size_t at = begin + (quote != '\0' ? 1 : 0);
  for (; at < text.size(); ++at) {
    if (quote != '\0' ? text[at] == quote : text[at] == ' ' || text[at] == '\n' || text[at] == '\t') break;
    if (quote == '\0' && text[at] == '\\' && at + 1 < text.size()) ++at;
    word.path += text[at];
  }
  word.end = at + (quote != '\0' && at < text.size() ? 1 : 0);
  return word;
}

std::string in_home(std::string path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

bool names_image(const std::string& path) {
  std::error_code ignored;
  return ends_as_image(path) && std::filesystem::is_regular_file(in_home(path), ignored);
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8U | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += at + i > bytes.size() ? '=' : kDigits[(bits >> (18 - 6 * i)) & 0x3FU];
  }
  return out;
}

}  // namespace

TypedText find_images(std::string_view text) {
  TypedText typed;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '\t';
    Word word = begins ? word_at(text, at) : Word{{}, at};
    if (!word.path.empty() && names_image(word.path)) {
      typed.images.push_back(in_home(std::move(word.path)));
      at = word.end;
      if (at < text.size() && text[at] == ' ' && (typed.words.empty() || typed.words.ends_with(' '))) ++at;  // not two of them
      continue;
    }
    typed.words += text[at++];
  }
  while (typed.words.ends_with(' ') && !typed.images.empty()) typed.words.pop_back();
  return typed;
}

bool begins_with_image(std::string_view text) { return !text.empty() && names_image(word_at(text, 0).path); }

Result<Value> typed_message(const std::string& text) {
  TypedText typed = find_images(text);
  ValueDict message{{"role", "user"}, {"content", std::move(typed.words)}};
  ValueList images;
  for (const std::string& path : typed.images) {
    const std::optional<std::string> bytes = read_whole_file(path, kMostImageBytes);
    if (!bytes) return Error{ErrorCode::kIo, fmt::format("{} cannot be read", path), ""};
    if (bytes->size() > kMostImageBytes)
      return Error{ErrorCode::kIo, fmt::format("{} is larger than {} MiB", path, kMostImageBytes >> 20U), ""};
    images.emplace_back(to_base64(*bytes));
  }
  if (!images.empty()) message.emplace_back("images", std::move(images));
  return Value(std::move(message));
}

}  // namespace braid::app
