// `braid cache export` and `braid cache import`: the keys and values of a prompt as a safetensors file.
#include "app/commands/commands.h"
#include "app/disk_cache.h"
#include "app/load_models.h"
#include "app/load_progress.h"
#include "app/whole_file.h"
#include "files/safetensors.h"
#include "kernels/kv_type.h"
#include "model/kv_tensors.h"
#include "sched/disk_tier.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <string>
#include <system_error>
#include <vector>

namespace braid::app {
namespace {

constexpr const char* kFormat = "braid-kv-1";
constexpr std::int32_t kStepTokens = 512;
constexpr std::size_t kMaxSpecialBytes = std::size_t{1} << 30U;  // of pipes and devices

Result<std::string> read_file(const std::string& path) {
  std::error_code is_special;  // such a file has no size, and perhaps no end
  const std::uintmax_t size = std::filesystem::file_size(path, is_special);
  std::optional<std::string> bytes = read_whole_file(path, is_special ? kMaxSpecialBytes : size);
  if (bytes && is_special && bytes->size() > kMaxSpecialBytes)
    return Error{ErrorCode::kIo, fmt::format("{} gives more than 1 GiB", path), {}};
  if (!bytes) return Error{ErrorCode::kIo, fmt::format("cannot read {}", path), {}};
  return std::move(*bytes);
}

Result<SingleModel> load_quietly(const ModelOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("braid"));
  spdlog::set_level(spdlog::level::warn);
  LoadProgress progress;
  return load_model(
      options, 1, [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); }, true);
}

// What a file must agree with a model in, besides the shapes.
std::map<std::string, std::string> facts_of(const LoadedModel& loaded) {
  const model::LanguageModel& model = *loaded.language_model;
  return {{"format", kFormat},
          {"model_revision", fmt::format("{:016x}{:016x}", loaded.model_revision.high, loaded.model_revision.low)},
          {"adapter", ""},
          {"kv_dtype", kernels::kv_type_name(model.kv_layout().type)},
          {"kv_limit", fmt::to_string(model.shape().kv_limit)}};
}

std::int32_t blocks_of(const model::KvGroups& groups, std::size_t tokens) {
  return (static_cast<std::int32_t>(tokens) + groups.block_tokens() - 1) / groups.block_tokens();
}

// Besides its blocks a sequence needs its state here, and a copy of it.
Result<void> check_room(const LoadedModel& loaded, std::size_t tokens) {
  const model::KvGroups& groups = loaded.language_model->kv_groups();
  const std::int64_t needed = std::int64_t{blocks_of(groups, tokens)} * groups.count() + 2 * groups.states.blocks();
  if (needed <= loaded.kv.blocks) return {};
  return invalid_argument(fmt::format("{} tokens and two states need {} blocks, and the KV pool has {}", tokens, needed, loaded.kv.blocks));
}

void execute(model::LanguageModel& model, const step::StepPlan& plan) {
  step::StepResult result;
  model.execute(plan, result);
  if (result.failure) std::rethrow_exception(result.failure);
}

// Computes the tokens into the pool's first blocks, those of a group after those of another, then the state and its copy at the end of the
// full blocks, and takes them out. The pool is this thread's: nothing serves.
model::KvTensors compute(model::LanguageModel& model, const std::vector<TokenId>& tokens) {
  const model::KvGroups& groups = model.kv_groups();
  const auto count = static_cast<std::int32_t>(tokens.size());
  const std::int32_t blocks = blocks_of(groups, tokens.size());
  const std::int32_t keys = blocks * groups.count();
  const std::int32_t state = groups.states.blocks();
  const std::int32_t full = count / groups.block_tokens() * groups.block_tokens();
  step::StepPlan plan;
  plan.starts.push_back({});
  for (std::int32_t block = 0; block < keys + 2 * state; ++block) plan.blocks.push_back(block);
  for (std::int32_t begin = 0; begin < count; begin += kStepTokens) {
    step::StepRow row;
    row.position = begin;
    row.count = std::min(kStepTokens, count - begin);
    row.block_count = static_cast<std::uint32_t>(blocks);
    row.state_begin = static_cast<std::uint32_t>(keys);
    plan.snapshots.clear();
    if (state > 0 && begin < full && full <= begin + row.count) plan.snapshots.push_back({full, static_cast<std::uint32_t>(keys + state)});
    row.snapshot_count = static_cast<std::uint32_t>(plan.snapshots.size());
    plan.tokens.assign(tokens.begin() + begin, tokens.begin() + begin + row.count);
    plan.rows = {row};
    execute(model, plan);
    plan.starts.clear();
  }
  model::KvTensors tensors(groups, count);
  std::vector<std::byte> bytes(model.saved_bytes());
  for (std::int32_t block = 0; block < keys; ++block) {
    plan.clear();
    plan.saves.push_back({block, bytes.data(), block / blocks});
    execute(model, plan);
    tensors.put_block(block % blocks, block / blocks, bytes);
  }
  for (std::int32_t part = 0; part < (full > 0 ? state : 0); ++part) {
    plan.clear();
    plan.saves.push_back({keys + state + part, bytes.data(), step::kStateGroup, part});
    execute(model, plan);
    tensors.put_state(part, bytes);
  }
  return tensors;
}

Result<std::vector<TokenId>> parse_tokens(const files::SafeTensors& contents, std::int32_t vocab) {
  const auto found = contents.metadata.find("tokens");
  const std::string text = found != contents.metadata.end() ? found->second : "";
  std::vector<TokenId> tokens;
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    const auto [next, error] = std::from_chars(at, end, tokens.emplace_back());
    if (error != std::errc{} || (next != end && *next != ',') || tokens.back() < 0 || tokens.back() >= vocab)
      return Error{ErrorCode::kBadFile, "the metadata 'tokens' is no list of the model's tokens", {}};
    at = next;
  }
  if (tokens.empty()) return Error{ErrorCode::kBadFile, "the metadata 'tokens' is missing or empty", {}};
  return tokens;
}

Result<void> compare_facts(const files::SafeTensors& contents, const LoadedModel& loaded) {
  for (const auto& [key, wanted] : facts_of(loaded)) {
    const auto found = contents.metadata.find(key);
    const std::string value = found != contents.metadata.end() ? found->second : "missing";
    if (value != wanted)
      return Error{ErrorCode::kBadFile, fmt::format("its metadata '{}' is '{}', this model asks for '{}'", key, value, wanted), {}};
  }
  return {};
}

// Writes the full blocks to the folder; the number of those.
Result<std::int64_t> write_blocks(const files::SafeTensors& contents, const std::vector<TokenId>& tokens, const CacheImportOptions& options,
                                  const LoadedModel& loaded) {
  const model::KvGroups& groups = loaded.language_model->kv_groups();
  boost::asio::io_context loop;
  auto opened = open_store(options.disk, loaded, loop);
  if (!opened) return opened.error();
  store::BlockStore& store = **opened;
  cache::BlockPool pool(1);
  cache::PrefixIndex index(pool, groups.block_tokens(), cache::xxh3_key, loaded.kv_identity);
  std::vector<cache::PrefixKey> keys;
  const cache::SequenceView sequence{{"", options.cache_salt}, tokens, {}};
  index.keys(sequence, keys);
  const auto work = boost::asio::make_work_guard(loop);
  // One record: `take` fills its payload.
  const auto write = [&](std::size_t block, std::int32_t piece, const auto& take) -> Result<void> {
    const cache::PrefixKey key = sched::piece_key(keys[block], piece);
    if (store.contains(key)) return {};
    while (store.free_buffers() == 0 && !store.idle()) loop.run_one();
    auto record = store.begin_write(key, sequence.first((block + 1) * static_cast<std::size_t>(groups.block_tokens())));
    if (!record) return {};  // which is counted
    std::ranges::fill(record->payload, std::byte{0});
    const Result<void> taken = take(record->payload);
    if (taken) store.commit(std::move(*record));
    return taken;
  };
  const std::int32_t stored = sched::groups_with_records(groups.block_use());
  for (std::size_t block = 0; block < keys.size(); ++block)
    for (std::int32_t group = 0; group < stored; ++group) {
      const Result<void> written = write(block, group, [&](std::span<std::byte> payload) {
        return model::take_block(contents, groups, group, static_cast<std::int64_t>(tokens.size()), static_cast<std::int64_t>(block),
                                 payload);
      });
      if (!written) return written.error();
    }
  for (std::int32_t part = 0; part < groups.states.blocks() && !keys.empty(); ++part) {
    const Result<void> written = write(keys.size() - 1, stored + part,
                                       [&](std::span<std::byte> payload) { return model::take_state(contents, groups, part, payload); });
    if (!written) return written.error();
  }
  while (!store.idle()) loop.run_one();
  if (store.stats().write_errors > 0 || store.stats().writes_dropped > 0)
    return Error{ErrorCode::kIo, fmt::format("not all blocks could be written to {}", options.disk.directory), {}};
  return static_cast<std::int64_t>(keys.size());
}

Result<void> export_cache(const CacheExportOptions& options) {
  const auto single = load_quietly(options.model);
  if (!single) return single.error();
  const LoadedModel* const loaded = &single->model;
  const Result<std::string> text = options.prompt_file.empty() ? Result<std::string>(options.prompt) : read_file(options.prompt_file);
  if (!text) return text.error();
  const auto tokens = loaded->codec->encode(*text, {});
  if (!tokens) return tokens.error();
  if (tokens->empty() || static_cast<std::int64_t>(tokens->size()) > loaded->kv.context)
    return invalid_argument(fmt::format("the prompt has {} tokens, expected 1 to {}", tokens->size(), loaded->kv.context));
  if (const auto room = check_room(*loaded, tokens->size()); !room) return room.error();
  const model::KvTensors tensors = compute(*loaded->language_model, *tokens);
  files::SafeTensors contents = tensors.contents();
  contents.metadata = facts_of(*loaded);
  contents.metadata["tokens"] = fmt::format("{}", fmt::join(*tokens, ","));
  const std::vector<std::byte> bytes = files::write_safetensors(contents);
  std::ofstream file(options.output, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) return Error{ErrorCode::kIo, fmt::format("cannot write {}", options.output), {}};
  fmt::print("{} tokens written to {}\n", tokens->size(), options.output);
  return {};
}

Result<void> import_cache(const CacheImportOptions& options) {
  const Result<std::string> bytes = read_file(options.input);
  if (!bytes) return bytes.error();
  const auto in_file = [&](const Error& error) { return Error{error.code, fmt::format("{}: {}", options.input, error.message), {}}; };
  const auto contents = files::parse_safetensors(std::as_bytes(std::span(*bytes)));
  if (!contents) return in_file(contents.error());
  const auto single = load_quietly(options.model);
  if (!single) return single.error();
  const LoadedModel* const loaded = &single->model;
  if (restores_nothing(loaded->language_model->kv_groups()))
    return Error{ErrorCode::kUnsupported, "the model has recurrent layers and windows, with which nothing is found on disk", {}};
  if (const auto same = compare_facts(*contents, *loaded); !same) return in_file(same.error());
  const auto tokens = parse_tokens(*contents, loaded->language_model->shape().vocab);
  if (!tokens) return in_file(tokens.error());
  if (static_cast<std::int64_t>(tokens->size()) > loaded->kv.context)
    return invalid_argument(fmt::format("{} has {} tokens, the context holds {}", options.input, tokens->size(), loaded->kv.context));
  const auto blocks = write_blocks(*contents, *tokens, options, *loaded);
  if (!blocks) return blocks.error().code == ErrorCode::kBadFile ? in_file(blocks.error()) : blocks.error();
  fmt::print("{} blocks of {} tokens are in {}\n", *blocks, loaded->language_model->kv_layout().block_tokens, options.disk.directory);
  return {};
}

}  // namespace

int run_command(const CacheExportOptions& options) {
  const auto done = export_cache(options);
  return done ? EXIT_SUCCESS : report(done.error());
}

int run_command(const CacheImportOptions& options) {
  const auto done = import_cache(options);
  return done ? EXIT_SUCCESS : report(done.error());
}

}  // namespace braid::app
