#include "ott/questions/faster/comparison_picture.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_format.h"
#include "ott/core/base/utf8.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/faster/comparison.pb.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

constexpr int kMaxResults = 32;
constexpr size_t kMaxProcesses = 200;

void AddProcesses(const std::vector<ProcessLocation>& locations,
                  google::protobuf::RepeatedField<double>* seconds) {
  for (size_t i = 0; i < std::min(locations.size(), kMaxProcesses); ++i) seconds->Add(locations[i].seconds);
}

}  // namespace

Json DrawComparison(const Comparison& comparison, const SideNames& names) {
  ComparisonPicture picture;
  picture.add_sides(names.a);
  picture.add_sides(names.b);
  picture.set_measurement(ValidUtf8(comparison.plotted));
  AddProcesses(comparison.locations_a, picture.mutable_seconds_a());
  AddProcesses(comparison.locations_b, picture.mutable_seconds_b());
  AbVerdict& verdict = *picture.mutable_verdict() = EvidenceOf(comparison);
  verdict.clear_voids();
  verdict.clear_notes();
  KeepFirst(kMaxResults, verdict.mutable_measurements());
  return DrawMessage(picture);
}

Document DocumentOf(const Comparison& comparison, const std::string& subject) {
  constexpr SideNames names = {"A", "B"};
  Document document;
  document.title = "ott ab";
  document.subject = subject;
  document.answers = {AnswerFaster(comparison, names)};
  document.problems = comparison.voids;
  document.details = {{"All measurements", ToText(comparison)}};
  document.pictures["comparison"] = DrawComparison(comparison, names);
  if (comparison.measurements.size() > static_cast<size_t>(kMaxResults)) {
    document.thinned.push_back(
        absl::StrFormat("%d of %d measurements are drawn", kMaxResults, comparison.measurements.size()));
  }
  return document;
}

}  // namespace ott::faster
