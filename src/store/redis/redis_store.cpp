#include "store/redis/redis_store.h"

#include <fmt/format.h>
#include <utility>

namespace braid::store {
namespace {

constexpr int kWriteBudgets = 10;  // of the time of an answer

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// An answer that is an error: the connection would do, but whoever says so says it to everything.
Error refused(const std::string& word) { return {ErrorCode::kIo, fmt::format("it answers {}", word), {}}; }

}  // namespace

struct RedisStore::Mailbox {
  RedisStore* store = nullptr;  // null once it is gone; loop only
};

Result<std::unique_ptr<RedisStore>> RedisStore::open(RedisOptions options, BufferPool buffers, Post post) {
  Result<Bell> stop = Bell::make();
  if (!stop) return stop.error();
  return std::unique_ptr<RedisStore>(new RedisStore(std::move(options), std::move(buffers), std::move(post), std::move(*stop)));
}

RedisStore::RedisStore(RedisOptions options, BufferPool buffers, Post post, Bell stop)
    : options_(std::move(options)), post_(std::move(post)), buffers_(std::move(buffers)), health_(options_.pause),
      mailbox_(std::make_shared<Mailbox>()), stop_(std::move(stop)),
      lookup_lane_(options_.address, options_.resolve, health_, stop_.descriptor()),
      read_lane_(options_.address, options_.resolve, health_, stop_.descriptor()),
      write_lane_(options_.address, options_.resolve, health_, stop_.descriptor()) {
  mailbox_->store = this;
}

RedisStore::~RedisStore() {
  mailbox_->store = nullptr;
  stop_.ring();
}

void RedisStore::post(std::function<void(RedisStore&)> call) const {
  post_([mailbox = mailbox_, call = std::move(call)]() noexcept {
    if (mailbox->store != nullptr) call(*mailbox->store);
  });
}

std::string RedisStore::name_of(const cache::PrefixKey& key) const {
  return fmt::format("{}{:016x}{:016x}", options_.key_prefix, key.high, key.low);
}

bool RedisStore::contains(const cache::PrefixKey& key) const {
  const Clock::time_point now = Clock::now();
  return known_.find(key, now).value_or(false) && !health_.is_down(now);
}

bool RedisStore::lacks(const cache::PrefixKey& key) const { return may_write() && !known_.find(key, Clock::now()).value_or(false); }

bool RedisStore::knows(const cache::PrefixKey& key) const {
  const Clock::time_point now = Clock::now();
  return health_.is_down(now) || known_.find(key, now).has_value();
}

void RedisStore::look_up(std::vector<cache::PrefixKey> keys, std::function<void()> done) {
  const auto begun = lookups_.emplace(next_id_++, std::make_unique<Lookup>(Lookup{std::move(keys), std::move(done), Clock::now()})).first;
  lookup_lane_.submit([this, id = begun->first, &lookup = *begun->second] {
    post([id, answer = ask(lookup)](RedisStore& store) { store.on_looked_up(id, answer); });
  });
}

// All at once, and then the answers one by one: the time is that of one way there and back.
RedisStore::LookedUp RedisStore::ask(const Lookup& lookup) {
  LookedUp answer;
  const Clock::time_point deadline = lookup.begun + options_.timeout;
  answer.done = lookup_lane_.use(deadline, [&](RedisConnection& redis) -> Result<void> {
    for (const cache::PrefixKey& key : lookup.keys) redis.add({"EXISTS", name_of(key)});
    if (const Result<void> sent = redis.send(deadline); !sent) return sent;
    while (answer.present.size() < lookup.keys.size()) {
      const Result<RedisReply> reply = redis.receive({}, deadline);
      if (!reply) return reply.error();
      if (reply->kind != RedisReply::Kind::kNumber) return refused(reply->error);
      answer.present.push_back(reply->number == 1);
    }
    return {};
  });
  return answer;
}

void RedisStore::on_looked_up(std::uint64_t id, const LookedUp& answer) {
  const auto lookup = std::move(lookups_.extract(id).mapped());
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < lookup->keys.size(); ++i) known_.put(lookup->keys[i], answer.done && answer.present[i], now);
  ++counters_.lookups;
  counters_.lookup_seconds += std::chrono::duration<double>(now - lookup->begun).count();
  if (!answer.done) {
    ++counters_.lookup_errors;
    note_failure(answer.done.error());
  }
  lookup->done();
}

bool RedisStore::read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
                      std::function<void(std::optional<ReadBlock>)> done) {
  if (!contains(key)) return false;
  Buffer buffer = buffers_.acquire();
  if (!buffer) return false;
  auto read = std::make_unique<Read>(Read{key, std::move(prefix), tokens, std::move(buffer), std::move(done), Clock::now()});
  const auto begun = reads_.emplace(next_id_++, std::move(read)).first;
  read_lane_.submit([this, id = begun->first, &read = *begun->second] {
    post([id, answer = fetch(read)](RedisStore& store) { store.on_read(id, answer); });
  });
  return true;
}

// A record that is not right is deleted, or it would be found, read and not written for ever.
RedisStore::ReadRecord RedisStore::fetch(const Read& read) {
  ReadRecord answer;
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  answer.done = read_lane_.use(deadline, [&](RedisConnection& redis) -> Result<void> {
    const std::string name = name_of(read.key);
    redis.add({"GET", name});
    if (const Result<void> sent = redis.send(deadline); !sent) return sent;
    const std::span<std::byte> place = read.buffer.bytes();
    const Result<RedisReply> reply = redis.receive(place, deadline);
    if (!reply) return reply.error();
    if (reply->kind == RedisReply::Kind::kNothing) return {};
    if (reply->kind != RedisReply::Kind::kText) return refused(reply->error);
    const Origin origin{options_.identity, read.prefix->view().first(read.tokens)};
    if (reply->bytes <= place.size())
      if (const auto found = read_record(place.first(reply->bytes), read.key, origin, options_.payload_bytes)) {
        answer.outcome = ReadRecord::Outcome::kFound;
        answer.bytes = reply->bytes;
        answer.payload = place.subspan(static_cast<std::size_t>(found->data() - place.data()), found->size());
        return {};
      }
    answer.outcome = ReadRecord::Outcome::kWrong;
    redis.add({"DEL", name});
    if (const Result<void> sent = redis.send(deadline); !sent) return sent;
    const Result<RedisReply> deleted = redis.receive({}, deadline);
    return deleted ? Result<void>() : Result<void>(deleted.error());
  });
  return answer;
}

void RedisStore::on_read(std::uint64_t id, const ReadRecord& answer) {
  const auto read = std::move(reads_.extract(id).mapped());
  const Clock::time_point now = Clock::now();
  if (answer.outcome == ReadRecord::Outcome::kFound) {
    ++counters_.reads;
    counters_.read_bytes += answer.bytes;
    counters_.read_seconds += std::chrono::duration<double>(now - read->begun).count();
    return read->done(ReadBlock{std::move(read->buffer), answer.payload});
  }
  known_.put(read->key, false, now);
  if (!answer.done) note_failure(answer.done.error());
  if (answer.outcome == ReadRecord::Outcome::kWrong)
    log_.warn(fmt::format("shared cache: a block of the Redis at {} is damaged or belongs to other tokens; it will be computed",
                          options_.address.name()));
  ++(answer.done && answer.outcome == ReadRecord::Outcome::kMissing ? counters_.read_misses : counters_.read_errors);
  read->done(std::nullopt);
}

std::optional<PendingRecord> RedisStore::begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  std::optional<PendingRecord> record;
  if (may_write()) record = compose_in(buffers_, key, {options_.identity, sequence}, options_.payload_bytes, options_.clock());
  if (!record) ++counters_.writes_dropped;
  return record;
}

void RedisStore::commit(PendingRecord record) {
  if (!may_write()) {
    ++counters_.writes_dropped;
    return;
  }
  const auto begun = writes_.emplace(next_id_++, std::make_unique<Writing>(Writing{std::move(record), Clock::now()})).first;
  write_lane_.submit([this, id = begun->first, &writing = *begun->second] {
    post([id, answer = put(writing)](RedisStore& store) { store.on_put(id, answer); });
  });
}

// What another server has written meanwhile lives longer by that, and its bytes need not be sent.
RedisStore::WrittenRecord RedisStore::put(const Writing& writing) {
  WrittenRecord answer;
  const RecordHeader& header = writing.record.header;
  const Clock::time_point deadline = Clock::now() + kWriteBudgets * options_.timeout;
  const auto note_refusal = [&answer](const RedisReply& reply) {  // it may be full, and yet read
    answer.outcome = WrittenRecord::Outcome::kRefused;
    answer.refusal = reply.error;
    return Result<void>();
  };
  answer.done = write_lane_.use(deadline, [&](RedisConnection& redis) -> Result<void> {
    const std::string name = name_of(header.key);
    const std::string seconds = fmt::to_string(options_.ttl.count());
    redis.add({"EXPIRE", name, seconds});
    if (const Result<void> sent = redis.send(deadline); !sent) return sent;
    const Result<RedisReply> extended = redis.receive({}, deadline);
    if (!extended) return extended.error();
    if (extended->kind == RedisReply::Kind::kError) return note_refusal(*extended);
    if (extended->kind != RedisReply::Kind::kNumber) return refused(extended->error);
    if (extended->number == 1) {
      answer.outcome = WrittenRecord::Outcome::kKnown;
      return {};
    }
    const std::span<std::byte> bytes = writing.record.buffer.bytes().first(header.record_bytes());
    seal_record(bytes, header);
    redis.add({"SET", name, text_of(bytes), "EX", seconds});
    if (const Result<void> sent = redis.send(deadline); !sent) return sent;
    const Result<RedisReply> taken = redis.receive({}, deadline);
    if (!taken) return taken.error();
    return taken->kind == RedisReply::Kind::kText ? Result<void>() : note_refusal(*taken);
  });
  return answer;
}

void RedisStore::on_put(std::uint64_t id, const WrittenRecord& answer) {
  const auto writing = std::move(writes_.extract(id).mapped());
  const RecordHeader& header = writing->record.header;
  const Clock::time_point now = Clock::now();
  if (!answer.done) {
    ++counters_.write_errors;
    note_failure(answer.done.error());
  } else if (answer.outcome == WrittenRecord::Outcome::kRefused) {
    ++counters_.write_errors;
    if (now >= write_again_) write_again_ = now + options_.write_pause;
    log_.warn(fmt::format("shared cache: the Redis at {} takes no block: it answers {}; trying again in {} s", options_.address.name(),
                          answer.refusal, options_.write_pause.count()));
  } else {
    known_.put(header.key, true, now);
    const bool is_new = answer.outcome == WrittenRecord::Outcome::kWritten;
    ++(is_new ? counters_.writes : counters_.writes_known);
    counters_.write_bytes += is_new ? header.record_bytes() : 0;
    counters_.write_seconds += std::chrono::duration<double>(now - writing->begun).count();
  }
  writing->record = {};
  if (on_written_) on_written_();
}

// Each is one line, however many commands it has cost.
void RedisStore::note_failure(const Error& error) {
  if (error.message.empty()) return;
  ++counters_.failures;
  log_.warn(fmt::format("shared cache: the Redis at {} is left alone for a while: {}", options_.address.name(), error.message));
}

RedisCacheStats RedisStore::stats() const {
  RedisCacheStats stats = counters_;
  stats.is_up = !health_.is_down();
  stats.known = known_.size();
  return stats;
}

}  // namespace braid::store
