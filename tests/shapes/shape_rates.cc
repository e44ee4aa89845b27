// shape_rates [RUNS [RANKS]]: how often verdicts about time are not true, by the shape of the training. Of
// simulated trainings, whose truth is known.

#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "ott/tests/shapes/simulated_training.h"

namespace ott::shapes {
namespace {

struct Options {
  bool explain = false;
  std::string only;
  int num_drawn = 0;
  int first_drawn = 0;
  int num_runs = 20;
  int num_ranks = 0;
};

// Prints a row, and returns how many answers are not true.
int Print(const std::string& shape, const std::string& ranks, bool is_planted, const Rates& rates) {
  std::printf("%-44s %5s  %-7s %5d %6d %7d %6d %13d\n", shape.c_str(), ranks.c_str(),
              is_planted ? "planted" : "clean", rates.num_runs, rates.num_false, rates.num_missed,
              rates.num_wrong, rates.num_contradicted);
  std::fflush(stdout);
  return rates.num_false + rates.num_missed + rates.num_wrong + rates.num_contradicted;
}

void Explain(const Options& options, const Rates& rates) {
  if (options.explain && !rates.first.empty()) std::printf("%s\n", rates.first.c_str());
}

int NamedShapes(const Options& options) {
  int num_bad = 0;
  for (const Shape& shape : Shapes()) {
    if (!absl::StrContains(shape.name, options.only)) continue;
    for (const int num_ranks : shape.sizes) {
      if (options.num_ranks > 0 && num_ranks != options.num_ranks) continue;
      for (const bool is_planted : {false, true}) {
        if (is_planted && shape.cannot_be_told) continue;
        const Rates rates = RatesOf(shape, num_ranks, is_planted, options.num_runs);
        num_bad += Print(shape.name, std::to_string(num_ranks), is_planted, rates);
        Explain(options, rates);
      }
    }
  }
  return num_bad;
}

int DrawnShapes(const Options& options) {
  int num_bad = 0;
  for (const bool is_planted : {false, true}) {
    Rates all;
    for (int i = 0; i < options.num_drawn; ++i) {
      const Shape shape = DrawnShape(options.first_drawn + i);
      if (!absl::StrContains(shape.name, options.only)) continue;
      const Rates rates = RatesOf(shape, shape.sizes[0], is_planted, options.num_runs);
      Explain(options, rates);
      all.num_runs += rates.num_runs;
      all.num_false += rates.num_false;
      all.num_missed += rates.num_missed;
      all.num_wrong += rates.num_wrong;
      all.num_contradicted += rates.num_contradicted;
    }
    num_bad += Print("drawn by chance", "2-8", is_planted, all);
  }
  return num_bad;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("How often verdicts about time are not true, of simulated trainings, by their shape");
  app.add_option("runs", options.num_runs, "Of each shape")->capture_default_str();
  app.add_option("ranks", options.num_ranks, "Only shapes of so many");
  app.add_option("--only", options.only, "Part of the names of shapes");
  app.add_option("--drawn", options.num_drawn,
                 "As many shapes that are drawn by chance instead, in two rows");
  app.add_option("--first", options.first_drawn, "The seed of the first of these")->capture_default_str();
  app.add_flag("--explain", options.explain, "Print the first answer of each row that is not true");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-44s %5s  %-7s %5s %6s %7s %6s %13s\n", "shape", "ranks", "", "runs", "false", "missed",
              "wrong", "contradicted");
  const int num_bad = options.num_drawn > 0 ? DrawnShapes(options) : NamedShapes(options);
  return num_bad > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ott::shapes

int main(int argc, char** argv) { return ott::shapes::Main(argc, argv); }
