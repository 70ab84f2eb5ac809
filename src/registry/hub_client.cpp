#include "registry/hub_client.h"

#include "registry/json.h"
#include "registry/manifest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <set>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::size_t kMostListBytes = std::size_t{32} << 20;
constexpr std::uint64_t kMostSmallBytes = std::uint64_t{64} << 20;
constexpr int kMostPages = 100;
constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 50;
// What "latest" means, where there are several.
constexpr std::array<std::string_view, 10> kUsualTypes = {"Q4_K_M", "Q4_0",   "Q4_K_S", "Q5_K_M", "Q6_K",
                                                          "Q8_0",   "IQ4_XS", "Q3_K_M", "BF16",   "F16"};

std::string upper(std::string_view text) {
  std::string large(text);
  for (char& c : large) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return large;
}

std::string_view file_part(std::string_view path) {
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}
bool is_projector(const HubFile& file) { return file_part(file.path).starts_with("mmproj"); }
bool is_gguf(const HubFile& file) { return file.path.ends_with(".gguf"); }

// The stem's end behind the last "-" or ".", without a part's number: what names the quantisation by custom.
std::string type_of(const HubFile& file) {
  std::string_view stem = file_part(file.path);
  stem.remove_suffix(5);
  constexpr std::size_t kPartLength = 15;  // -00001-of-00002
  if (stem.size() > kPartLength && stem.substr(stem.size() - kPartLength).find("-of-") == 6) stem.remove_suffix(kPartLength);
  const std::size_t mark = stem.find_last_of("-.");
  return upper(mark == std::string_view::npos ? stem : stem.substr(mark + 1));
}

// What a folder of safetensors needs to be read.
bool is_of_folder(const HubFile& file) {
  const std::string_view path = file.path;
  if (path.ends_with(".safetensors") || path.ends_with(".model") || path.ends_with(".jinja") || path == "vocab.txt" || path == "merges.txt")
    return path.find('/') == std::string_view::npos || path.ends_with("model.safetensors");
  return path.ends_with(".json") && (path.find('/') == std::string_view::npos || path.ends_with("/config.json"));
}

std::string git_digest_of(std::string_view bytes) {
  const std::string head = fmt::format("blob {}", bytes.size()) + '\0';
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha1(), nullptr);
  EVP_DigestUpdate(context, head.data(), head.size());
  EVP_DigestUpdate(context, bytes.data(), bytes.size());
  EVP_DigestFinal_ex(context, digest.data(), &size);
  EVP_MD_CTX_free(context);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

// One file of a list; nullopt: it is none, or one whose name is not taken.
std::optional<HubFile> read_file(const Value& value) {
  const std::string path = text_member(value, "path");
  const std::int64_t bytes = number_member(value, "size", -1);
  if (text_member(value, "type") != "file" || bytes < 0 || bytes > kMostFileBytes || !is_file_name(path)) return std::nullopt;
  HubFile file{path, static_cast<std::uint64_t>(bytes)};
  const Value* large = value.find("lfs");
  if (large != nullptr && large->get_if<ValueDict>() != nullptr) {
    std::string digits = text_member(*large, "oid");
    if (digits.starts_with("sha256:")) digits = digits.substr(7);
    const Result<Digest> digest = Digest::parse("sha256:" + digits);
    if (!digest || number_member(*large, "size", bytes) != bytes) return std::nullopt;
    file.digest = *digest;
  } else {
    file.git_digest = text_member(value, "oid");
  }
  return file;
}

// The address of the next page in a Link header: <https://…>; rel="next".
std::string next_page(const std::string& link) {
  if (link.find("rel=\"next\"") == std::string::npos) return "";
  const std::size_t begin = link.find('<');
  const std::size_t end = link.find('>');
  return begin != std::string::npos && end != std::string::npos && end > begin ? link.substr(begin + 1, end - begin - 1) : "";
}

}  // namespace

Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const ModelRef& ref) {
  std::vector<HubFile> chosen;
  std::set<std::string> types;
  for (const HubFile& file : files)
    if (is_gguf(file) && !is_projector(file)) types.insert(type_of(file));
  if (types.empty()) {
    if (ref.tag != kUsualTag)
      return Error{ErrorCode::kNotFound, fmt::format("{}/{} has no GGUF files: ask for it without the tag", ref.owner, ref.model), "model"};
    std::ranges::copy_if(files, std::back_inserter(chosen), is_of_folder);
    const bool whole = std::ranges::any_of(chosen, [](const HubFile& file) { return file.path == "config.json"; }) &&
                       std::ranges::any_of(chosen, [](const HubFile& file) { return file.path.ends_with(".safetensors"); });
    if (whole) return chosen;
    return Error{ErrorCode::kNotFound, fmt::format("{}/{} has neither GGUF files nor a folder of safetensors", ref.owner, ref.model),
                 "model"};
  }
  std::string wanted = upper(ref.tag);
  if (ref.tag == kUsualTag) {
    wanted = *types.begin();
    for (const std::string_view usual : kUsualTypes)
      if (types.contains(std::string(usual))) {
        wanted = usual;
        break;
      }
  }
  if (!types.contains(wanted))
    return Error{ErrorCode::kNotFound, fmt::format("{}/{} has no {}; it has {}", ref.owner, ref.model, ref.tag, fmt::join(types, ", ")),
                 "model"};
  std::string folder;
  for (const HubFile& file : files) {
    if (!is_gguf(file) || is_projector(file) || type_of(file) != wanted) continue;
    const std::string place = file.path.substr(0, file.path.size() - file_part(file.path).size());
    const bool is_part = file.path.find("-of-") != std::string::npos;
    if (!chosen.empty() && (!is_part || place != folder)) continue;  // the same once more
    folder = place;
    chosen.push_back(file);
  }
  const auto projector = std::ranges::find_if(files, [](const HubFile& file) { return is_gguf(file) && is_projector(file); });
  if (projector != files.end()) chosen.push_back(*projector);
  return chosen;
}

HubClient::HubClient(const RemoteOptions& options, const ModelRef& ref, bool insecure)
    : options_(options), ref_(ref), insecure_(insecure), base_(options.hub) {
  while (base_.ends_with('/')) base_.pop_back();
}

std::vector<std::string> HubClient::headers() const {
  if (options_.hub_token.empty()) return {};
  return {"Authorization: Bearer " + options_.hub_token};
}

Result<HttpAnswer> HubClient::get(const std::string& url, std::size_t most) const {
  HttpRequest request{.url = url, .headers = headers()};
  request.insecure = insecure_;
  Result<HttpAnswer> answer = ask(options_.http, request, most);
  if (!answer || answer->status == 200) return answer;
  const std::string repository = fmt::format("{}/{}", ref_.owner, ref_.model);
  if (answer->status == 404) return Error{ErrorCode::kNotFound, fmt::format("{} has no {}", base_, repository), "model"};
  if (answer->status == 401 || answer->status == 403)
    return Error{ErrorCode::kUnauthorized, fmt::format("{} does not let us have {}: it may want HF_TOKEN", base_, repository), ""};
  return Error{ErrorCode::kIo, fmt::format("{} answers with status {}", base_, answer->status), ""};
}

Result<std::vector<HubFile>> HubClient::files() {
  std::vector<HubFile> files;
  std::string url = fmt::format("{}/api/models/{}/{}/tree/main?recursive=true", base_, ref_.owner, ref_.model);
  for (int page = 0; page < kMostPages && !url.empty(); ++page) {
    const Result<HttpAnswer> answer = get(url, kMostListBytes);
    if (!answer) return answer.error();
    const Result<Value> list = parse_json(answer->body, "the hub's list of files");
    if (!list) return list.error();
    const auto* items = list->get_if<ValueList>();
    if (items == nullptr) return Error{ErrorCode::kBadFile, fmt::format("{}: the list of files is none", base_), ""};
    for (const Value& item : *items)
      if (std::optional<HubFile> file = read_file(item)) files.push_back(std::move(*file));
    url = next_page(answer->header("link"));
    if (!url.empty() && origin_of(url) != origin_of(base_))
      return Error{ErrorCode::kBadFile, fmt::format("{} names another server", base_), ""};
  }
  return files;
}

std::string HubClient::url_of(const HubFile& file) const {
  return fmt::format("{}/{}/{}/resolve/main/{}", base_, ref_.owner, ref_.model, file.path);
}

Download HubClient::large(const HubFile& file) const { return {*file.digest, file.bytes, url_of(file), headers(), insecure_}; }

Result<std::string> HubClient::small(const HubFile& file) {
  if (file.bytes > kMostSmallBytes) return Error{ErrorCode::kBadFile, fmt::format("{}: {} has no digest", base_, file.path), ""};
  Result<HttpAnswer> answer = get(url_of(file), kMostSmallBytes);
  if (!answer) return answer.error();
  if (answer->body.size() != file.bytes || git_digest_of(answer->body) != file.git_digest)
    return Error{ErrorCode::kBadFile, fmt::format("{}: {} is not the file that the hub lists", base_, file.path), ""};
  return std::move(answer->body);
}

}  // namespace braid::registry
