#include "io/model/huggingface/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

constexpr int kLongestDefaultSequence = 4096;
constexpr std::string_view kLanguageOnly = "only the language model of a multimodal model is read";

const std::vector<HfFamily>& families() {
  static const std::vector<HfFamily> all = [] {
    std::vector<HfFamily> out = hf_decoders();
    for (const auto& more :
         {hf_llama_variants(), hf_mixtures(), hf_encoders(), hf_encoder_decoders()})
      out.insert(out.end(), more.begin(), more.end());
    return out;
  }();
  return all;
}

// "id2label" decides, then "num_labels", then 2.
int label_count(const HfFields& fields) {
  if (const auto labels = fields.find({"id2label"}))
    return std::max<int>(1, static_cast<int>(labels->members().size()));
  return fields.size({"num_labels"}, 2);
}

// What classifiers are for, by the end of the class's name. The whole sequence is judged by its
// pooled first position; a decoder's score of it has no bias.
struct Task {
  std::string_view suffix;
  bool of_sequence;
  int classes;  // 0: the labels of the config
};
constexpr Task kTasks[] = {{"ForSequenceClassification", true, 0},
                           {"ForTokenClassification", false, 0},
                           {"ForQuestionAnswering", false, 2},
                           {"ForNextSentencePrediction", true, 2},
                           {"ForMultipleChoice", true, 1}};

// What the heads of tasks do besides having these parameters.
void note_task(const std::string& name, const Task& task, bool encoder, TransformerConfig& c) {
  if (name.ends_with("ForMultipleChoice"))
    note(c, "a choice between several inputs");
  else if (!task.of_sequence)
    note(c, "a head that judges every token");
  else if (!encoder)
    note(c, "a head on the last token");
  else if (name.starts_with("DistilBert") || name.starts_with("Electra"))
    note(c, "a classifier with another activation than tanh");
}

// Adapts the head to a class of `transformers` by how its name ends; false when that is not known.
bool apply_architecture(const std::string& name, const HfFields& fields, TransformerConfig& c) {
  const bool encoder = c.head == Head::masked;
  if (c.decoder_layers > 0 && name.ends_with("ForCausalLM")) return false;
  if (c.decoder_layers > 0 && name.ends_with("MTModel")) return true;
  for (const std::string_view usual :
       {"LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration"})
    if (name.ends_with(usual)) return c.patches.patch == 0;
  if (name.ends_with("ForImageClassification")) return c.patches.patch > 0;
  if (name.ends_with("ForImageClassificationWithTeacher") && c.patches.tokens == 2) {
    c.classes *= 2;  // one answer for the labels, one for the teacher
    note(c, "a second classifier on the teacher's token");
    return true;
  }
  if (name.ends_with("EncoderModel") && c.decoder_layers > 0) {
    c.decoder_layers = 0;
    c.head = Head::none;
    return true;
  }
  if (name == "ElectraForPreTraining") {  // was each token replaced?
    c.head = Head::classifier;
    c.classes = 1;
    c.pooler = c.hidden;
    note(c, "a head that judges every token");
    return true;
  }
  if (name.ends_with("ForPreTraining") && encoder) {
    c.head = Head::pretraining;
    c.pooler = c.hidden;
    return true;
  }
  for (const Task& task : kTasks) {
    if (!name.ends_with(task.suffix) || c.decoder_layers > 0 || c.patches.patch > 0) continue;
    c.head = Head::classifier;
    c.classes = task.classes > 0 ? task.classes : label_count(fields);
    c.pooler = encoder && task.of_sequence ? c.hidden : 0;
    c.classifier_bias = encoder || !task.of_sequence;
    note_task(name, task, encoder, c);
    return true;
  }
  if (name.ends_with("Model")) {
    c.head = Head::none;
    const bool pooled = encoder && !name.starts_with("DistilBert") && !name.starts_with("Electra");
    if (pooled || c.patches.patch > 0) c.pooler = fields.size({"pooler_output_size"}, c.hidden);
    return true;
  }
  return false;
}

void read_architecture(const HfFields& fields, TransformerReading& reading) {
  TransformerConfig& c = reading.config;
  if (c.head == Head::classifier) c.classes = label_count(fields);
  const auto list = fields.find({"architectures"});
  if (!list) return;
  const std::vector<JsonValue> names = list->items();
  if (names.empty() || apply_architecture(names[0].text(), fields, c)) return;
  note(c, fmt::format("the head of '{}', which is not known", names[0].text()));
  reading.warnings.push_back(
      fmt::format("architecture '{}' is not known: the usual head of the model type is assumed",
                  names[0].text()));
}

void read_activation(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  struct Name {
    std::string_view name;
    Function function;
  };
  static constexpr Name kNames[] = {
      {"gelu", Function::gelu},         {"gelu_python", Function::gelu},
      {"gelu_new", Function::gelu_new}, {"gelu_fast", Function::gelu_new},
      {"silu", Function::silu},         {"gelu_pytorch_tanh", Function::gelu_tanh},
      {"swish", Function::silu},        {"swiglu", Function::silu},
      {"relu", Function::relu},         {"quick_gelu", Function::quick_gelu}};
  const bool t5 = type == "t5" || type == "mt5" || type == "umt5";
  const bool tanh = type == "gpt2" || type == "gpt_neo" || type == "gptj" || type == "phi" ||
                    type == "codegen" || type == "gpt_bigcode" || type == "albert";
  c.activation = type.starts_with("gemma") || type == "starcoder2" ? Function::gelu_tanh
                 : t5              ? (c.gated ? Function::gelu_new : Function::relu)
                 : c.gated         ? Function::silu
                 : tanh            ? Function::gelu_new
                 : type == "opt"   ? Function::relu
                 : type == "bloom" ? Function::gelu_twice
                                   : Function::gelu;
  std::string name = fields.text(
      {"hidden_act", "activation_function", "hidden_activation", "activation", "dense_act_fn"},
      type == "nemotron" ? "relu2" : "");
  if (t5) {  // "gated-silu"; "gated-gelu" is the approximation
    const std::string stated = fields.text({"feed_forward_proj"}, "");
    name = stated.substr(stated.find('-') + 1);
    if (c.gated && name == "gelu") name = "gelu_new";
  }
  if (name.empty() || type == "bloom") return;
  const auto known = std::ranges::find(kNames, name, &Name::name);
  if (known == std::end(kNames)) note(c, fmt::format("the activation '{}'", name));
  c.activation = known != std::end(kNames)  ? known->function
                 : name.starts_with("relu") ? Function::relu
                                            : Function::gelu;
}

// The features of a head that are turned; 0 = all of them, in place.
int turned_features(const HfFields& fields, const std::string& type, const TransformerConfig& c) {
  const int head = c.head_dim > 0 ? c.head_dim : c.hidden / std::max(1, c.heads);
  if (type == "gptj" || type == "codegen")
    return fields.is_null("rotary_dim") ? 0 : fields.count({"rotary_dim"}, std::min(64, head));
  std::optional<JsonValue> stated = fields.find({"rotary_pct", "partial_rotary_factor"});
  const auto parameters = fields.find({"rope_parameters"});
  if (!stated && parameters && parameters->is_object())
    stated = parameters->find("partial_rotary_factor");
  const bool half =
      type == "phi" || type == "glm" || type == "glm4" || type == "glm4_moe" || type == "nemotron";
  const bool quarter = type == "gpt_neox" || type == "stablelm";
  const double turned = stated ? stated->at_least(0) : half ? 0.5 : quarter ? 0.25 : 1;
  if (turned > 1)
    throw InputError(stated->where(), fmt::format("must be from 0 to 1, is {}", turned));
  const bool joins = turned < 1 || type == "phi3";
  return fields.count({"rotary_dim"}, joins ? static_cast<int>(turned * head) : 0);
}

// How the library computes the block: what matters only where kernels are not fused.
void read_kernels(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  const std::string_view concatenated[] = {"gpt2", "gpt_neox", "bloom",   "falcon",
                                           "mpt",  "phi3",     "codegen", "gpt_bigcode"};
  c.fused_qkv = std::ranges::find(concatenated, type) != std::end(concatenated);
  c.rotary_dim = turned_features(fields, type, c);
  const std::string_view wide[] = {"gemma", "gemma2", "gemma3_text", "olmo2", "olmo3", "gpt_oss"};
  c.wide_norm = std::ranges::find(wide, type) != std::end(wide);
}

void choose_sequence(std::optional<int> sequence, TransformerReading& reading) {
  TransformerConfig& c = reading.config;
  if (c.patches.patch > 0) {
    if (sequence)
      reading.warnings.emplace_back(
          "an image model has no sequence length: the one given is ignored");
    return;
  }
  const int readable = c.sequence;
  c.sequence = sequence.value_or(std::min(readable, kLongestDefaultSequence));
  if (!sequence && readable > kLongestDefaultSequence)
    reading.warnings.push_back(fmt::format(
        "sequence length {} is assumed; the model can read up to {}", c.sequence, readable));
  if (c.positions == Positions::learned && c.sequence > readable) {
    reading.warnings.push_back(
        fmt::format("the model has learnt positions for {} tokens only: its table is taken to grow "
                    "to {}",
                    readable, c.sequence));
    c.position_rows += c.sequence - readable;
  }
}

void warn_about_windows(TransformerReading& reading) {
  const int window = reading.config.window.size;
  if (window > 0 && window < reading.config.sequence)
    reading.warnings.push_back(fmt::format(
        "attention in a sliding window of {} tokens is counted as full attention", window));
}

void warn_about_keys(const HfFields& fields, TransformerReading& reading) {
  std::vector<std::string>& keys = reading.config.unknown_keys = unknown_keys(fields);
  if (keys.empty()) return;
  reading.warnings.push_back(
      fmt::format("{} '{}' {} not understood: if {} the network, {} not in the prediction",
                  keys.size() == 1 ? "the key" : "the keys", fmt::join(keys, "', '"),
                  keys.size() == 1 ? "is" : "are", keys.size() == 1 ? "it changes" : "they change",
                  keys.size() == 1 ? "it is" : "they are"));
}

void limit_choice_of_experts(TransformerReading& reading) {
  Moe& moe = reading.config.moe;
  if (moe.experts == 0 || moe.top_k <= moe.experts) return;
  reading.warnings.push_back(fmt::format(
      "a token cannot visit {} of {} experts: all of them are assumed", moe.top_k, moe.experts));
  moe.top_k = moe.experts;
}

// The language model inside a model that also reads images or sound.
std::optional<JsonValue> language_part(const JsonValue& config) {
  for (const std::string_view key : {"text_config", "language_config", "llm_config"})
    if (auto part = config.find(key); part && part->is_object()) return part;
  return std::nullopt;
}

bool is_known(const std::string& type) {
  return std::ranges::find(families(), type, &HfFamily::model_type) != families().end();
}

// `usual_type`: where the config names none, as in a part of another config.
TransformerReading read_config(const JsonValue& config, const std::string& usual_type,
                               std::optional<int> sequence) {
  const HfFields fields(config);
  TransformerReading reading;
  TransformerConfig& c = reading.config;
  if (fields.find({"vision_config"})) {
    reading.warnings.emplace_back(kLanguageOnly);
    note(c, "parts that read images or sound");
  }
  const std::string type = fields.text({"model_type"}, is_known(usual_type) ? usual_type : "");
  c.name = fields.text({"_name_or_path"}, "");
  if (c.name.empty()) c.name = type.empty() ? "model" : type;
  const auto family = std::ranges::find(families(), type, &HfFamily::model_type);
  if (family != families().end())
    family->read(fields, c);
  else
    reading.warnings.push_back(read_unknown(fields, c));
  read_architecture(fields, reading);
  read_activation(fields, type, c);
  read_kernels(fields, type, c);
  read_features(fields, type, c);
  if (c.causal && c.head == Head::masked) note(c, "a masked head under causal attention");
  choose_sequence(sequence, reading);
  warn_about_windows(reading);
  warn_about_keys(fields, reading);
  limit_choice_of_experts(reading);
  if (const std::string fault = fault_of(c); !fault.empty())
    throw InputError(fields.where(), fault);
  return reading;
}

}  // namespace

std::vector<std::string> huggingface_model_types() {
  std::vector<std::string> names;
  for (const HfFamily& family : families()) names.emplace_back(family.model_type);
  return names;
}

TransformerReading read_huggingface(const JsonValue& config, std::optional<int> sequence) {
  if (sequence && (*sequence < 1 || *sequence > kMaxHfSize))
    throw InputError("sequence length",
                     fmt::format("must be from 1 to {}, is {}", kMaxHfSize, *sequence));
  if (!is_known(config.text_or("model_type", "")))
    if (const std::string why = other_family(config); !why.empty())
      throw InputError(config.where(), why);
  if (const auto part = language_part(config)) {
    TransformerReading reading =
        read_config(*part, config.text_or("model_type", "") + "_text", sequence);
    reading.warnings.insert(reading.warnings.begin(), std::string(kLanguageOnly));
    note(reading.config, "parts that read images or sound");
    return reading;
  }
  return read_config(config, "", sequence);
}

}  // namespace plait
