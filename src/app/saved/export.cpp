#include "app/saved/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "app/request/ranked_plan_json.h"
#include "app/request/request_error.h"
#include "app/request/search_request.h"
#include "base/printable.h"
#include "cost/engine.h"
#include "io/format/folder.h"
#include "plan/describe.h"
#include "plan/target.h"
#include "report/quantities.h"

namespace plait {
namespace {

constexpr int kTried = 5;  // plans that are found, where the files have no words for the best

// Rows or a text of one plan, in a folder.
ExportedRun as_rows(const Exporter& exporter, const Problem& problem, const Plan& plan) {
  const RankedPlan ranked{plan, CostEngine(problem).simulate(plan)};
  const Exported one = exporter.write(problem, ranked, 1);
  ExportedRun out;
  if (!one.refusal.empty())
    out.refusal =
        fmt::format("the plan has no row in the form of {}: {}", exporter.name, one.refusal);
  else
    out.files = {{std::string(exporter.file), std::string(exporter.heading) + one.text}};
  return out;
}

// What the program needs for the plan, or why it does not run it.
ExportedRun run_of(const Exporter& exporter, const Problem& problem, const Plan& plan) {
  ExportedRun out;
  out.refusal = refused(exporter, problem, plan);
  if (!out.refusal.empty()) return out;
  return exporter.run == nullptr ? as_rows(exporter, problem, plan) : exporter.run(problem, plan);
}

SearchOptions options_for(const Exporter& exporter, const ExportRequest& request) {
  SearchOptions options;
  options.keep = kTried;
  options.threads = request.threads;
  options.time_limit = request.time_limit;
  options.target = target_of(exporter, request.file.problem);
  if (exporter.narrow != nullptr) exporter.narrow(options.pins);
  // What is in host memory stays there, as far as the program has it: all of it where it has no
  // parts.
  const double offload = request.file.plan.offload;
  if (offload > 0 && options.target.offload)
    options.pins.offload = options.target.parts_from ? offload : 1;
  return options;
}

// A search in the space of what the program runs; `no_nearest` where it gives nothing to write.
void find_nearest(const Exporter& exporter, const ExportRequest& request, const Session& session,
                  ExportAnswer& out) {
  const Problem& problem = request.file.problem;
  if (exporter.network != nullptr && !exporter.network(problem).empty()) return;  // no plan helps
  const SearchOptions options = options_for(exporter, request);
  if (const auto why = why_not(options.target, problem.job)) return;  // no plan helps
  if (const auto violation = violation_of(problem, options.pins, options.target)) {
    out.no_nearest = in_words(*violation);
    return;
  }
  const SearchResult found =
      run_search(planner_named("auto"), search_context(problem, options, session));
  if (found.plans.empty()) {
    out.no_nearest = found.reason.empty() ? "no plan that it runs was found" : found.reason;
    return;
  }
  for (const RankedPlan& best : found.plans) {
    const ExportedRun run = run_of(exporter, problem, best.plan);
    if (run.refusal.empty()) {
      out.nearest = {best, best.cost.step / out.step - 1};
      out.no_nearest.clear();
      return;
    }
    if (out.no_nearest.empty() && run.refusal != out.refusal)
      out.no_nearest = "of the best plan that it runs: " + run.refusal;
  }
}

void take_files(const ExportRequest& request, const Exporter& exporter, ExportedRun run,
                ExportAnswer& out) {
  const Problem& problem = out.file.problem;
  out.losses = std::move(run.losses);
  for (std::string& unsaid : unsaid_settings(exporter, problem, out.file.plan))
    out.losses.push_back(std::move(unsaid));
  if (exporter.run != nullptr) {
    const std::vector<LaunchNode> nodes = launch_nodes(problem, out.file.plan);
    out.files = launch_files(request.launcher, problem.model.name, nodes, run.script);
    out.start = start_command(request.launcher, nodes);
  }
  for (ExportedFile& file : run.files) out.files.push_back(std::move(file));
  const Estimate cost = CostEngine(problem).simulate(out.file.plan);
  out.files.push_back({"plan.json", plan_file_to_json(problem, out.file.plan, cost)});
}

// Why nothing is written for a program that plans can be made for; "" where that is not so.
std::string not_written_for(const std::string& name) {
  const Target* target = target_named(name);
  if (target == nullptr || exporter_named(name) != nullptr || name == "any") return "";
  if (name == "plait") return "`plait train` takes the plan file as it is";
  return fmt::format(
      "plait has no list of {}'s flags to check against, and writes none from memory",
      target->program);
}

// What takes one of the exports, though it has none of its own; begins with "; ".
std::string written_for(std::string_view program) {
  struct Taken {
    std::vector<std::string_view> by;
    std::string_view words;
  };
  static const Taken kTaken[] = {
      {{"accelerate", "huggingface", "transformers", "trl", "axolotl", "llama-factory"},
       "accelerate takes what fsdp writes, or the ds_config.json of deepspeed"},
      {{"lightning", "pytorch-lightning"},
       "its DeepSpeed strategy takes the ds_config.json of "
       "deepspeed"},
      {{"megatron-lm", "megatron-core"}, "megatron writes a script of Megatron-LM"},
      {{"pytorch", "fsdp2", "ddp"}, "fsdp writes a file of accelerate, for PyTorch's FSDP2"},
      {{"maxtext", "flax"}, "jax writes mesh and PartitionSpecs"},
      {{"nemo", "megatron-bridge"},
       "no recipes of NeMo are written; megatron writes the flags of "
       "Megatron-LM"}};
  for (const Taken& taken : kTaken)
    if (std::ranges::find(taken.by, program) != taken.by.end())
      return fmt::format("; {}", taken.words);
  return "";
}

void write_files(const std::string& folder, const ExportAnswer& answer) {
  make_folder(folder);
  for (const ExportedFile& file : answer.files)
    write_folder_file(folder, file.name, file.text, file.executable);
}

// "0.6 % more", "2.1 times as much"
std::string more_in_words(double more) {
  if (more > 1) return fmt::format("{:.3g} times as much", 1 + more);
  return more >= 0 ? percent(more) + " more" : percent(-more) + " less";
}

}  // namespace

ExportAnswer answer(const ExportRequest& request, const Session& session) {
  const std::vector<std::string> names = exporter_names();
  ExportAnswer out;
  out.refusal = not_written_for(request.to);
  if (out.refusal.empty() && std::ranges::find(names, request.to) == names.end())
    throw RequestError(
        "to", not_one_of(request.to, {names.begin(), names.end()}) + written_for(request.to));
  if (!request.folder.empty()) check_folder(request.folder, request.force);
  out.name = request.name;
  out.to = request.to;
  out.file = request.file;
  out.step = CostEngine(request.file.problem).simulate(request.file.plan).step;
  if (!out.refusal.empty()) return out;
  const Exporter& exporter = *exporter_named(request.to);
  ExportedRun run = run_of(exporter, out.file.problem, out.file.plan);
  out.refusal = run.refusal;
  if (!out.refusal.empty()) {
    find_nearest(exporter, request, session, out);
    if (!out.nearest || !request.nearest) return out;
    out.file.plan = out.nearest->plan.plan;
    run = run_of(exporter, out.file.problem, out.file.plan);
  }
  take_files(request, exporter, std::move(run), out);
  if (!request.folder.empty()) write_files(request.folder, out);
  return out;
}

std::string reason(const ExportAnswer& answer) {
  if (answer.written()) return "";
  std::string out = fmt::format("{}: {}", printable(answer.name), answer.refusal);
  if (answer.nearest)
    out +=
        fmt::format(": the best plan that it runs takes {}, {}; `nearest` writes it",
                    in_words(answer.nearest->plan.cost.step), more_in_words(answer.nearest->more));
  else if (!answer.no_nearest.empty())
    out += fmt::format("; there is nothing else to write: {}", answer.no_nearest);
  return out;
}

std::string to_json(const ExportAnswer& answer) {
  std::vector<std::string> files;
  for (const ExportedFile& file : answer.files) files.push_back(json_text(file.name));
  JsonObject object;
  object.text("to", answer.to)
      .boolean("written", answer.written())
      .number("step_s", answer.step.value)
      .text("why_not", answer.refusal)
      .json("files", json_list(files))
      .json("losses", sentences_json(answer.losses))
      .text("start", answer.start);
  if (answer.nearest)
    object.json("nearest", ranked_plan_json(answer.file.problem, answer.nearest->plan))
        .number("nearest_more", answer.nearest->more);
  else
    object.json("nearest", "null").text("no_nearest", answer.no_nearest);
  return lay_out_json(object.str());
}

std::string as_text(const ExportAnswer& answer, const std::string& folder) {
  std::string out;
  if (answer.nearest)
    out += fmt::format("{}\nthe best plan that it runs is written: {}, {}\n  {}\n", answer.refusal,
                       in_words(answer.nearest->plan.cost.step),
                       more_in_words(answer.nearest->more), describe(answer.file.plan));
  std::vector<std::string_view> names;
  for (const ExportedFile& file : answer.files) names.push_back(file.name);
  out +=
      fmt::format("{}: {}\n", folder.empty() ? "files" : printable(folder), fmt::join(names, ", "));
  if (!answer.start.empty()) out += fmt::format("start it there: {}\n", answer.start);
  for (const std::string& loss : answer.losses) out += fmt::format("not written: {}\n", loss);
  return out;
}

}  // namespace plait
