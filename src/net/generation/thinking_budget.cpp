#include "net/generation/thinking_budget.h"

#include "net/generation/parser/characters.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

constexpr std::size_t kMaxUnfinished = 3;  // bytes of a UTF-8 character that lacks its last one

struct Rules {
  const TextCodec& codec;
  ReasoningTags tags;
  std::vector<TokenId> close;               // the tokens of tags.close
  bool anywhere;                            // reasoning may begin behind other text
  bool begun;                               // by the prompt
  std::int32_t budget;                      // tokens
  std::shared_ptr<const Constraint> inner;  // null: none
};

bool ends_inside_character(std::string_view text) {
  for (std::size_t length = 1; length <= std::min(kMaxUnfinished, text.size()); ++length) {
    const auto byte = static_cast<unsigned char>(text[text.size() - length]);
    if (byte >= 0xC0) return length < (byte >= 0xF0 ? 4U : byte >= 0xE0 ? 3U : 2U);
    if (byte < 0x80) return false;
  }
  return false;
}

class State final : public ConstraintState {
 public:
  State(const Rules& rules, std::span<const TokenId> accepted)
      : rules_(rules), inner_(rules.inner != nullptr ? rules.inner->start(accepted) : nullptr),
        place_(rules.begun ? Place::kReasoning : Place::kBefore), left_(rules.budget) {
    close_when_used_up();
    for (const TokenId token : accepted) follow(token);
  }

  State(const State& other)
      : rules_(other.rules_), inner_(other.inner_ != nullptr ? other.inner_->copy() : nullptr), place_(other.place_), left_(other.left_),
        closed_(other.closed_), text_(other.text_) {}
  State& operator=(const State&) = delete;
  ~State() override = default;

  std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<State>(*this); }

  void fill_mask(std::span<std::uint32_t> allowed) override {
    if (inner_ != nullptr) {
      inner_->fill_mask(allowed);
    } else {
      std::fill(allowed.begin(), allowed.end(), ~std::uint32_t{0});
    }
    if (place_ != Place::kClosing) return;
    const auto token = static_cast<std::size_t>(rules_.close[closed_]);
    const std::uint32_t bit = std::uint32_t{1} << (token % 32);
    if ((allowed[token / 32] & bit) == 0) return;
    std::fill(allowed.begin(), allowed.end(), 0);
    allowed[token / 32] = bit;
  }

  void accept(TokenId token) override {
    if (inner_ != nullptr) inner_->accept(token);
    follow(token);
  }

 private:
  enum class Place { kBefore, kReasoning, kClosing, kBehind };

  void follow(TokenId token) {
    switch (place_) {
      case Place::kBefore:
        text_ += rules_.codec.token_bytes(token);
        return look_for_open();
      case Place::kReasoning:
        --left_;
        text_ += rules_.codec.token_bytes(token);
        return look_for_close();
      case Place::kClosing:
        if (token != rules_.close[closed_]) return leave();  // the inner constraint wanted something else
        if (++closed_ == rules_.close.size()) leave();
        return;
      case Place::kBehind:
        return;
    }
  }

  void look_for_open() {
    const std::string& open = rules_.tags.open;
    const std::size_t at = text_.find(open);
    const std::size_t first = std::min(text_.find_first_not_of(kSpace), text_.size());
    if (at != std::string::npos && (rules_.anywhere || at == first)) {
      text_.erase(0, at + open.size());
      place_ = Place::kReasoning;
      return look_for_close();
    }
    if (rules_.anywhere) return keep_last(open.size());
    text_.erase(0, first);
    if (!open.starts_with(text_)) place_ = Place::kBehind;
  }

  void look_for_close() {
    if (text_.find(rules_.tags.close) != std::string::npos) return leave();
    keep_last(std::max(rules_.tags.close.size(), kMaxUnfinished));
    close_when_used_up();
  }

  void close_when_used_up() {
    if (place_ != Place::kReasoning || left_ > 0 || ends_inside_character(text_)) return;
    place_ = Place::kClosing;
    closed_ = 0;
  }

  // Behind the reasoning, or before the next one.
  void leave() {
    text_.clear();
    place_ = rules_.anywhere ? Place::kBefore : Place::kBehind;
  }

  void keep_last(std::size_t bytes) {
    if (text_.size() > bytes) text_.erase(0, text_.size() - bytes);
  }

  const Rules& rules_;
  const std::unique_ptr<ConstraintState> inner_;  // null: none
  Place place_;
  std::int32_t left_;       // of the budget, for all reasoning of the answer together
  std::size_t closed_ = 0;  // tokens of the closing tag that are there
  std::string text_;        // the last bytes, in which a tag is looked for
};

class ThinkingBudget final : public Constraint {
 public:
  explicit ThinkingBudget(Rules rules) : rules_(std::move(rules)) {}

  std::unique_ptr<ConstraintState> start(std::span<const TokenId> accepted) const override {
    return std::make_unique<State>(rules_, accepted);
  }

 private:
  const Rules rules_;
};

}  // namespace

std::shared_ptr<const Constraint> with_thinking_budget(const TextCodec& codec, const GenerationCall& call) {
  if (call.thinking_budget < 0 || !call.syntax || call.syntax->reasoning.open.empty()) return call.constraint;
  const AnswerSyntax& syntax = *call.syntax;
  Result<std::vector<TokenId>> close = codec.encode(syntax.reasoning.close, {.add_special = false, .parse_special = true});
  if (!close || close->empty()) return call.constraint;
  return std::make_shared<ThinkingBudget>(Rules{codec, syntax.reasoning, std::move(*close), syntax.reasoning_anywhere,
                                                syntax.begins_in_reasoning, call.thinking_budget, call.constraint});
}

}  // namespace braid::net
