#include "net/access/key_ring.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <utility>

namespace braid::net::access {

Digest digest_of(std::string_view key) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

KeyRing::KeyRing(std::vector<ApiKey> keys, Rules anonymous, Clock::time_point now)
    : anonymous_(std::make_shared<Account>("", std::move(anonymous), now)) {
  replace(std::move(keys), now);
}

void KeyRing::replace(std::vector<ApiKey> keys, Clock::time_point now) {
  required_ = required_ || !keys.empty();
  entries_.clear();
  std::erase_if(accounts_, [now](const auto& known) { return known.second->is_unused(now); });
  for (ApiKey& key : keys) {
    std::shared_ptr<Account>& account = accounts_[key.name];
    if (account == nullptr) {
      account = std::make_shared<Account>(key.name, std::move(key.rules), now);
    } else {
      account->set_rules(std::move(key.rules), now);
    }
    entries_.push_back({key.digest, account});
  }
}

void KeyRing::limit_anonymous(const Limits& limits, Clock::time_point now) {
  Rules rules = anonymous_->rules();
  rules.limits = limits;
  anonymous_->set_rules(std::move(rules), now);
}

Result<std::shared_ptr<Account>> KeyRing::identify(std::span<const std::string> keys) const {
  if (!required_) return anonymous_;
  std::shared_ptr<Account> account;
  for (const std::string& key : keys)
    if (account == nullptr) account = find(key);
  if (account != nullptr) return account;
  if (keys.empty())
    return Error{ErrorCode::kUnauthorized, "this server wants an API key, as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'", ""};
  return Error{ErrorCode::kUnauthorized, "the API key is not one of this server's", ""};
}

std::shared_ptr<Account> KeyRing::find(std::string_view key) const {
  const Digest wanted = digest_of(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (CRYPTO_memcmp(entry.digest.data(), wanted.data(), wanted.size()) == 0) found = &entry;
  return found != nullptr ? found->account : nullptr;
}

}  // namespace braid::net::access
