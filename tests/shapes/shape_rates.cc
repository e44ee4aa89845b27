// shape_rates [RUNS [RANKS]]: how often verdicts about time are not true, by the shape of the training. Of
// simulated trainings, whose truth is known. --explain prints the first answer of each shape that is not
// true.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ott/tests/shapes/simulated_training.h"

int main(int argc, char** argv) {
  using ott::shapes::Rates;
  using ott::shapes::Shape;
  bool explain = false;
  std::string only;
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--explain") {
      explain = true;
    } else if (argument.rfind("--only=", 0) == 0) {
      only = argument.substr(7);
    } else {
      numbers.push_back(std::atoi(argv[i]));
    }
  }
  const int num_runs = numbers.empty() ? 20 : numbers[0];
  std::printf("%-44s %5s  %-7s %5s %6s %7s %6s %13s\n", "shape", "ranks", "", "runs", "false", "missed",
              "wrong", "contradicted");
  int num_bad = 0;
  for (const Shape& shape : ott::shapes::Shapes()) {
    if (shape.name.find(only) == std::string::npos) continue;
    for (const int num_ranks : shape.sizes) {
      if (numbers.size() > 1 && num_ranks != numbers[1]) continue;
      for (const bool is_planted : {false, true}) {
        if (is_planted && shape.cannot_be_told) continue;
        const Rates rates = ott::shapes::RatesOf(shape, num_ranks, is_planted, num_runs);
        std::printf("%-44s %5d  %-7s %5d %6d %7d %6d %13d\n", shape.name.c_str(), num_ranks,
                    is_planted ? "planted" : "clean", rates.num_runs, rates.num_false, rates.num_missed,
                    rates.num_wrong, rates.num_contradicted);
        std::fflush(stdout);
        num_bad += rates.num_false + rates.num_missed + rates.num_wrong + rates.num_contradicted;
        if (explain && !rates.first.empty()) std::printf("%s\n", rates.first.c_str());
      }
    }
  }
  return num_bad > 0 ? 1 : 0;
}
