// What the command line asks for, one struct a command, with the defaults. Plain values: parsed once, then only read.
#pragma once

#include "braid/generation_request.h"
#include "braid/model_registry.h"
#include "braid/request_defaults.h"
#include "files/mapping.h"
#include "images/fetch.h"
#include "kernels/kernel_table.h"
#include "model/share.h"
#include "model/stage.h"
#include "net/service/server_options.h"
#include "store/redis/address.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::app {

// Which model, how it is computed, and its memory.
// Processes that compute one model together.
struct RankOptions {
  std::int32_t count = 1;
  std::int32_t stages = 1;                    // parts of the layers, one after the other, among which they are divided
  bool on_nodes = false;                      // each stays on a memory node (NUMA) of its machine
  std::string hostfile = {};                  // where mpirun starts them; empty: on this machine
  std::string listen = {};                    // HOST:PORT where they reach the server; empty: this machine alone
  std::chrono::milliseconds timeout{30'000};  // of a pass: one that takes longer counts as lost

  // What the largest of them has: of the last stage, which is never smaller than another.
  model::Share share() const { return {.rank = 0, .ranks = count / stages}; }
  model::Stage stage() const { return {.index = stages - 1, .count = stages}; }

  // Of this process, which need no MPI; a relay of stages does.
  bool are_threads() const { return on_nodes && hostfile.empty() && stages == 1; }
  // Processes of this machine, or threads of this one, that each take what a model of its share does; 0: all are elsewhere.
  std::int32_t count_here() const { return hostfile.empty() ? count : 0; }
};

struct ModelOptions {
  std::string model;         // a GGUF file or a Hugging Face folder; empty: the embedded one
  std::string draft;         // another one, which guesses for it; empty: none
  std::string mmproj;        // a GGUF file of an image tower; empty: the folder's, or what lies beside the file
  std::int32_t threads = 0;  // of the compute strand; 0: all usable CPUs
  bool pin_threads = false;  // each of them to a CPU of its own
  files::HugePages huge_pages = files::HugePages::kTransparent;
  std::optional<std::int32_t> context;            // tokens; the model's own otherwise
  std::optional<std::uint64_t> kv_memory;         // bytes; half of what is available after load otherwise
  std::int32_t max_kv_size = 0;                   // positions that a token sees, the first few among them; 0: all
  std::optional<kernels::KvType> kv_type;         // of keys and values; the tier's own otherwise
  std::optional<kernels::WeightType> float_type;  // arithmetic of F32, F16 and BF16 matrices; their own type otherwise
  bool fast_weights = false;                      // some are rotated and rounded again (model::Packing)
  std::int32_t block_size = 16;                   // tokens of a KV block
  std::string chat_template;                      // a Jinja or Hugging Face file instead of the model's own; empty: none
  std::string usual_template;                     // a file: the same, where the model brings none
  std::optional<kernels::Isa> isa;                // the best of this machine otherwise
  RankOptions ranks;
};

struct BatchOptions {
  std::int32_t max_batch = 256;                       // sequences in one step
  std::int32_t max_batch_tokens = 4096;               // tokens in one step
  std::int32_t prefill_slice_ms = 35;                 // what prefill may add to a step that decodes
  std::int32_t target_itl_ms = 0;                     // between two tokens of an answer; 0: no target
  std::int32_t max_waiting = 16384;                   // queued requests, then 429
  std::chrono::milliseconds priority_ageing{10'000};  // what a level of priority is worth in waiting time
  std::int32_t state_checkpoints = 512;               // positions between two checkpoints of a recurrent state; 0: none on the way
  std::optional<std::uint64_t> state_memory = {};     // bytes of the KV pool that all of them may take; none: what nobody needs more
  std::chrono::milliseconds stall_park{10'000};       // a client that does not read: its sequence loses its KV memory
  std::chrono::milliseconds stall_drop{300'000};      // and is ended
  DraftMethod speculate = DraftMethod::kAuto;         // of requests that say nothing, where tokens are guessed from; kOff: never any
  std::int32_t draft_tokens = 8;                      // guessed at once for a sequence, at most
  bool speculate_always = false;                      // whether it pays or not
  bool prefix_cache = true;                           // requests that begin alike share what has been computed
  std::uint64_t image_cache = 256ULL << 20U;          // bytes of what became of images
  bool kv_verify = false;                             // nothing is shared; what would be is computed and compared
};

// The prefix cache's second level.
struct DiskOptions {
  std::string directory;                 // empty: none
  std::uint64_t limit = 50'000'000'000;  // bytes
  std::chrono::milliseconds ttl = std::chrono::days(7);
  bool always = false;                // what is there is read even when computing it has been faster
  std::optional<bool> write_through;  // blocks are written when they are full, not when they leave the pool
};

// The part of the prefix cache that servers share.
struct SharedCacheOptions {
  std::optional<store::RedisAddress> redis;  // nullopt: none
  std::chrono::milliseconds timeout{250};    // for an answer of it
  std::chrono::milliseconds ttl = std::chrono::days(7);
  std::string key_prefix = "braid:";
};

// When a step is no longer believed to end.
struct WatchOptions {
  std::chrono::milliseconds step_timeout{60'000};  // /readyz says no, systemd is told nothing; 0: never
  std::chrono::milliseconds step_abort{600'000};   // the process ends; 0: never
};

// Servers beside this one, which are to have the same adapters and weights.
struct PeerOptions {
  std::vector<std::string> nodes;  // HOST:PORT or a URL without a path; a name stands for all its addresses
  std::string key_file;            // with the key of an administrator of theirs; empty: none
  std::string state_folder;        // in which changes are kept over an end of all servers; empty: they are not
};

// Where each request's spans go.
struct TraceOptions {
  std::string endpoint;  // URL of a collector (OTLP over HTTP); empty: none
  double share = 1.0;    // of the requests whose callers do not say themselves whether they are traced
};

struct LogOptions {
  std::string level = "info";
  net::LogFormat format = net::LogFormat::kText;
  std::string file;     // empty: standard error
  bool access = false;  // a line for every request
  net::TrustedProxies proxies;
  TraceOptions traces;
};

// Where this machine's models are, and where others come from.
struct DataOptions {
  std::string folder;           // --data-dir; empty: data_folder()
  std::string registry_mirror;  // URL; empty: none
  std::string ca_file;          // of servers that are pulled from; empty: the system's
};

struct AccessOptions {
  std::string api_key_file;    // empty: none
  net::access::Limits limits;  // of keys that have none of their own; without keys of all clients together
};

// An adapter that is loaded at the start.
struct AdapterOption {
  std::string model;  // the id of its base; empty: the first model
  std::string name;
  std::string path;  // a folder of PEFT, or a GGUF file
};

// Which models are in memory, and for how long.
struct ResidenceOptions {
  std::int32_t max_models = 0;                      // loaded at once; 0: as many as fit
  std::optional<std::uint64_t> memory;              // bytes that all of them may take; what the system leaves otherwise
  std::chrono::milliseconds load_timeout{300'000};  // for which a request waits for its model
  std::chrono::milliseconds keep_alive{300'000};    // of a model that a request has loaded, after its last one; max(): for ever
};

struct ServeOptions {
  std::vector<std::string> arguments;           // of the command line, to read all of it again
  std::map<std::string, std::string> settings;  // each option's text by its key; empty: nobody says anything
  std::vector<std::string> doubts;              // what the log warns of at the start
  ModelOptions model;                           // what holds for every model that is served
  std::vector<std::string> files;               // GGUF files and Hugging Face folders; empty: the embedded model, or none with models_dirs
  std::vector<std::string> aliases;             // their ids in the API, in their order; empty: their file names
  std::vector<std::string> chat_templates;      // one for all, one for each in their order, or empty: their own
  std::vector<Pooling> poolings;                // of /v1/embeddings; likewise, or empty: what their files say
  std::vector<std::string> drafts;              // models that guess for them; likewise, "none" or empty: none do
  std::vector<AdapterOption> adapters;
  std::vector<std::string> models_dirs;  // folders whose models can be asked for
  ResidenceOptions residence;
  DataOptions data;
  bool is_ollama = false;  // listens where Ollama's clients look, too
  BatchOptions batch;
  DiskOptions disk;
  SharedCacheOptions shared_cache;
  bool no_model = false;
  bool no_warmup = false;
  RequestDefaults defaults;     // of requests that say nothing themselves
  bool any_model_name = false;  // a name that no model has stands for the first one
  net::ServerOptions http;
  net::TcpAddress address;                          // of --host and --port, one of http.listen where it is used
  bool names_addresses = false;                     // whether any of http's is more than the default
  std::string takeover;                             // Unix socket on which this server is found by its successor; empty: none
  std::string pid_file;                             // with this process's number; empty: none
  std::chrono::milliseconds drain_delay{0};         // between SIGTERM and the end of accepting
  std::chrono::milliseconds drain_timeout{25'000};  // below the 30 s after which Kubernetes kills
  WatchOptions watch;
  AccessOptions access;
  PeerOptions peers;
  images::FetchRules image_fetch;
  LogOptions log;
};

// One of the models of a server, small networks included.
struct ServedModelOptions {
  ModelOptions model;
  std::string id;
  std::optional<Pooling> pooling = {};                      // nullopt: what its files say
  std::shared_ptr<const ModelSettings> settings = nullptr;  // of one that the registry has
  std::function<void()> on_loaded = {};                     // called when it has been loaded, off the loop; or empty
};

// Of `braid config`: what `braid serve` would read.
struct ConfigOptions {
  enum class Action { kCheck, kShow, kInit };
  Action action = Action::kCheck;
  std::string file;  // to look at, or to write; empty: the usual one, or standard output
};

// `braid pull`, `list` and so on.
struct ModelCommandOptions {
  enum class Action { kPull, kPush, kList, kShow, kRunning, kStop, kRemove, kCopy, kCreate, kStatus, kKey };
  Action action = Action::kList;
  DataOptions data;
  std::string host;                     // URL of the server; empty: whichever has the data folder open, or none
  std::vector<std::string> names;       // of models
  std::string modelfile = "Modelfile";  // "-": standard input
  std::string quantize;                 // empty: as they are
  bool insecure = false;
  bool verbose = false;
  bool modelfile_only = false;
  bool names_only = false;
  bool json = false;
};

struct RunOptions {
  ModelOptions model;
  DataOptions data;
  std::string host;             // URL of the server that answers; empty: whichever has the data folder open, or none
  std::string prompt;           // empty: an interactive chat
  std::string system;           // system prompt, or empty
  std::int32_t max_tokens = 0;  // of one answer; 0: the rest of the context
  double temperature = 0.7;
  double top_p = 1.0;
  std::int32_t top_k = 0;
  double min_p = 0.0;
  std::optional<std::uint64_t> seed;  // drawn otherwise
  bool json = false;                  // answers as lines of JSON
};

struct CacheExportOptions {
  ModelOptions model;
  std::string prompt;       // what to compute
  std::string prompt_file;  // the same as a file's text; empty: `prompt`
  std::string output;       // a safetensors file
};

struct CacheImportOptions {
  ModelOptions model;
  std::string input;  // what CacheExportOptions::output was
  DiskOptions disk;
  std::string cache_salt;  // of the requests that may use it
};

struct ConvertCommandOptions {
  std::string input;   // a Hugging Face folder, or a GGUF file
  std::string output;  // a GGUF file
  std::optional<kernels::WeightType> type;
  bool force = false;  // the output may be there already
};

struct QuantizeCommandOptions {
  std::string input;            // a GGUF file, or a Hugging Face folder
  std::string output;           // a GGUF file
  std::string type = "q4_k_m";  // the name of a model::QuantizationMix
  std::string importance;       // an importance matrix; empty: none
  bool pure = false;
  bool allow_requantize = false;
  bool force = false;  // the output may be there already
};

struct SplitCommandOptions {
  std::string input;
  std::string output;                       // what the parts' names begin with
  std::optional<std::uint64_t> most_bytes;  // of tensors in a part; at least one of the two bounds is there
  std::optional<std::int32_t> most_tensors;
  bool force = false;
};

struct MergeCommandOptions {
  std::string input;  // the first part
  std::string output;
  bool force = false;
};

struct PlanOptions {
  ModelOptions model;
  std::int32_t hosts = 8;
  std::uint64_t bandwidth = 1'250'000'000;  // bytes in a second, from one machine to another
  std::int32_t latency_us = 50;
  std::uint64_t memory_bandwidth = 40'000'000'000;  // of one machine, likewise
};

struct ModelReportOptions {
  ModelOptions model;
  std::int32_t max_batch = 256;
};

}  // namespace braid::app
