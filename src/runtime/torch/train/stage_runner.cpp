#include "runtime/torch/train/stage_runner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/torch/comm/kernels.h"

namespace plait::runtime {

struct StageRunner::LocalSpan {
  int number = 0;  // in the layout
  const SpanPlace* place = nullptr;
  int d = 0;
  int t = 0;
  std::unique_ptr<UnitModule> module;
  std::vector<Piece> pieces;
  bool reads_batch = false;
  std::vector<Batch> batches;  // of the step, by micro-batch
};

// Where two spans meet: who hands what to whom, in the order of both sides.
struct StageRunner::Boundary {
  int before = 0;
  const SpanPlace* a = nullptr;
  const SpanPlace* b = nullptr;
  const std::vector<LiveTensor>* alive = nullptr;
  bool moves = false;
  std::vector<Transfer> down;  // activations, from a to b
  std::vector<Transfer> up;    // gradients, from b to a
};

struct StageRunner::InFlight {
  std::vector<Bundle> inputs;  // of each piece of the chunk
  std::vector<Bundle> outputs;
};

namespace {

constexpr int kForward = 0;
constexpr int kBackward = 1;

bool reads_batch(ExecOpKind kind) {
  return kind == ExecOpKind::tokens || kind == ExecOpKind::types || kind == ExecOpKind::patches ||
         kind == ExecOpKind::loss || kind == ExecOpKind::next_sentence ||
         kind == ExecOpKind::convolution;
}

// Of the input or the output layer, which are never recomputed: what a loss would free is needed
// again at once.
bool is_table(ExecOpKind kind) {
  return kind == ExecOpKind::tokens || kind == ExecOpKind::loss ||
         kind == ExecOpKind::next_sentence;
}

at::Tensor slice_of(const at::Tensor& tensor, const TensorSlice& slice) {
  return tensor.narrow(0, slice.samples.begin, slice.samples.size())
      .narrow(slice.dim + 1, slice.range.begin, slice.range.size());
}

// Leaves of a new graph with the same values.
Bundle leaves_of(const Bundle& bundle) {
  Bundle out;
  for (const auto& [name, tensor] : bundle) {
    at::Tensor leaf = tensor.detach();
    if (leaf.is_floating_point()) leaf.set_requires_grad(true);
    out[name] = leaf;
  }
  return out;
}

void each_tensor(Batch& batch, const auto& apply) {
  for (at::Tensor* tensor : {&batch.tokens, &batch.target, &batch.types, &batch.images,
                             &batch.labels, &batch.weights, &batch.follows})
    if (tensor->defined()) apply(*tensor);
}

// `batch` lies where a GPU can fetch it by itself; see pinned().
Batch on_device(Batch batch, at::Device device) {
  if (device.is_cuda())
    each_tensor(batch, [&](at::Tensor& tensor) { tensor = tensor.to(device, true); });
  return batch;
}

// Copied to pages that a GPU can fetch by itself. Images of a step take milliseconds, in which the
// host that launches the step must not be held up.
Batch pinned(Batch batch, at::Device device) {
  if (device.is_cuda())
    each_tensor(batch, [](at::Tensor& tensor) { tensor = tensor.pin_memory(); });
  return batch;
}

}  // namespace

StageRunner::StageRunner(const Layout& layout, const ExecProgram& program, const Samples& samples,
                         ParameterStore& parameters, Communicator& ranks, const Settings& settings)
    : layout_(layout),
      program_(program),
      samples_(samples),
      parameters_(parameters),
      ranks_(ranks),
      settings_(settings),
      stage_(layout.stage_of[ranks.rank()]) {
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    chunks_.emplace_back();
    for (const int number : layout.chunk_spans(stage_, chunk)) {
      chunks_.back().push_back(make_span(number));
      if (number > 0) boundaries_.emplace(number - 1, make_boundary(number - 1));
      if (number + 1 < static_cast<int>(layout.spans.size()))
        boundaries_.emplace(number, make_boundary(number));
    }
  }
}

StageRunner::~StageRunner() = default;

StageRunner::LocalSpan StageRunner::make_span(int number) {
  LocalSpan span;
  span.number = number;
  span.place = &layout_.spans[number];
  const int place = span.place->place_of(ranks_.rank());
  span.d = place / span.place->tensor;
  span.t = place % span.place->tensor;
  const auto first = span.place->ranks.begin() + span.d * span.place->tensor;
  TensorGroup& group = ranks_.group({first, first + span.place->tensor});
  const UnitModule::Range range{span.place->begin, span.place->end};
  span.module = std::make_unique<UnitModule>(
      program_, range,
      ShardSpec{.tensor = span.place->tensor,
                .rank = span.t,
                .sequence_parallel = layout_.sequence_parallel},
      group, parameters_.source(span.place->tensor), settings_.plain_attention);
  cut_into_pieces(span);
  return span;
}

// Recomputed in full: layer by layer. Selectively: attention's scores and softmax alone. Where
// gradients are summed over replicas it goes layer by layer too: those of a layer are complete, and
// are sent, when its own backward pass is over.
void StageRunner::cut_into_pieces(LocalSpan& span) {
  const UnitModule::Range range = span.module->range();
  const Recompute recompute = span.place->recompute;
  std::vector<bool> begins(program_.ops.size() + 1);
  for (std::size_t u = 0; u < program_.layer.size(); ++u)
    if ((recompute == Recompute::full || (settings_.overlap && span.place->data > 1)) &&
        program_.layer[u])
      begins[program_.begin[u]] = true;
  for (int i = range.begin; i < range.end; ++i) {
    const bool alone = recompute == Recompute::selective && program_.ops[i].selective;
    if (alone) begins[i] = begins[i + 1] = true;
    if (i == range.begin || begins[i])
      span.pieces.push_back({{i, i + 1}, alone || recompute == Recompute::full});
    else
      span.pieces.back().range.end = i + 1;
    if (reads_batch(program_.ops[i].kind)) span.reads_batch = true;
    for (const Parameter& parameter : program_.ops[i].parameters)
      span.pieces.back().learns.push_back(parameters_.number(parameter.name, span.place->tensor));
  }
  for (Piece& piece : span.pieces) {
    for (int i = piece.range.begin; i < piece.range.end; ++i)
      if (is_table(program_.ops[i].kind)) piece.again = false;
    std::sort(piece.learns.begin(), piece.learns.end());
    piece.learns.erase(std::unique(piece.learns.begin(), piece.learns.end()), piece.learns.end());
    for (const int tensor : piece.learns) parameters_.gradients().expect(tensor);
  }
}

StageRunner::Boundary StageRunner::make_boundary(int before) const {
  Boundary boundary;
  boundary.before = before;
  boundary.a = &layout_.spans[before];
  boundary.b = &layout_.spans[before + 1];
  boundary.alive = &program_.ops[boundary.a->end - 1].alive;
  boundary.moves = !same_places(*boundary.a, *boundary.b);
  if (!boundary.moves) return boundary;
  const bool sequence = layout_.sequence_parallel;
  boundary.down = transfers(*boundary.a, *boundary.b, *boundary.alive, sequence);
  boundary.up = transfers(*boundary.b, *boundary.a, *boundary.alive, sequence);
  return boundary;
}

at::ScalarType StageRunner::dtype_of(const std::string& name) const {
  return name == "loss" ? wide_type(settings_.dtype) : settings_.dtype;
}

void StageRunner::begin_step(std::int64_t step, int micro_batches) {
  loss_ = at::zeros({1}, at::TensorOptions(ranks_.device()).dtype(at::kDouble));
  prepare(step, micro_batches);
  if (!ranks_.device().is_cuda()) return;
  coming_step_ = step + 1;
  coming_ = std::async(std::launch::async, [this, step, micro_batches] {
    return make_samples(step + 1, micro_batches);
  });
}

StageRunner::StepSamples StageRunner::make_samples(std::int64_t step, int micro_batches) const {
  StepSamples out;
  for (const std::vector<LocalSpan>& chunk : chunks_)
    for (const LocalSpan& span : chunk) {
      if (!span.reads_batch) continue;
      const Interval mine = span.place->samples[span.d];
      std::vector<Batch>& own = out.emplace_back();
      for (int m = 0; m < micro_batches; ++m)
        own.push_back(
            pinned(samples_.batch(step, m * layout_.micro_batch + mine.begin, mine.size()),
                   ranks_.device()));
    }
  return out;
}

void StageRunner::prepare(std::int64_t step, int micro_batches) {
  if (std::exchange(prepared_, step) == step) return;
  const bool comes = coming_.valid() && coming_step_ == step;
  StepSamples made = comes ? coming_.get() : make_samples(step, micro_batches);
  auto next = made.begin();
  for (std::vector<LocalSpan>& chunk : chunks_)
    for (LocalSpan& span : chunk) {
      if (!span.reads_batch) continue;
      span.batches.clear();
      for (Batch& batch : *next++)
        span.batches.push_back(on_device(std::move(batch), ranks_.device()));
    }
}

const Batch& StageRunner::batch_of(const LocalSpan& span, int micro_batch) const {
  static const Batch none;
  return span.reads_batch ? span.batches[micro_batch] : none;
}

// Gives what this rank has of `bundle` to the ranks on the other side of the boundary.
void StageRunner::send(const Boundary& boundary, bool back, const Bundle& bundle) {
  for (const Transfer& transfer : back ? boundary.up : boundary.down) {
    if (transfer.from != ranks_.rank() || transfer.to == ranks_.rank()) continue;
    const std::string& name = (*boundary.alive)[transfer.tensor].name;
    ranks_.send(slice_of(bundle.at(name), transfer.source).contiguous(), transfer.to,
                back ? kBackward : kForward, 2 * boundary.before + (back ? 1 : 0));
  }
}

Bundle StageRunner::receive(const Boundary& boundary, bool back, const Bundle& own) {
  const SpanPlace& to = back ? *boundary.a : *boundary.b;
  const int place = to.place_of(ranks_.rank());
  const std::int64_t samples = to.samples[place / to.tensor].size();
  Bundle out;
  for (const LiveTensor& alive : *boundary.alive) {
    std::vector<std::int64_t> shape =
        local_shape(alive, to.tensor, place % to.tensor, layout_.sequence_parallel);
    shape.insert(shape.begin(), samples);
    out[alive.name] =
        at::empty(shape, at::TensorOptions(ranks_.device()).dtype(dtype_of(alive.name)));
  }
  for (const Transfer& transfer : back ? boundary.up : boundary.down) {
    if (transfer.to != ranks_.rank()) continue;
    const std::string& name = (*boundary.alive)[transfer.tensor].name;
    at::Tensor target = slice_of(out.at(name), transfer.target);
    if (transfer.from == ranks_.rank()) {
      target.copy_(slice_of(own.at(name), transfer.source));
      continue;
    }
    const at::Tensor buffer =
        target.is_contiguous() ? target : at::empty(target.sizes(), target.options());
    ranks_.receive(buffer, transfer.from, back ? kBackward : kForward,
                   2 * boundary.before + (back ? 1 : 0));
    if (!target.is_contiguous()) target.copy_(buffer);
  }
  return out;
}

Bundle StageRunner::run_piece(LocalSpan& span, const Piece& piece, Bundle input, const Batch& batch,
                              InFlight& flight) {
  Bundle leaves = leaves_of(input);
  flight.inputs.push_back(leaves);
  c10::AutoGradMode mode(!piece.again);
  Bundle output = span.module->forward(std::move(leaves), batch, piece.range);
  flight.outputs.push_back(piece.again ? Bundle() : output);
  return output;
}

void StageRunner::forward(int chunk, int micro_batch) {
  InFlight& flight = flights_[{chunk, micro_batch}];
  std::vector<LocalSpan>& spans = chunks_[chunk];
  Bundle bundle;
  if (spans.front().number > 0)
    bundle = receive(boundaries_.at(spans.front().number - 1), false, {});
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i > 0) {
      const Boundary& boundary = boundaries_.at(spans[i - 1].number);
      if (boundary.moves) {
        c10::NoGradGuard no_gradients;
        send(boundary, false, bundle);
        bundle = receive(boundary, false, bundle);
      }
    }
    const Batch& batch = batch_of(spans[i], micro_batch);
    for (const Piece& piece : spans[i].pieces)
      bundle = run_piece(spans[i], piece, std::move(bundle), batch, flight);
  }
  c10::NoGradGuard no_gradients;
  const LocalSpan& last = spans.back();
  if (last.number + 1 < static_cast<int>(layout_.spans.size()))
    send(boundaries_.at(last.number), false, bundle);
  else if (last.t == 0)
    loss_.add_(bundle.at("loss").detach().sum());
}

Bundle StageRunner::piece_backward(LocalSpan& span, const Piece& piece, std::size_t number,
                                   InFlight& flight, const Batch& batch, const Bundle& gradients) {
  const Bundle input = std::move(flight.inputs[number]);
  Bundle output = std::move(flight.outputs[number]);
  if (piece.again) output = span.module->forward(input, batch, piece.range);
  std::vector<at::Tensor> roots, seeds;
  for (const auto& [name, tensor] : output) {
    const auto gradient = gradients.find(name);
    if (!tensor.requires_grad() || gradient == gradients.end() || !gradient->second.defined())
      continue;
    roots.push_back(tensor);
    seeds.push_back(gradient->second);
  }
  output.clear();
  torch::autograd::backward(roots, seeds);
  Bundle out;
  for (const auto& [name, tensor] : input) {
    if (!tensor.requires_grad()) continue;
    out[name] = tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor);
  }
  return out;
}

void StageRunner::backward(int chunk, int micro_batch, bool last_of_chunk) {
  const auto found = flights_.find({chunk, micro_batch});
  PLAIT_CHECK(found != flights_.end());
  InFlight flight = std::move(found->second);
  flights_.erase(found);
  std::vector<LocalSpan>& spans = chunks_[chunk];
  Bundle gradients;
  const LocalSpan& last = spans.back();
  if (last.number + 1 < static_cast<int>(layout_.spans.size())) {
    gradients = receive(boundaries_.at(last.number), true, {});
  } else {
    const std::int64_t samples = last.place->samples[last.d].size();
    gradients["loss"] =
        at::full({samples, 1}, 1.0 / static_cast<double>(settings_.global_batch),
                 at::TensorOptions(ranks_.device()).dtype(wide_type(settings_.dtype)));
  }
  std::size_t number = flight.inputs.size();
  for (std::size_t i = spans.size(); i-- > 0;) {
    const Batch& batch = batch_of(spans[i], micro_batch);
    for (std::size_t p = spans[i].pieces.size(); p-- > 0;) {
      const Piece& piece = spans[i].pieces[p];
      gradients = piece_backward(spans[i], piece, --number, flight, batch, gradients);
      if (last_of_chunk) parameters_.gradients().finish(piece.learns);
    }
    if (i == 0) break;
    const Boundary& boundary = boundaries_.at(spans[i - 1].number);
    if (!boundary.moves) continue;
    send(boundary, true, gradients);
    gradients = receive(boundary, true, gradients);
  }
  if (spans.front().number > 0) send(boundaries_.at(spans.front().number - 1), true, gradients);
}

}  // namespace plait::runtime
