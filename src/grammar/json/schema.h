// JSON Schema → grammar expression. Every text of the expression is JSON that satisfies the schema; the reverse does not hold:
// properties come in the schema's order, white space and digits are bounded, and where a schema leaves properties open, none are
// invented.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "grammar/grammar.h"
#include "grammar/json/keywords.h"
#include "grammar/json/syntax.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::grammar::json {

class SchemaCompiler {
 public:
  // `root` is what "#" refers to and outlives the compiler; `path` is how errors name it.
  SchemaCompiler(Grammar& grammar, const Value& root, std::string path)
      : grammar_(grammar), syntax_(grammar), root_(root), path_(std::move(path)) {}

  // kInvalidArgument with the path of the keyword that cannot be honoured.
  Result<ExprId> compile() { return compile(root_, path_); }

 private:
  using Expr = Result<ExprId>;

  Expr compile(const Value& schema, const std::string& path);
  Expr compile_keywords(const ValueDict& schema, const std::string& path);
  Expr compile_all_of(const ValueDict& schema, const std::string& path);
  Expr compile_reference(const std::string& reference, const std::string& path);
  Expr compile_branches(const ValueDict& schema, std::string_view keyword, const std::string& path);
  Expr compile_values(const ValueDict& schema, const std::string& path);
  Expr compile_type(Type type, const ValueDict& schema, const std::string& path);

  Expr compile_string(const ValueDict& schema, const std::string& path);
  Expr compile_pattern(const ValueDict& schema, const std::string& path);
  Expr compile_number(const ValueDict& schema, bool whole, const std::string& path);
  Expr compile_array(const ValueDict& schema, const std::string& path);
  Expr compile_object(const ValueDict& schema, const std::string& path);
  // The members that a schema does not name, as one repeatable expression; nothing() when it allows none.
  Expr compile_other_members(const ValueDict& schema, const std::string& path);
  Expr compile_keys(const ValueDict& schema, const std::string& path);

  // One member that an object may have, in order.
  struct Member {
    ExprId expr;
    bool required;
  };
  ExprId members(const std::vector<Member>& named, ExprId other, std::uint32_t other_min, std::uint32_t other_max);

  // The schema that a chain of references without other keywords ends at.
  Result<const Value*> resolve(const Value& schema, const std::string& path) const;
  Result<const Value*> target_of(const std::string& reference, const std::string& path) const;
  // The schema that holds exactly where both hold.
  Result<Value> merge(const Value& a, const Value& b, const std::string& path);

  Grammar& grammar_;
  Syntax syntax_;
  const Value& root_;
  std::string path_;
  std::map<std::string, ExprId> references_;      // as calls
  std::map<std::vector<ExprId>, ExprId> unions_;  // by branches: a schema often repeats a union wherever it is used
  std::size_t depth_ = 0;
  std::size_t schemas_ = 0;
};

}  // namespace braid::grammar::json
