#include "validation/run_corrections.h"

#include <array>

namespace plait {

std::span<const RunCorrection> run_corrections() {
  static constexpr std::array kCorrections{
      RunCorrection{
          "vtrain_single", "no recompute, although the column says full",
          "the times are composed of profiled layers of three passes: with a fourth, matrix "
          "products would run at 1.14 times the A100's peak",
          [](RunRow& row) {
            row.recompute = "none";
            row.composed = true;
          }},
      RunCorrection{"vtrain_single", "A100 of 40 GB",
                    "the size is not stated; memory-bound work runs at that card's bandwidth",
                    [](RunRow& row) { row.gpu = "A100-40GB"; }},
      RunCorrection{"vtrain_single", "the vocabulary of 50,257 is not padded with tp 1",
                    "the head runs at 81 TFLOP/s with tp 1 and at 204 with tp 2, where Megatron "
                    "pads it to a multiple of 8",
                    [](RunRow& row) { row.unpadded = row.tensor == 1; }},
      RunCorrection{"vtrain_multi", "neither logits nor loss",
                    "stages take the same time for each layer with pp 1, 2, 4, 8 and 16: the last "
                    "one shows no head",
                    [](RunRow& row) { row.no_head = true; }},
      RunCorrection{
          "sailor_validation", "tf32, and attention without dropout",
          "the precision is not stated; in 16 bits memory would be 17 to 30 % less than measured "
          "and "
          "large micro-batches twice as fast, and its fork's attention applies no dropout",
          [](RunRow& row) {
            if (row.precision.empty()) row.precision = "tf32";
            if (row.dropout.empty()) row.dropout = "none";
          }},
      RunCorrection{"llama3_herd", "vpp 8, one layer a chunk",
                    "the paper describes an interleaved schedule without saying how many chunks; "
                    "with one chunk the 16 stages and 16 micro-batches of the long sequences "
                    "would idle for half of the step, at 38 % MFU",
                    [](RunRow& row) { row.chunks = 8; }},
  };
  return kCorrections;
}

}  // namespace plait
