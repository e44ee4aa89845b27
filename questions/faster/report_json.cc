#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename Number>
OrderedJson OrNull(const std::optional<Number>& number) {
  return number.has_value() ? OrderedJson(*number) : OrderedJson();
}

OrderedJson ToJson(const Result& result) {
  return {{"measurement", result.name.empty() ? OrderedJson() : OrderedJson(result.name)},
          {"verdict", Name(result.verdict)},
          {"ratio", OrNull(result.ratio)},
          {"low", OrNull(result.low)},
          {"high", OrNull(result.high)},
          {"runs_needed", OrNull(result.runs_needed)},
          {"seconds_a", result.name.empty() ? OrderedJson() : OrderedJson(result.seconds_a)},
          {"seconds_b", result.name.empty() ? OrderedJson() : OrderedJson(result.seconds_b)}};
}

// locations: of the measurement `plotted`.
void AddSamples(const char* side, const std::vector<Process>& processes,
                const std::vector<ProcessLocation>& locations, const std::string& plotted,
                OrderedJson* samples) {
  for (size_t i = 0; i < processes.size(); ++i) {
    OrderedJson measurements = OrderedJson::array();
    for (const MeasurementSamples& measurement : processes[i].measurements) {
      OrderedJson object = {{"measurement", measurement.name}, {"seconds", measurement.seconds}};
      if (measurement.name == plotted) {
        object["location"] = locations[i].seconds;
        object["warm_up"] = locations[i].num_warm_up;
      }
      measurements.push_back(std::move(object));
    }
    samples->push_back({{"side", side},
                        {"process", processes[i].name},
                        {"started", OrNull(processes[i].started)},
                        {"block", OrNull(processes[i].block)},
                        {"measurements", std::move(measurements)}});
  }
}

}  // namespace

std::string ToJson(const Comparison& comparison, const Samples& samples) {
  OrderedJson json = ToJson(comparison.answer);
  json["answer"] = DescribeAnswer(comparison);
  json["confidence"] = 1 - comparison.answer.error;
  json["margin"] = comparison.margin;
  json["runs_a"] = comparison.num_a;
  json["runs_b"] = comparison.num_b;
  json["voids"] = comparison.voids;
  json["notes"] = comparison.notes;
  json["measurements"] = OrderedJson::array();
  for (const Result& result : comparison.measurements) json["measurements"].push_back(ToJson(result));
  json["samples"] = OrderedJson::array();
  AddSamples("A", samples.a, comparison.locations_a, comparison.plotted, &json["samples"]);
  AddSamples("B", samples.b, comparison.locations_b, comparison.plotted, &json["samples"]);
  return json.dump(2, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ott::faster
