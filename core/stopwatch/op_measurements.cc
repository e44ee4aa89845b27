#include "ott/core/stopwatch/op_measurements.h"

#include "ott/core/stopwatch/stopwatch.h"

namespace ott {
namespace {

class OpMeasurer : public OpObserver {
 public:
  void* Begin(const ObservedOp& op) override {
    Stopwatch& stopwatch = Stopwatch::Get();
    return stopwatch.enabled() ? new Stopwatch::Scope(stopwatch, op.name) : nullptr;
  }
  void AddOutputs(void*, absl::Span<const OpArg>) override {}
  void End(void* scope) override { delete static_cast<Stopwatch::Scope*>(scope); }
};

}  // namespace

void MeasureOps(OpRanges::Options& options) {
  // Ranges may end after everything else.
  static OpMeasurer* const measurer = new OpMeasurer;
  options.observer = measurer;
}

}  // namespace ott
