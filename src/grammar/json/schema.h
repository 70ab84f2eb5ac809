// JSON Schema → grammar expression. Every text of the expression is JSON that satisfies the schema; the reverse does not hold:
// properties come in the schema's order, white space and digits are bounded, and where a schema leaves properties open, none are
// invented.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "grammar/grammar.h"
#include "grammar/json/keywords.h"
#include "grammar/json/references.h"
#include "grammar/json/syntax.h"
#include "grammar/text_language.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::grammar::json {

// What must be there for a schema to be satisfied: a required member or element.
struct Demand {
  ExprId expr;
  std::string place;  // of its schema
};

class SchemaCompiler {
 public:
  // `root` is what "#" refers to and outlives the compiler, as do `leniency` and `barren`: places of demands which are known to be met by
  // nothing, and whose schemas are to be left out. `path` is how errors name the root.
  SchemaCompiler(Grammar& grammar, const Value& root, std::string path, Leniency& leniency, const std::set<std::string>& barren)
      : grammar_(grammar), syntax_(grammar), root_(root), path_(std::move(path)), leniency_(leniency), barren_(barren),
        targets_(root, path_) {}

  // kInvalidArgument with the path of a keyword that cannot be honoured and may not be left out, or of a schema that is too large.
  Result<ExprId> compile() { return compile(root_, path_); }
  // Of what satisfies the schema only objects.
  Result<ExprId> compile_objects();

  // Of all that is not within something dispensable; inner ones come first.
  std::vector<Demand> take_demands() { return std::move(demands_); }

 private:
  using Expr = Result<ExprId>;

  Expr compile(const Value& schema, const std::string& path);
  // A schema of what stands within the value of the one that is being compiled, and whether it must stand there.
  Expr compile_within(const Value& schema, const std::string& path, bool needed);
  Expr compile_keywords(const ValueDict& schema, const std::string& path);
  Expr compile_not(const ValueDict& schema, const std::string& path);
  Expr compile_all_of(const ValueDict& schema, const std::string& path);
  Expr compile_reference(const std::string& reference, const std::string& path);
  Expr compile_target(const std::string& reference, const References::Target& target);
  Expr compile_branches(const ValueDict& schema, std::string_view keyword, const std::string& path);
  // That no value satisfies two of the schemas.
  std::optional<Error> tell_apart(const std::vector<const Value*>& branches, const std::string& path);
  Expr compile_values(const ValueDict& schema, const std::string& path);
  Expr compile_type(Type type, const ValueDict& schema, const std::string& path);

  Expr compile_string(const ValueDict& schema, const std::string& path);
  Expr compile_format(std::string_view pattern);
  // The texts that match all patterns which can be honoured: anything() without any.
  Result<TextLanguages::Id> patterns_of(const ValueDict& schema, const std::string& path);
  // One pattern without a length beside it; nullopt where that takes a language.
  std::optional<ExprId> compile_plain_pattern(const ValueDict& schema);
  Expr compile_text(TextLanguages::Id text);  // in quotation marks
  Expr compile_number(const ValueDict& schema, bool whole, const std::string& path);
  Expr compile_array(const ValueDict& schema, const std::string& path);
  Expr compile_object(const ValueDict& schema, const std::string& path);
  // What an object's schema says of members by their names.
  struct Members {
    ValueDict named;                            // schemas
    std::map<std::string, std::string> places;  // of those that do not stand in properties, behind the object's path
    std::set<std::string> required;
    bool forbidden = false;  // one that is required has a name that may not be
    bool listed = false;     // no others may be
    bool unknown = false;    // they are too many
  };
  std::optional<Error> name_members(const ValueDict& schema, Members& out, const std::string& path);
  std::optional<Error> add_patterns(const ValueDict& schema, Members& out, const std::string& path);
  std::optional<Error> restrict_names(const ValueDict& schema, Members& out, const std::string& path);
  std::optional<Error> list_names(const ValueDict& schema, const ValueList& names, Members& out, const std::string& path);
  std::optional<Error> give_up(Members& out, const std::string& place, std::string_view why);
  bool matches_pattern(const ValueDict& schema, const std::string& name);
  // The members that a schema does not name, as one repeatable expression; nothing() when it allows none.
  Expr compile_other_members(const ValueDict& schema, const Members& names, const std::string& path);
  Expr compile_pattern_members(const ValueDict& schema, const Members& names, const std::string& path);
  Expr compile_keys(const ValueDict& schema, const Members& names, const std::string& path);

  // One member that an object may have, in order.
  struct Member {
    ExprId expr;
    bool required;
  };
  ExprId members(const std::vector<Member>& named, ExprId other, std::uint32_t other_min, std::uint32_t other_max);

  // The schema that a chain of references without other keywords ends at, or the reference that leads nowhere.
  const Value& resolve(const Value& schema) const;
  // Null where the reference leads nowhere.
  const Value* target_of(const std::string& reference) const;
  // The schema without a $ref of its own.
  Result<Value> expanded(const Value& schema, const std::string& path, std::size_t steps);
  // The schema that holds exactly where both hold.
  Result<Value> merge(const Value& a, const Value& b, const std::string& path);

  Grammar& grammar_;
  Syntax syntax_;
  const Value& root_;
  std::string path_;
  Leniency& leniency_;
  const std::set<std::string>& barren_;
  const References targets_;
  TextLanguages languages_;
  std::map<std::string, ExprId> references_;      // as calls
  std::set<std::string> open_references_;         // whose targets are being compiled for this very value
  std::map<std::vector<ExprId>, ExprId> unions_;  // by branches: a schema often repeats a union wherever it is used
  std::vector<Demand> demands_;
  std::size_t dispensable_ = 0;  // open schemas that need not be satisfied: branches among others, members that may be missing
  std::size_t depth_ = 0;
  std::size_t schemas_ = 0;
};

}  // namespace braid::grammar::json
