// A module's rows, which nobody reads: where they come to lie is what is wanted.
#pragma once

#include "files/coded_rows.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// Immutable.
class ModuleRows : public files::CodedRows {
 public:
  // `is_turned`: the folder has the module's inputs as rows.
  ModuleRows(std::string name, std::int64_t rows, bool is_turned = false) : name_(std::move(name)), rows_(rows), is_turned_(is_turned) {}

  const std::string& name() const { return name_; }
  bool is_turned() const { return is_turned_; }
  std::shared_ptr<const ModuleRows> turned() const { return std::make_shared<const ModuleRows>(name_, rows_, !is_turned_); }

  std::int64_t rows() const override { return rows_; }
  bool has_values() const override { return false; }
  void read(std::int64_t, float*) const override {}
  void encode(std::int64_t, std::byte*) const override {}
  std::vector<std::span<const std::byte>> other_bytes() const override { return {}; }

 private:
  std::string name_;
  std::int64_t rows_;
  bool is_turned_;
};

}  // namespace braid::model
