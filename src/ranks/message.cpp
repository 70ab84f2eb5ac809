#include "ranks/message.h"

#include "ranks/serial.h"

namespace braid::ranks {
namespace {

// The fields of each message, in order.
template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.key;
}
{ use(value.key), use(value.version), use(value.rank), use(value.ranks), use(value.line); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.model;
}
{
  use(value.model), use(value.isa), use(value.float_weights), use(value.kv_type), use(value.float_type), use(value.rotated),
      use(value.context);
  use(value.block_tokens), use(value.kv_limit), use(value.pass_rows), use(value.logit_rows), use(value.threads);
}

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.weight_bytes;
}
{ use(value.isa), use(value.kv_type), use(value.weight_bytes), use(value.block_bytes), use(value.workspace_bytes); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.what;
}
{ use(value.what), use(value.done), use(value.total); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.forks;
}
{ use(value.forks), use(value.given_back); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.places;
}
{ use(value.places), use(value.bytes); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.magnitudes;
}
{ use(value.parts), use(value.magnitudes); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.picked;
}
{
  use(value.tokens), use(value.picked), use(value.blocks), use(value.given), use(value.given_parts), use(value.sequences),
      use(value.snapshots);
}

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.forgotten;
}
{ use(value.weights), use(value.sets), use(value.parts), use(value.forgotten); }

template <class T>
void write_fields(const T& value, Bytes& out) {
  Writer writer(out);
  fields(writer, value);
}

template <class T>
bool read_fields(std::span<const std::byte> bytes, T& out) {
  Reader reader(bytes);
  fields(reader, out);
  return reader.done();
}

template <class T>
bool read_value(std::span<const std::byte> bytes, T& out) {
  Reader reader(bytes);
  reader(out);
  return reader.done();
}

}  // namespace

void write(const Greeting& value, Bytes& out) { write_fields(value, out); }
void write(const Setup& value, Bytes& out) { write_fields(value, out); }
void write(const Ready& value, Bytes& out) { write_fields(value, out); }
void write(const LoadStage& value, Bytes& out) { write_fields(value, out); }
void write(const Times& value, Bytes& out) { Writer{out}(value); }
void write(const NewerWeights& value, Bytes& out) { Writer{out}(value); }
void write(const Magnitudes& value, Bytes& out) { write_fields(value, out); }
void write(std::uint64_t value, Bytes& out) { Writer{out}(value); }
void write(const Moves& value, Bytes& out) { write_fields(value, out); }
void write(const step::Pass& pass, const Uses& uses, Bytes& out) {
  Writer writer(out);
  fields(writer, pass);
  fields(writer, uses);
}
void write(const BlockContents& value, Bytes& out) { write_fields(value, out); }
void write(const Wanted& value, Bytes& out) { Writer{out}(value); }
void write(std::int32_t value, Bytes& out) { Writer{out}(value); }

bool read(std::span<const std::byte> bytes, Greeting& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Setup& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Ready& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, LoadStage& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Times& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, NewerWeights& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, Magnitudes& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, std::uint64_t& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, Moves& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, step::Pass& pass, Uses& uses) {
  Reader reader(bytes);
  fields(reader, pass);
  fields(reader, uses);
  return reader.done();
}
bool read(std::span<const std::byte> bytes, BlockContents& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Wanted& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, std::int32_t& out) { return read_value(bytes, out); }

}  // namespace braid::ranks
