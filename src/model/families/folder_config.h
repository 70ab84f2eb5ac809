// The config.json of a Hugging Face folder, each value held against its range.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

// A key goes by several names; the first that is there and not null counts, then what its type has where a wrapper leaves it out. The first failure is kept in `error`, and every later look-up
// answers with its fallback.
class FolderConfig {
 public:
  using Names = std::initializer_list<std::string_view>;

  // `path` is for messages. Where the text's model is wrapped (text_config, llm_config), its part is what is read.
  FolderConfig(const std::string& text, std::string path);

  std::optional<Error> error;
  void fail(ErrorCode code, const std::string& message);

  const std::string& model_type() const { return model_type_; }
  const std::string& outer_type() const { return outer_type_; }  // of the wrapper, or the same
  bool is_wrapped() const { return wrapped_; }

  bool has(Names names) const { return find(names).has_value(); }
  std::int64_t count(Names names, std::optional<std::int64_t> fallback, std::int64_t least, std::int64_t most);
  // One for all layers, or a list with one for each, which may be 0 where a layer has none of it.
  std::vector<std::int64_t> counts(Names names, std::optional<std::int64_t> fallback, std::int64_t least, std::int64_t most);
  double number(Names names, std::optional<double> fallback, double low, double high);
  bool flag(Names names, bool fallback);
  std::string text(Names names, std::string_view fallback);
  std::vector<double> numbers(std::string_view name, std::size_t expected);  // empty when it is missing
  std::vector<std::string> texts(std::string_view name);                     // likewise

  // The object `name` as a configuration of its own, where it is one.
  std::optional<FolderConfig> part(std::string_view name) const;
  // The whole file's, where the text's model is wrapped.
  FolderConfig outer() const;
  // The same of the wrapper where there is one and it has that object.
  std::optional<FolderConfig> outer_part(std::string_view name) const;

 private:
  FolderConfig(simdjson::dom::element root, const FolderConfig& whole, std::string_view name);
  std::optional<simdjson::dom::element> find(Names names) const;
  std::string first(Names names) const { return prefix_ + std::string(*names.begin()); }
  void unwrap();
  void add_defaults();

  std::shared_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_, outer_root_;
  std::shared_ptr<simdjson::dom::parser> default_parser_;  // null: a key that is missing has no value
  simdjson::dom::element defaults_;
  std::string path_, prefix_, model_type_, outer_type_;
  bool wrapped_ = false;
};

}  // namespace braid::model
