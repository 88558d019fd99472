// Networks that are not transformers of the kind that is predicted here. A guess from their sizes
// would be far off, so that they are refused with the reason.

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "io/model/huggingface/fields.h"
#include "io/model/huggingface/huggingface.h"

namespace plait {
namespace {

struct Family {
  std::string_view why;
  std::array<std::string_view, 20> types;
};

constexpr Family kFamilies[] = {
    {"is a state-space or recurrent network; only layers of attention and feed-forward products "
     "are predicted",
     {"mamba",      "mamba2", "falcon_mamba",     "falcon_h1",  "jamba",  "zamba",
      "zamba2",     "bamba",  "granitemoehybrid", "nemotron_h", "rwkv",   "rwkv5",
      "rwkv6",      "rwkv7",  "recurrent_gemma",  "xlstm",      "retnet", "stripedhyena",
      "qwen3_next", "lfm2"}},
    {"is two encoders with a contrastive loss; only one stack, or an encoder with a decoder, is "
     "predicted",
     {"clip", "siglip", "siglip2", "align", "altclip", "chinese_clip", "clipseg", "blip", "flava",
      "groupvit", "owlvit", "owlv2", "xclip", "clap", "metaclip_2", "vision-text-dual-encoder"}},
    {"reads sound through convolutions; they are not predicted",
     {"whisper", "wav2vec2", "wav2vec2-bert", "hubert", "wavlm", "unispeech", "unispeech-sat",
      "data2vec-audio", "encodec", "vits", "univnet", "sew", "sew-d", "mimi"}},
    {"is a network of images with convolutions or stages of several sizes; plait has Wide-ResNet "
     "and ViT of its own",
     {"swin", "swinv2", "convnext", "convnextv2", "resnet", "regnet", "segformer", "efficientnet",
      "mobilenet_v2", "detr", "poolformer", "pvt", "levit", "cvt", "van", "focalnet", "bit"}},
};

// Families appear faster than tables are written: what a config has tells, too. Layers that mix
// tokens by a recurrence or a convolution, by what lists of layers call them and by their sizes.
constexpr std::string_view kRecurrentLayers[] = {
    "linear_attention", "lightning_attention", "mamba", "recurrent", "conv", "rwkv"};
constexpr std::string_view kRecurrentKeys[] = {"linear_attn_config", "linear_num_key_heads",
                                               "linear_num_heads",   "ssm_state_size",
                                               "mamba_d_state",      "conv_L_cache"};

std::string recurrent_part(const JsonValue& config) {
  for (const std::string_view key : {"layer_types", "layers_block_type", "block_types"}) {
    const auto list = config.find(key);
    if (!list || !list->is_array()) continue;
    for (const JsonValue& kind : list->items())
      if (kind.is_string() &&
          std::ranges::find(kRecurrentLayers, kind.text()) != std::end(kRecurrentLayers))
        return "layers of the kind '" + kind.text() + "'";
  }
  for (const std::string_view key : kRecurrentKeys)
    if (config.find(key)) return "'" + std::string(key) + "'";
  return "";
}

constexpr std::string_view kDiffusion =
    "is a part of a diffusion model (diffusers); only transformers that predict tokens or classes "
    "are predicted";
constexpr std::string_view kDiffusionNames[] = {"diffusion", "sdxl", "sd3", "flux", "unet", "dit"};

// "resnet" of "resnet50"
std::string_view without_number(std::string_view word) {
  const std::size_t end = word.find_last_not_of("0123456789");
  return word.substr(0, end == word.npos ? 0 : end + 1);
}

// Of models that read images before a language model: the latter is predicted.
constexpr std::string_view kOfTwoParts[] = {"llava",     "vl",      "internvl", "idefics",
                                            "paligemma", "smolvlm", "pixtral",  "vision"};

// "state-spaces/Mamba-2.8b" as "state", "spaces", "mamba", "2.8b".
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name)
    if (c == '-' || c == '_' || c == '/')
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return words;
}

}  // namespace

std::string other_family_named(const std::string& name) {
  for (const std::string& word : words_of(name)) {
    if (std::ranges::find(kDiffusionNames, word) != std::end(kDiffusionNames))
      return "'" + word + "' is not predicted: it " + std::string(kDiffusion);
    const std::string_view family_name = without_number(word);
    for (const Family& family : kFamilies)
      for (const std::string_view type : family.types)
        if (!type.empty() && (type == word || type == family_name))
          return "'" + word + "' is not predicted: it " + std::string(family.why);
    if (std::ranges::find(kOfTwoParts, word) != std::end(kOfTwoParts))
      return "not known; it reads images before a language model, and of its config.json the "
             "language model alone is predicted";
  }
  return "";
}

std::string other_family(const JsonValue& config) {
  if (config.find("_class_name") || config.find("_diffusers_version"))
    return std::string(kDiffusion);
  const auto type = config.find("model_type");
  if (!type || !type->is_string()) return "";
  for (const Family& family : kFamilies)
    if (std::ranges::find(family.types, type->text()) != family.types.end())
      return "model type '" + type->text() + "' " + std::string(family.why);
  const auto text = config.find("text_config");
  const JsonValue& language = text && text->is_object() ? *text : config;
  if (const std::string part = recurrent_part(language); !part.empty())
    return "model type '" + type->text() + "' has " + part +
           ", a state-space or recurrent network; only layers of attention and feed-forward "
           "products are predicted";
  if (const auto width = language.find("hidden_size_per_layer_input");
      width && width->is_number() && width->number() > 0)
    return "model type '" + type->text() +
           "' has an embedding for every layer (hidden_size_per_layer_input), which is not "
           "predicted";
  return "";
}

}  // namespace plait
