#include "registry/registry_client.h"

#include "registry/digest.h"
#include "registry/json.h"
#include "registry/ssh_key.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <new>
#include <openssl/rand.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::size_t kMostAnswer = std::size_t{1} << 20;

// What stands in quotes behind each name of a challenge: Bearer realm="…",service="…",scope="…".
std::map<std::string, std::string> parameters_of(std::string_view challenge) {
  std::map<std::string, std::string> found;
  while (!challenge.empty()) {
    const std::size_t equals = challenge.find("=\"");
    if (equals == std::string_view::npos) return found;
    const std::size_t begin = challenge.find_last_of(" ,", equals);
    const std::size_t end = challenge.find('"', equals + 2);
    if (end == std::string_view::npos) return found;
    const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
    found.emplace(challenge.substr(from, equals - from), challenge.substr(equals + 2, end - equals - 2));
    challenge.remove_prefix(end + 1);
  }
  return found;
}

// What is said to somebody who is not let in.
std::string how_to_be_known(const std::string& key_file) {
  if (const Result<SshKey> key = SshKey::read(key_file); key)
    return fmt::format("this machine's key there, if an account is to have it, is {}", key->public_line());
  return "BRAID_REGISTRY_TOKEN is for a token, and `braid key` makes a key for a registry with accounts, such as ollama.com";
}

// 16 random bytes as they may stand in a URL.
std::string nonce() {
  std::string bytes(16, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1) throw std::bad_alloc();
  std::string letters = base64(bytes);
  std::ranges::replace(letters, '+', '-');
  std::ranges::replace(letters, '/', '_');
  letters.resize(letters.find('='));
  return letters;
}

// "a b" as "&scope=a&scope=b".
std::string scopes_of(std::string_view scopes) {
  std::string query;
  while (!scopes.empty()) {
    const std::string_view one = scopes.substr(0, scopes.find(' '));
    if (!one.empty()) query += fmt::format("&scope={}", percent_encoded(one));
    scopes.remove_prefix(std::min(scopes.size(), one.size() + 1));
  }
  return query;
}

}  // namespace

RegistryClient::RegistryClient(const RemoteOptions& options, const ModelRef& ref, bool insecure)
    : options_(options), ref_(ref), insecure_(insecure), token_(options.registry_token) {
  base_ = fmt::format("{}://{}", !ref.scheme.empty() ? ref.scheme : "https", ref.host);
  is_mirror_ = ref.host == kUsualHost && !options.mirror.empty();
  if (is_mirror_) base_ = options.mirror;
  while (base_.ends_with('/')) base_.pop_back();
}

std::string RegistryClient::url_of(std::string_view rest) const {
  return fmt::format("{}/v2/{}/{}/{}", base_, ref_.owner, ref_.model, rest);
}

std::vector<std::string> RegistryClient::headers(std::vector<std::string> more) const {
  if (!token_.empty()) more.push_back("Authorization: Bearer " + token_);
  return more;
}

Result<HttpAnswer> RegistryClient::send(HttpRequest request, std::size_t most) {
  if (request.url.starts_with("http://") && !insecure_ && !is_mirror_)
    return invalid_argument(fmt::format("{} is asked without encryption: allow it with --insecure", origin_of(request.url)), "insecure");
  request.insecure = insecure_;
  const std::vector<std::string> plain = request.headers;
  request.headers = headers(plain);
  Result<HttpAnswer> answer = ask(options_.http, request, most);
  if (!answer || answer->status != 401) return answer;
  const std::string challenge = answer->header("www-authenticate");
  if (challenge.empty() || !options_.registry_token.empty()) return answer;
  if (const Result<void> known = authenticate(challenge); !known) return known.error();
  request.headers = headers(plain);
  return ask(options_.http, request, most);
}

Error RegistryClient::fault_of(const HttpAnswer& answer, std::string_view what) const {
  const std::string host = origin_of(answer.url);
  if (answer.status == 404) return {ErrorCode::kNotFound, fmt::format("{} has no {} of {}", host, what, ref_.text()), "model"};
  if (answer.status == 401 || answer.status == 403)
    return {ErrorCode::kUnauthorized,
            fmt::format("{} does not let us have {} ({}); {}", host, ref_.text(), answer.status, how_to_be_known(options_.key_file)), ""};
  return {ErrorCode::kIo, fmt::format("{} answers with status {} to a request for the {} of {}", host, answer.status, what, ref_.text()),
          ""};
}

// A token from where the registry says: what anybody gets, or, where this machine has a key and the registry itself is asked, what the key's
// owner gets. As Ollama's clients do it (server/auth.go and auth/auth.go there, MIT): what is signed is the request with the time and a number
// that is used once, and the digest of its empty body.
Result<void> RegistryClient::authenticate(const std::string& challenge) {
  std::map<std::string, std::string> said = parameters_of(challenge);
  const std::string realm = said["realm"];
  if (!realm.starts_with("https://") && !(insecure_ && realm.starts_with("http://")))
    return Error{ErrorCode::kUnauthorized, fmt::format("{} wants a login of a kind that is not known here", base_), ""};
  HttpRequest request{.url = fmt::format("{}{}nonce={}{}&service={}&ts={}", realm, realm.find('?') == std::string::npos ? '?' : '&',
                                         nonce(), scopes_of(said["scope"]), percent_encoded(said["service"]), std::time(nullptr))};
  request.insecure = insecure_;
  if (!options_.key_file.empty() && origin_of(realm) == origin_of(base_)) {
    const Result<SshKey> key = SshKey::read(options_.key_file);
    if (!key && key.error().code != ErrorCode::kNotFound) return key.error();
    const std::string words = fmt::format("GET,{},{}", request.url, base64(digest_of("").digits()));
    if (key) request.headers.push_back("Authorization: " + key->signature_of(words));
  }
  const Result<HttpAnswer> answer = ask(options_.http, request, kMostAnswer);
  if (!answer) return answer.error();
  const Result<Value> document = answer->status == 200 ? parse_json(answer->body, "the token's answer") : Result<Value>(Value());
  if (document) token_ = text_member(*document, "token");
  if (token_.empty() && document) token_ = text_member(*document, "access_token");
  if (token_.empty() || token_.find_first_of("\r\n") != std::string::npos)
    return Error{ErrorCode::kUnauthorized,
                 fmt::format("{} gives no token for {}; {}", origin_of(realm), ref_.text(), how_to_be_known(options_.key_file)), ""};
  return {};
}

Result<std::string> RegistryClient::manifest() {
  const HttpRequest request{.url = url_of("manifests/" + ref_.tag), .headers = {fmt::format("Accept: {}", kManifestType)}};
  Result<HttpAnswer> answer = send(request, kMostManifestBytes);
  if (!answer) return answer.error();
  if (answer->status != 200) return fault_of(*answer, "manifest");
  return std::move(answer->body);
}

Download RegistryClient::blob(const Layer& layer) const {
  return {layer.digest, layer.bytes, url_of("blobs/" + layer.digest.text()), headers(), insecure_};
}

Result<bool> RegistryClient::has_blob(const Digest& digest) {
  const Result<HttpAnswer> answer = send({.method = "HEAD", .url = url_of("blobs/" + digest.text())}, kMostAnswer);
  if (!answer) return answer.error();
  if (answer->status == 200) return true;
  if (answer->status == 404) return false;
  return fault_of(*answer, "blob");
}

Result<void> RegistryClient::put_blob(const Digest& digest, const std::string& path, const std::function<bool(std::uint64_t)>& on_sent) {
  const Result<HttpAnswer> begun = send({.method = "POST", .url = url_of("blobs/uploads/")}, kMostAnswer);
  if (!begun) return begun.error();
  std::string place = begun->header("location");
  if (begun->status != 202 || place.empty()) return fault_of(*begun, "upload");
  if (place.starts_with('/')) place = origin_of(begun->url) + place;
  if (origin_of(place) != origin_of(begun->url))
    return Error{ErrorCode::kIo, fmt::format("{} wants the file to be sent to {}, which nobody has asked for", base_, origin_of(place)),
                 ""};
  place += fmt::format("{}digest={}", place.find('?') == std::string::npos ? '?' : '&', percent_encoded(digest.text()));
  HttpRequest request{.method = "PUT", .url = place, .headers = {"Content-Type: application/octet-stream"}, .upload_file = path};
  request.on_upload = on_sent;
  const Result<HttpAnswer> sent = send(std::move(request), kMostAnswer);
  if (!sent) return sent.error();
  if (sent->status != 201 && sent->status != 202) return fault_of(*sent, "upload");
  return {};
}

Result<void> RegistryClient::put_manifest(const std::string& text) {
  HttpRequest request{.method = "PUT", .url = url_of("manifests/" + ref_.tag), .body = text};
  request.headers = {fmt::format("Content-Type: {}", kManifestType)};
  const Result<HttpAnswer> answer = send(std::move(request), kMostAnswer);
  if (!answer) return answer.error();
  if (answer->status != 200 && answer->status != 201 && answer->status != 202) return fault_of(*answer, "manifest");
  return {};
}

}  // namespace braid::registry
