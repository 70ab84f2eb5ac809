#include "store/layered_store.h"

namespace braid::store {

LayeredStore::LayeredStore(BlockStore& disk, RecordStore& shared) : disk_(disk), shared_(shared) {
  disk_.pass_on([this](PendingRecord record) {
    if (shared_.lacks(record.header.key)) shared_.commit(std::move(record));
  });
}

std::optional<PendingRecord> LayeredStore::begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  return goes_to_disk(key) || !shared_.lacks(key) ? disk_.begin_write(key, sequence) : shared_.begin_write(key, sequence);
}

void LayeredStore::commit(PendingRecord record) {
  goes_to_disk(record.header.key) ? disk_.commit(std::move(record)) : shared_.commit(std::move(record));
}

void LayeredStore::on_written(std::function<void()> hook) {
  disk_.on_written(hook);
  shared_.on_written(std::move(hook));
}

bool LayeredStore::read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
                        std::function<void(std::optional<ReadBlock>)> done) {
  RecordStore& store = disk_.contains(key) ? static_cast<RecordStore&>(disk_) : shared_;
  return store.read(key, std::move(prefix), tokens, std::move(done));
}

void LayeredStore::tend() {
  disk_.tend();
  shared_.tend();
}

void LayeredStore::fill(EngineStats& stats) const {
  disk_.fill(stats);
  shared_.fill(stats);
}

}  // namespace braid::store
