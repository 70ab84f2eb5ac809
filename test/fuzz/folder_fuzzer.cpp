// Any bytes as a Hugging Face folder: two bytes for the length of config.json, config.json, and the rest as model.safetensors.
#include "files/hf_folder.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/weights.h"
#include "support/folder.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace {

using namespace braid;

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Whatever is refused has a reason.
void require_reason(const Error& error) {
  if (error.message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const int in_memory = ::setenv("TMPDIR", "/dev/shm", 0);
  static_cast<void>(in_memory);
  static const braid::test::Folder folder;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  const std::size_t config = std::min<std::size_t>(rest.size(), bytes[0] + bytes[1] * std::size_t{256});
  write(folder / "config.json", rest.substr(0, config));
  write(folder / "model.safetensors", rest.substr(config));
  const auto read = files::HfFolder::open(folder.path());
  if (!read) return require_reason(read.error()), 0;
  auto contents = model::read_folder(*read);
  if (!contents) return require_reason(contents.error()), 0;
  const files::GgufFile file = files::GgufFile::from_contents(std::move(*contents));
  const auto shape = model::describe_model(file);
  if (!shape) return require_reason(shape.error()), 0;
  std::string missing;
  const auto weights =
      model::check_weights(file, *shape, shape->context_length, *kernels::kernel_table(kernels::Isa::kScalar, missing), {});
  if (!weights) require_reason(weights.error());
  return 0;
}
