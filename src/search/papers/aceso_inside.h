#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "cost/aceso_formula.h"

namespace plait {

// A stage before its ops are cut: how many devices, and which stages are around it.
struct AcesoPlace {
  int devices = 1;
  int behind = 0;
  AcesoBorders borders;
  friend auto operator<=>(const AcesoPlace& a, const AcesoPlace& b) {
    return std::tie(a.devices, a.behind, a.borders.in, a.borders.out) <=>
           std::tie(b.devices, b.behind, b.borders.in, b.borders.out);
  }
};

// The inside of stages under AcesoFormula where every op may be cut in its own way: tensor and data
// degree, algorithm and recompute of each op. For a price of memory, in seconds a byte, the best
// choices of all ops follow from a dynamic program over the chain: time and priced memory of each
// op, less what two neighbours that are both recomputed give back, plus what it takes to bring the
// output of one into the layout that the next wants. The price is raised until the stage fits, and
// then halved down to the least that does.
class AcesoInside {
 public:
  AcesoInside(const AcesoFormula& formula, int micro_batch, Bytes memory)
      : formula_(formula), micro_batch_(micro_batch), memory_(memory) {}

  struct Choice {
    double time = 0;  // of the stage, as the formula has it
    AcesoStage stage;
  };
  // nullptr where nothing fits.
  const Choice* best(const AcesoPlace& place, UnitRange ops);
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct Way {
    int tensor = 1;
    int data = 1;
  };
  const std::vector<Way>& ways(int devices);
  std::optional<Choice> priced(const AcesoPlace& place, UnitRange ops, double price, bool& fits);
  Choice work_out(const AcesoPlace& place, UnitRange ops);

  const AcesoFormula& formula_;
  int micro_batch_;
  Bytes memory_;
  std::map<int, std::vector<Way>> ways_;
  std::map<std::tuple<AcesoPlace, int, int>, Choice> known_;
  std::int64_t evaluations_ = 0;
};

// Stages on these numbers of devices, first stage first.
struct AcesoOutline {
  std::vector<int> devices;
  std::vector<int> begins;  // first op of each stage
};

// Better cuts of the outline, at most `reach` ops from its own, as long as that helps, each stage
// with the best inside. Nothing where a stage does not fit anywhere near.
std::optional<std::vector<AcesoStage>> with_best_inside(AcesoInside& inside,
                                                        const AcesoFormula& formula,
                                                        AcesoOutline outline, int micro_batches,
                                                        int reach);

}  // namespace plait
