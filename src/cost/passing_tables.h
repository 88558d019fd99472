#pragma once

#include <map>
#include <memory>

#include "cost/engine.h"

namespace plait {

// Tables of costs for what is asked once: kept by the engine for others, or, where all that will be
// asked for would take too much memory, made anew and forgotten.
class PassingTables {
 public:
  // `count`: tables that will be asked for, about.
  PassingTables(const CostEngine& engine, double count)
      : engine_(engine),
        keeps_(count * engine.problem().model.unit_count() * kBytesOfUnit <= kMostKept) {}

  // Valid until they are forgotten.
  const UnitTable& table(const ReplicaShape& shape) {
    if (keeps_) return engine_.table(shape);
    std::unique_ptr<UnitTable>& own = own_[shape];
    if (!own) own = std::make_unique<UnitTable>(engine_.problem(), shape);
    return *own;
  }
  void forget() { own_.clear(); }

 private:
  static constexpr double kBytesOfUnit = 400;  // a table's, about
  static constexpr double kMostKept = 2e8;     // bytes

  const CostEngine& engine_;
  bool keeps_;
  std::map<ReplicaShape, std::unique_ptr<UnitTable>> own_;
};

}  // namespace plait
