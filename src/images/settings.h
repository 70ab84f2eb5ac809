// What a model's files say of its image processor.
#pragma once

#include "braid/result.h"
#include "images/picture.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::images {

// An object of JSON, or none. Members of another type than is asked for count as missing.
class Section {
 public:
  Section() = default;
  // kBadFile: it is no JSON object; `what` is for the message.
  static Result<Section> parse(std::string_view text, std::string_view what);

  bool is_empty() const { return parser_ == nullptr; }
  Section member(std::string_view name) const;

  std::optional<double> number(std::string_view name) const;
  // As a whole number from 1 to `most`; `fallback` where it is missing or another one.
  std::int32_t count(std::string_view name, std::int32_t fallback, std::int32_t most = 1 << 20) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string fallback) const;
  // {"height": …, "width": …}, or both in an array, or one number for both.
  std::optional<Size> size(std::string_view name) const;
  // An array of numbers, or of arrays of two numbers; empty where it is missing.
  std::vector<double> numbers(std::string_view name) const;
  std::vector<Size> sizes(std::string_view name) const;

 private:
  std::optional<simdjson::dom::element> find(std::string_view name) const;

  std::shared_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::object object_;
};

struct Settings {
  Section pictures;  // preprocessor_config.json, or "image_processor" of processor_config.json
  Section words;     // processor_config.json
  Section model;     // config.json
  std::string mark;  // what stands for one vector; empty: what the processor's file says, or its class

  // Texts of files, each empty where the file is missing. kUnsupported: nothing tells of an image processor.
  static Result<Settings> read(std::string_view preprocessor, std::string_view processor, std::string_view config);

  // The class that transformers would choose, without "Fast" and "Pil"; from the model's type where no file names one.
  std::string processor_class() const;
  std::string vector_mark(std::string fallback) const { return mark.empty() ? words.text("image_token", std::move(fallback)) : mark; }
  // Pixels of a patch's side.
  std::int32_t patch_size(std::int32_t fallback) const;
};

}  // namespace braid::images
