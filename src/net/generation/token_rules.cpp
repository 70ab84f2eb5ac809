#include "net/generation/token_rules.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

struct TokenSets {
  std::vector<std::uint32_t> allowed;        // a bit for each token; empty: all
  std::vector<std::vector<TokenId>> banned;  // none of them empty
  std::size_t longest = 0;                   // of the banned ones
  std::shared_ptr<const Constraint> inner;   // null: none
};

class TokenRulesState final : public ConstraintState {
 public:
  TokenRulesState(const TokenSets& rules, std::span<const TokenId> accepted)
      : rules_(rules), inner_(rules.inner != nullptr ? rules.inner->start(accepted) : nullptr) {
    for (const TokenId token : accepted.last(std::min(accepted.size(), rules.longest))) remember(token);
  }

  TokenRulesState(const TokenRulesState& other)
      : rules_(other.rules_), inner_(other.inner_ != nullptr ? other.inner_->copy() : nullptr), last_(other.last_) {}
  TokenRulesState& operator=(const TokenRulesState&) = delete;
  ~TokenRulesState() override = default;

  std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<TokenRulesState>(*this); }

  void fill_mask(std::span<std::uint32_t> allowed) override {
    if (inner_ != nullptr) {
      inner_->fill_mask(allowed);
    } else {
      std::fill(allowed.begin(), allowed.end(), ~std::uint32_t{0});
    }
    if (!rules_.allowed.empty()) {
      for (std::size_t word = 0; word < rules_.allowed.size(); ++word) allowed[word] &= rules_.allowed[word];
      std::ranges::fill(allowed.subspan(rules_.allowed.size()), 0U);  // the model may foretell more tokens than the vocabulary has
    }
    for (const std::vector<TokenId>& sequence : rules_.banned) {
      const auto begun = std::span(sequence).first(sequence.size() - 1);
      if (begun.size() > last_.size() || !std::equal(begun.begin(), begun.end(), last_.end() - static_cast<std::ptrdiff_t>(begun.size())))
        continue;
      const auto token = static_cast<std::size_t>(sequence.back());
      allowed[token / 32] &= ~(std::uint32_t{1} << (token % 32));
    }
  }

  void accept(TokenId token) override {
    if (inner_ != nullptr) inner_->accept(token);
    remember(token);
  }

 private:
  void remember(TokenId token) {
    last_.push_back(token);
    if (last_.size() >= rules_.longest && !last_.empty()) last_.erase(last_.begin());
  }

  const TokenSets& rules_;
  const std::unique_ptr<ConstraintState> inner_;  // null: none
  std::vector<TokenId> last_;                     // of the answer, one less than the longest sequence
};

class TokenRules final : public Constraint {
 public:
  explicit TokenRules(TokenSets rules) : rules_(std::move(rules)) {}

  std::unique_ptr<ConstraintState> start(std::span<const TokenId> accepted) const override {
    return std::make_unique<TokenRulesState>(rules_, accepted);
  }

 private:
  const TokenSets rules_;
};

}  // namespace

std::shared_ptr<const Constraint> with_token_rules(const GenerationCall& call, std::int32_t vocab) {
  if (call.allowed_tokens.empty() && call.banned_sequences.empty()) return call.constraint;
  TokenSets rules{{}, call.banned_sequences, 0, call.constraint};
  for (const std::vector<TokenId>& sequence : rules.banned) rules.longest = std::max(rules.longest, sequence.size());
  if (!call.allowed_tokens.empty()) rules.allowed.assign((static_cast<std::size_t>(vocab) + 31) / 32, 0);
  for (const TokenId token : call.allowed_tokens) rules.allowed[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
  return std::make_shared<TokenRules>(std::move(rules));
}

}  // namespace braid::net
