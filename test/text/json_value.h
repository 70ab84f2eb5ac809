// JSON files of test data as braid::Value.
#pragma once

#include "braid/value.h"

#include <simdjson.h>
#include <stdexcept>
#include <string>

namespace braid::test {

inline Value to_value(simdjson::dom::element json) {
  using Type = simdjson::dom::element_type;
  switch (json.type()) {
    case Type::ARRAY: {
      ValueList list;
      for (const auto item : json.get_array()) list.push_back(to_value(item));
      return list;
    }
    case Type::OBJECT: {
      ValueDict dict;
      for (const auto field : json.get_object()) dict.emplace_back(std::string(field.key), to_value(field.value));
      return dict;
    }
    case Type::INT64:
      return json.get_int64().value();
    case Type::UINT64:
      return static_cast<double>(json.get_uint64().value());
    case Type::DOUBLE:
      return json.get_double().value();
    case Type::STRING:
      return std::string(json.get_string().value());
    case Type::BOOL:
      return json.get_bool().value();
    case Type::NULL_VALUE:
      break;
  }
  return nullptr;
}

inline Value load_json(const std::string& path) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.load(path).get(json) != simdjson::SUCCESS) throw std::runtime_error("cannot read " + path);
  return to_value(json);
}

}  // namespace braid::test
