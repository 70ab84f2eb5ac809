// Image files from other servers, which requests name by their addresses: only from hosts that the operator allows, and never from inside.
#pragma once

#include "braid/result.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace braid::images {

struct FetchRules {
  // "pictures.example", "*.example" for all below it, or "*"; with ":8080", or ":*", on other ports than http's and https'. None: nothing is
  // fetched.
  std::vector<std::string> hosts;
  bool private_addresses = false;  // also from loopback, private and other addresses that are not the internet's
  std::size_t most_bytes = std::size_t{20} << 20;
  std::chrono::milliseconds timeout{10'000};  // of all of it, redirections included
  int redirections = 3;
};

// Why an address may not be asked, as a sentence; empty: it may. Looks at the address as written alone.
std::string refusal_of(const FetchRules& rules, const std::string& url);

// Whether it is an address of the internet: neither of this machine, nor of a private or local network, nor reserved.
bool is_public(const sockaddr& address);

// The body of a successful answer. Each address that a name resolves to is checked as it is connected to, and each redirection as if it had
// been asked for; no proxy is used and nothing is sent but the request. kInvalidArgument with a sentence. Any thread; blocks.
Result<std::string> fetch(const FetchRules& rules, const std::string& url);

}  // namespace braid::images
