// ConstraintSpec → grammar expression.
#pragma once

#include "braid/constraint.h"
#include "grammar/grammar.h"
#include "grammar/json/schema.h"
#include "grammar/vocabulary.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace braid::grammar {

// Why a schema or a member's text cannot be kept; nullopt: it can.
using Objection = std::function<std::optional<Error>(const ConstraintSpec& part)>;

struct Translated {
  ExprId root = 0;
  std::vector<ExprId> parts;          // schemas and members' texts that were kept
  std::vector<json::Demand> demands;  // of the schemas
  std::vector<std::string> left_out;  // the paths of what was not
};

// kInvalidArgument with the path of what cannot be honoured and may not be left out. `objects_to` is asked about each schema and member's
// text; `barren` as SchemaCompiler has it.
Result<Translated> translate(const ConstraintSpec& spec, const Vocabulary& vocabulary, Grammar& grammar, const Objection& objects_to,
                             const std::set<std::string>& barren);

// Whether it has schemas or members' texts.
bool has_parts(const ConstraintSpec& spec);

// Equal for specs that allow the same texts by the same words, whatever their paths, but for those of what may be left out.
std::string cache_key(const ConstraintSpec& spec);

}  // namespace braid::grammar
