#include "app/cli/model.h"

#include "app/option_types.h"

namespace braid::app {

void add_model_options(CLI::App& app, ModelOptions& options) {
  add_integer(app, "--ctx", options.context, 2, kMostTokens, "Context of one sequence in tokens; the model's own if not given");
  add_size(app, "--kv-memory", options.kv_memory, "Memory of the KV pool, such as 4GiB; half of what is left after load if not given");
  add_integer(app, "--max-kv-size", options.max_kv_size, 0, kMostTokens,
              "Positions that a token sees: the first few and the last ones; older ones give up their KV memory; 0: all");
  add_kv_type(app, "--kv-dtype", options.kv_type,
              "Type of keys and values in the pool: auto (bf16 with amx, else f16), f32, f16, bf16 or int8");
  CLI::Option* arithmetic = add_float_type(app, "--dtype", options.float_type,
                                           "Arithmetic of F32, F16 and BF16 weights: auto (as stored), f32, bf16, f16 or int8");
  add_quantized_type(app, "--quantize", options.float_type,
                     "Rounds F32, F16 and BF16 weights while loading, without a search for scales: q8_0, q6_k, q5_k, q4_k or q4_0")
      ->excludes(arithmetic);
  app.add_flag("--fast-weights", options.fast_weights,
               "Feed-forward weights with a scale for 32 values are rotated and rounded to 8 bits: faster with avx512 and amx, less exact");
  add_integer(app, "--block-size", options.block_size, 8, 64, "Tokens of one KV block: 8, 16, 32 or 64")
      ->check(CLI::IsMember({"8", "16", "32", "64"}));
  add_integer(app, "--threads", options.threads, 0, 1024, "Compute threads; 0: one for each usable CPU");
  app.add_flag("--pin-threads", options.pin_threads, "Each compute thread stays on a CPU of its own, the first ones of the affinity mask");
  add_huge_pages(app, "--huge-pages", options.huge_pages,
                 "Pages of 2 MiB: off, transparent (where the system finds them) or explicit (weights and KV from vm.nr_hugepages)");
  add_isa(app, "--isa", options.isa, "Kernel tier: scalar, neon, avx2, avx512 or amx; the machine's best if not given")
      ->envname("BRAID_ISA");
}

void add_rank_options(CLI::App& app, RankOptions& options) {
  add_integer(app, "--ranks", options.count, 1, 1024,
              "Processes that compute the model together, started by mpirun; each has a part of its weights");
  add_integer(app, "--stages", options.stages, 1, 1024,
              "Parts of the model's layers, one after the other, among which the ranks are divided: for slow networks");
  app.add_flag("--ranks-on-nodes", options.on_nodes,
               "Each rank stays on a memory node (NUMA) of its machine, with its threads and its weights");
  app.add_option("--hostfile", options.hostfile,
                 "Machines on which mpirun starts the ranks, as it reads them or as a JSON list of {\"ssh\": NAME}; this one if not given")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app.add_option("--ranks-listen", options.listen, "HOST:PORT where ranks on other machines reach this server; port 0: any")
      ->type_name("ADDRESS");
  add_timeout(app, "--ranks-timeout", options.timeout, "How long ranks may take for a pass: one that takes longer counts as lost");
}

void add_chat_template(CLI::App& app, ModelOptions& options) {
  app.add_option("--chat-template", options.chat_template, kChatTemplateHelp);
}

}  // namespace braid::app
