// What restricts the text of an answer (structured output, forced tool calls): compiled once, then advanced token by token.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/value.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid {

// The wish of a request. `path` names the field it came from: errors begin with it.
struct ConstraintSpec {
  struct JsonObject {};  // any JSON object
  struct JsonSchema {
    Value schema;
    bool strict = false;  // what restricts and cannot be honoured is an error; otherwise it is left out, if need be the whole schema
    bool object = false;  // nothing but an object satisfies it, whatever it says
  };
  struct Regex {
    std::string pattern;
  };  // the whole text matches
  struct Choice {
    std::vector<std::string> options;
  };
  struct Grammar {
    std::string text;
  };  // GBNF or Lark-like EBNF, told apart by their form
  struct TextMember {
    std::string name;
    std::string text;
    bool is_regex = false;
  };  // a JSON object with this member alone, a string that the regular expression matches from end to end, or the grammar in Lark's form;
      // any string where that cannot be honoured
  struct Literal {
    std::string text;
  };
  struct FreeUntil {
    std::string end;
  };  // any text that ends with the first `end`
  struct FreeWithout {
    std::string end;
    std::vector<std::string> more = {};
    std::string not_first = {};
  };  // any text that neither `end` nor one of `more` stands in, and whose first character but for white space is none of `not_first`
  struct Sequence {
    std::vector<ConstraintSpec> parts;
  };
  struct Alternatives {
    std::vector<ConstraintSpec> options;
  };
  struct Repeat {
    std::vector<ConstraintSpec> item;
    std::int32_t least = 0;
    std::int32_t most = -1;
  };  // one item; -1: no limit

  std::variant<JsonObject, JsonSchema, Regex, Choice, Grammar, TextMember, Literal, FreeUntil, FreeWithout, Sequence, Alternatives, Repeat>
      kind;
  std::string path;
};

// The place of one sequence in its constraint. Belongs to the compute strand.
class ConstraintState {
 public:
  virtual ~ConstraintState() = default;

  // Sets bit i % 32 of word i / 32 for each token i that may come next, clears the others. End-of-sequence tokens are allowed exactly
  // where the text may end. No bit is set where no token goes on and the text may not end: the answer cannot be completed.
  // `allowed` has (vocabulary + 31) / 32 words.
  virtual void fill_mask(std::span<std::uint32_t> allowed) = 0;

  // Advances by an allowed token.
  virtual void accept(TokenId token) = 0;

  // Another one at the same place, to look ahead with.
  virtual std::unique_ptr<ConstraintState> copy() const = 0;
};

// A compiled constraint. Immutable: any thread, shared by requests.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // The state after `accepted`, tokens of the answer that are there already (after a preemption); usually none. Any thread.
  virtual std::unique_ptr<ConstraintState> start(std::span<const TokenId> accepted) const = 0;

  // The paths of what was left out: keywords of schemas, schemas, and texts of members. They live as long as this.
  virtual std::span<const std::string> left_out() const { return {}; }
};

// A regular expression that is looked for in text as it comes. Immutable: any thread.
class TextSearch {
 public:
  virtual ~TextSearch() = default;

  // Where one text stands: 0 at its beginning.
  using State = std::uint32_t;

  // Goes on by `piece`, whole characters of UTF-8: the bytes of it up to where the first match ends, after which it is not asked again,
  // or nothing yet.
  virtual std::optional<std::size_t> feed(State& state, std::string_view piece) const = 0;
};

// Of one model's vocabulary. Any thread; compiled constraints are cached by their spec.
class ConstraintCompiler {
 public:
  virtual ~ConstraintCompiler() = default;

  // kInvalidArgument with the path of what cannot be honoured and may not be left out in `param`.
  virtual Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec) const = 0;

  // kInvalidArgument when the pattern is not understood or too large. `path` names the field it came from.
  virtual Result<std::shared_ptr<const TextSearch>> search(const std::string& pattern, const std::string& path) const = 0;
};

}  // namespace braid
