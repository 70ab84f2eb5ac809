// A small network of the references whose weights get newer ones.
#pragma once

#include "app/serving/network_weights.h"
#include "files/safetensors.h"
#include "kernels/select.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::app::updated {

struct UpdatedNetwork {
  boost::asio::io_context loop;
  sched::ComputeStrand strand{loop};
  kernels::ThreadTeam team{1};
  boost::asio::thread_pool workers{1};
  LoadedNetwork loaded =
      load_network(BRAID_SOURCE_DIR "/test/model/reference/networks/mlp", "mlp", kernels::best_kernel_table(), kernels::WeightType::kF32)
          .value();
  const NetworkBase base = loaded.base;
  const NetworkRevision first = loaded.first;
  NetworkPredictor predictor{loop, strand, loaded.first.network, team, {.most_waiting = 100}};
  ServedNetwork served{.id = "mlp", .created = 1, .parameters = 0, .revision = loaded.first.digest, .predictor = &predictor};
  std::unique_ptr<NetworkWeights> weights =
      std::make_unique<NetworkWeights>(workers, predictor, loaded.base, std::move(loaded.first), served);

  // The first tensors when `changed` has been at them.
  WeightSource source(const std::function<void(files::SafeTensors&)>& changed) const {
    files::SafeTensors tensors = files::parse_safetensors(first.tensors->bytes()).value();
    changed(tensors);
    const std::vector<std::byte> bytes = files::write_safetensors(tensors);
    return {.path = {}, .tensors = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), .checksum = {}};
  }
  // Those with other values, of which one output follows.
  WeightSource source(float value) const {
    const std::vector<float> values(20, value);
    return source([&](files::SafeTensors& all) { all.tensors["value.weight"].bytes = std::as_bytes(std::span(values)); });
  }

  std::unique_ptr<PendingPrediction> ask() {
    Tensor x = Tensor::zeros(ElementType::kFloat32, {1, 7});
    for (std::size_t i = 0; i < 7; ++i) x.floats[i] = 0.5F * static_cast<float>(i) - 1.0F;
    return predictor.submit({std::move(x)}, {0, 3}, 0).value();
  }
  static std::vector<float> numbers_of(PendingPrediction& ticket) {
    const std::vector<Tensor> outputs = ticket.try_take()->value();
    std::vector<float> all = outputs[0].floats;
    all.insert(all.end(), outputs[1].floats.begin(), outputs[1].floats.end());
    return all;
  }
  std::vector<float> answer() {
    const auto ticket = ask();
    loop.restart();
    loop.run();
    return numbers_of(*ticket);
  }
};

}  // namespace braid::app::updated
