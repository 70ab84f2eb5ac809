// Where models are kept, and who is asked for more.
#include "app/cli/model.h"

namespace braid::app {

void add_data_options(CLI::App& app, DataOptions& options) {
  app.add_option("--data-dir", options.folder,
                 "Folder of the models that are pulled and made; $XDG_DATA_HOME/braid, or else ~/.local/share/braid, if not given")
      ->type_name("FOLDER")
      ->envname("BRAID_DATA_DIR");
  app.add_option("--registry-mirror", options.registry_mirror, "Registry that is asked in place of the usual one: its URL")
      ->type_name("URL")
      ->envname("BRAID_REGISTRY_MIRROR");
  app.add_option("--ca-file", options.ca_file,
                 "PEM file of who vouches for the servers that models are pulled from; the system's if not given")
      ->type_name("FILE");
}

}  // namespace braid::app
