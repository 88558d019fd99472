#include "cli/verbs.h"

#include <array>

namespace plait {

std::span<const Verb> verbs() {
  static constexpr std::array kVerbs{
      Verb{"models", "list the models that are known by name",
           "  plait models\n"
           "  plait models --json\n",
           models_command},
      Verb{"model", "describe one model: parameters, layers, work of a sample",
           "  plait model llama-2-7b\n"
           "  plait model path/to/config.json --seq 8192\n"
           "  plait model mixtral-8x7b --json\n",
           model_command},
      Verb{"devices", "list the device types that are known by name",
           "  plait devices\n"
           "  plait devices --catalogue mine.json --json\n",
           devices_command},
      Verb{"instances", "list the cloud instances that are known by name",
           "  plait instances\n"
           "  plait plan --model gpt2-xl --cluster 2xp4d.24xlarge --global-batch 64\n",
           instances_command},
      Verb{"version", "print the version", "  plait version\n", version_command},
      Verb{"help", "explain the program or a verb",
           "  plait help\n"
           "  plait help plan\n",
           help_command},
  };
  return kVerbs;
}

}  // namespace plait
